"""The parts around NautilusTrader that need no NautilusTrader: what may pass, the pipe, messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from alphaloom.execution import ChildOrder, DecisionInputs, ExecutionError
from alphaloom.execution.nautilus import SessionPrices, check_nautilus, pipe as pipe_file
from alphaloom.execution.nautilus.gatekeeper import Gatekeeper
from alphaloom.execution.nautilus.installation import is_supported
from alphaloom.execution.nautilus.pipe import MAX_MESSAGE_BYTES, LinePipe, PipedProcess
from alphaloom.ledger import canonical_json
from alphaloom.risk import Policy

from ..approvals import DAY
from .engine import make_child, make_inputs, make_parents

ECHO = """
import sys
print('{"type": "hello"}', flush=True)
for line in sys.stdin:
    print(line if "boom" not in line else exec("import os; os.abort()"), end="", flush=True)
"""
ASSETS = ("AAA", "BBB")


@pytest.fixture(scope="module")
def echo() -> Iterator[PipedProcess]:
    process = PipedProcess("The echo", [sys.executable, "-I", "-c", ECHO], {})
    yield process
    process.close()


def admit(keeper: Gatekeeper, inputs: DecisionInputs, **changes: Any) -> None:
    decision, parents = make_parents(inputs)
    request = {
        "type": "admit",
        "inputs": inputs.record(),
        "decision": decision,
        "session": DAY.isoformat(),
        "parents": [[one.asset, one.shares, one.arrival_e4] for one in parents],
    }
    keeper.answer({**request, **changes})


def send(keeper: Gatekeeper, *orders: ChildOrder) -> dict[str, Any]:
    return keeper.answer({"type": "send", "orders": [order.record() for order in orders]})


def test_children_of_a_decision_that_is_the_same_pass(echo: PipedProcess) -> None:
    keeper, inputs = Gatekeeper(echo), make_inputs(ASSETS)
    _, (first, second) = make_parents(inputs)
    with pytest.raises(ExecutionError, match="made again"):
        send(keeper, make_child(first))
    admit(keeper, inputs)
    orders = [make_child(first, 0, 40), make_child(first, 1, 60), make_child(second)]
    assert send(keeper, *orders)["orders"] == [order.record() for order in orders]


@pytest.mark.parametrize(
    "change",
    [
        {"signals": make_inputs(ASSETS, 40_001).signals},
        {"state": replace(make_inputs(ASSETS).state, equity=10**10 - 1)},
        {"policy": Policy(gross_cap_bp=19_999)},
        {"now": DAY + timedelta(days=1)},
        {"standings": {}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_input_is_another_decision_and_is_refused(echo: PipedProcess, change: dict[str, Any]) -> None:
    inputs = make_inputs(ASSETS)
    with pytest.raises(ExecutionError) as raised:
        admit(Gatekeeper(echo), replace(inputs, **change), decision=make_parents(inputs)[0])
    assert raised.value.code == "decision_differs"


def test_inputs_survive_their_record() -> None:
    inputs = make_inputs(ASSETS)
    again = DecisionInputs.restore(inputs.record())
    assert canonical_json(again.record()) == canonical_json(inputs.record())
    assert again.decide_again(make_parents(inputs)[0]).id == make_parents(inputs)[0]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"asset": "BBB"}, "order"),
        ({"side": "sell"}, "order"),
        ({"shares": 101}, "order"),
        ({"parent": "0" * 12}, "not_approved"),
        ({"id": "other-0"}, "duplicate"),
    ],
    ids=str,
)
def test_what_no_parent_covers_refuses_the_batch(echo: PipedProcess, change: dict[str, Any], code: str) -> None:
    keeper, inputs = Gatekeeper(echo), make_inputs(ASSETS)
    admit(keeper, inputs)
    first, second = (make_child(one) for one in make_parents(inputs)[1])
    with pytest.raises(ExecutionError) as raised:
        send(keeper, second, replace(first, **change))
    assert raised.value.code == code
    send(keeper, second, first)  # the refused batch used nothing up
    with pytest.raises(ExecutionError) as raised:
        send(keeper, replace(first, shares=1))
    assert raised.value.code == "duplicate"
    with pytest.raises(ExecutionError, match="shares"):
        send(keeper, replace(first, id=f"{first.parent}-1", shares=1))


def test_an_asset_that_the_decision_refuses_is_no_parent(echo: PipedProcess) -> None:
    inputs = replace(make_inputs(ASSETS), policy=Policy(restricted=("AAA",)))
    with pytest.raises(ExecutionError) as raised:
        admit(Gatekeeper(echo), inputs, parents=[["AAA", 100, 10_000]])
    assert raised.value.code == "not_approved"


def test_a_process_that_aborts_is_an_error_that_says_so() -> None:
    process = PipedProcess("The echo", [sys.executable, "-I", "-c", ECHO], {})
    with pytest.raises(ExecutionError, match="The echo ended by SIGABRT"):
        process.ask({"type": "boom"})
    with pytest.raises(ExecutionError, match="ended by SIGABRT"):
        process.ask({"type": "again"})
    process.close()
    with pytest.raises(ExecutionError, match="cannot be started"):
        PipedProcess("Nothing", ["/nowhere/python"], {})


def test_a_process_that_does_not_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe_file, "ANSWER_S", 0.2)
    with pytest.raises(ExecutionError, match="did not answer within"):
        PipedProcess("The sleeper", [sys.executable, "-I", "-c", "import time; time.sleep(60)"], {})


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text() | st.integers() | st.none()), max_size=5))
def test_messages_survive_the_pipe(messages: list[dict[str, Any]]) -> None:
    reads, writes = os.pipe()
    pipe = LinePipe(reads, writes)
    for message in messages:
        pipe.write(message)
    os.close(writes)
    assert [pipe.read() for _ in messages] == messages
    assert pipe.read() is None
    os.close(reads)


def test_a_line_that_is_too_long_or_no_object_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match="too long"):
        LinePipe(0, 1).write({"text": "x" * MAX_MESSAGE_BYTES})
    for body, words in ((b"x" * (MAX_MESSAGE_BYTES + 2), "more than"), (b"[1]\n", "malformed"), (b"{\n", "malformed")):
        (tmp_path / "line").write_bytes(body)
        with (tmp_path / "line").open("rb") as file, pytest.raises(ExecutionError, match=words):
            LinePipe(file.fileno(), 1).read()


@pytest.mark.parametrize("row", [(10, 9, 8, 9, 1), (10, 11, 0, 10, 1), (10, 11, 10, 9, 1), (10, 11, 9, 10, -1)])
def test_prices_that_cannot_be_are_refused(row: tuple[int, int, int, int, int]) -> None:
    with pytest.raises(ExecutionError):
        SessionPrices(0, 10, {"AAA": row})


@pytest.mark.parametrize(
    ("version", "fine"),
    [("2.0.0rc6", True), ("2.0.0rc5", False), ("2.0.0", True), ("2.0.3", True), ("2.1.0", False), ("1.231.0", False)],
)
def test_versions_that_are_supported(version: str, fine: bool) -> None:
    assert is_supported(version) is fine


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ('[[3, 11], ""]', "needs Python 3.12 or later; Alphaloom itself may stay on 3.11"),
        ('[[3, 12], ""]', "does not have NautilusTrader"),
        ('[[3, 12], "1.231.0"]', "not supported"),
        ("no answer", "not a Python that runs"),
        ('[[3, 13], "2.0.0rc6"]', ""),
    ],
)
def test_a_python_that_cannot_be_used_is_an_error_that_says_what_to_do(answer: str, words: str, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho '{answer}'\n")
    python.chmod(0o755)
    if not words:
        assert check_nautilus(python) == "2.0.0rc6"
        return
    with pytest.raises(ExecutionError, match=words) as raised:
        check_nautilus(python)
    assert "uv pip install" in raised.value.hint
    assert raised.value.exit_code == 3


@pytest.mark.parametrize("python", [None, Path("/nowhere/python")])
def test_no_python_is_an_error_that_names_the_setting(python: Path | None) -> None:
    with pytest.raises(ExecutionError) as raised:
        check_nautilus(python)
    assert raised.value.field == "execution.nautilus.python"
