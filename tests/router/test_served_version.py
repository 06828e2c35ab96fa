"""The version that a server names is in the record of each call; one that nobody here changed is a change."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from alphaloom.ledger import CHANGE_KINDS, Ledger, list_changes
from alphaloom.ledger.account import list_changes as list_told, read_overview
from alphaloom.ledger.changes import find_served_changes
from alphaloom.router import Router, Task
from alphaloom.router.calls.completions import read_version

from .servers import Server


@pytest.fixture
def no_network() -> None:
    """Allow what the rest of the room forbids: these tests ask a server of their own."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(version="0.11.2", changes={"model": "tiny-0101", "system_fingerprint": "fp_a"}) as server:
        yield server


@pytest.mark.integration
def test_a_call_has_what_its_server_named_and_a_new_version_is_a_change(
    build: Callable[..., Router], task: Callable[..., Task], server: Server, ledger: Ledger
) -> None:
    settings = {"model": "hosted_vllm/tiny", "place": "local", "api_base": server.address}

    def ask(*texts: str) -> None:
        async def converse() -> None:
            router = build(models={"small": settings}, health={"probe_seconds": 20.0})
            for text in texts:
                await router.ask(task(text))
            await router.close()

        asyncio.run(converse())

    ask("a", "b")
    server.changes = {"model": "tiny-0202"}
    ask("c", "d")
    server.kill()
    server.version = "0.12.0"
    server.start()
    ask("e")
    served = [call.served for _, call in ledger.calls.since("one")]
    assert served == [
        *["tiny-0101 (fp_a) (vLLM 0.11.2)"] * 2, *["tiny-0202 (vLLM 0.11.2)"] * 2, "tiny-0202 (vLLM 0.12.0)"
    ]  # fmt: skip  # a table
    changes = list_changes(ledger, kinds=CHANGE_KINDS)
    assert [(row.kind, row.before, row.after) for row in changes] == [
        ("served", served[2], served[4]), ("served", served[0], served[2])
    ]  # fmt: skip  # a table
    told = [row for row in read_overview(ledger.workspace, list_told) if row["kind"] == "served"]
    assert [(row["before"], row["after"]) for row in told] == [(row.before, row.after) for row in reversed(changes)]
    assert all(isinstance(row["leaf"], int) for row in told)


def test_machines_that_answer_in_turn_change_once_and_a_return_after_other_runs_is_a_change() -> None:
    answered = {"r1": "aab", "r2": "ab", "r3": "bb", "r4": "b", "r5": "ba"}
    calls = [("m", run, version) for run, versions in answered.items() for version in versions]
    assert [(*calls[place], before) for place, before in find_served_changes(calls)] == [
        ("m", "r1", "b", "a"), ("m", "r5", "a", "b")
    ]  # fmt: skip  # a table
    assert not [*find_served_changes([("m", "r1", "a"), ("m", "r1", ""), ("n", "r1", "b")])]
    more = [("m", "r1", version) for version in ("a", "a (f)", "a", "a (f) (v 1)", "a (f)", "a (f) (v 2)", "a (g)")]
    assert [place for place, _ in find_served_changes(more)] == [5, 6]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (("m", None), "m"), (("m", "fp"), "m (fp)"), ((None, "fp"), "(fp)"), ((7, {}), ""), (("a\nb", ""), ""),
        (("m" * 300,), "m" * 200),
    ],
)  # fmt: skip  # a table
def test_what_is_no_text_is_no_version(said: tuple[object, ...], expected: str) -> None:
    assert read_version(*said) == expected
