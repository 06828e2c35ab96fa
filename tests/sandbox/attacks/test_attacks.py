"""Hostile code of every class gets nothing out of the sandbox and changes nothing, as root and as anybody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .snippet import read
from .users import NOBODY, ROOT, OutOfReach, copied, paths, within_reach

pytestmark = pytest.mark.integration

CLASSES = sorted({snippet.group for snippet in read()})
USERS = ("root", "nobody") if os.getuid() == 0 else ("whoever is here",)
PROOFS = ("behaves_when_tested", "time_and_randomness")
"""Classes that are asked for proofs, which take their time and hang on no user."""
SENT = {user: [group for group in CLASSES if user != "root" or group not in PROOFS] for user in USERS}


def started(user: str, *more: str, root: Path = ROOT, search: str = "") -> subprocess.Popen[str]:
    become = ("--user", str(NOBODY)) if user == "nobody" else ()
    seed = " ".join((user, *more))  # names of sockets are drawn from it, and two runs may not share one
    command = [sys.executable, "-m", "tests.sandbox.attacks", "--seed", seed, *become, *more]
    environment = {**os.environ, "PYTHONPATH": search or paths()}
    return subprocess.Popen(
        command, env=environment, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.fixture(scope="module")
def told() -> dict[str, list[dict[str, Any]]]:
    """Attack as every user at the same time, and return what each run told."""
    runs = {user: started(user, "--classes", ",".join(SENT[user])) for user in USERS}
    said = {user: run.communicate() for user, run in runs.items()}
    for lines, errors in said.values():
        assert lines, errors
    return {user: [json.loads(line) for line in lines.splitlines()] for user, (lines, _) in said.items()}


@pytest.fixture
def records(request: pytest.FixtureRequest, told: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return what the run of one user told; skip where the kernel lacks a primitive."""
    found = told[request.param]
    if "unavailable" in found[0]:
        pytest.skip(f"{found[0]['unavailable']}: {found[0]['message']}")
    return found


def test_there_are_enough_of_them_and_each_has_a_name_of_its_own() -> None:
    titles = Counter(snippet.title for snippet in read())
    assert titles.most_common(1)[0][1] == 1
    assert len(titles) >= 150
    assert len(CLASSES) >= 20
    assert all(snippet.proof and snippet.code for snippet in read())


@pytest.mark.parametrize(
    ("records", "group"), [(user, group) for user, groups in SENT.items() for group in groups], indirect=["records"]
)
def test_nothing_gets_through(records: list[dict[str, Any]], group: str) -> None:
    mine = [record for record in records if record.get("group") == group]
    assert {record["title"]: record["escapes"] for record in mine if record["escapes"]} == {}
    assert len(mine) == sum(snippet.group == group for snippet in read(group))


@pytest.mark.parametrize("records", USERS, indirect=True)
def test_nothing_is_left(records: list[dict[str, Any]]) -> None:
    assert records[-1] == {"end": True, "escaped": 0, "left": []}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a process as nobody")
def test_nobody_attacks_a_checkout_in_a_closed_folder(tmp_path: Path) -> None:
    root = tmp_path / "checkout"
    search = paths(root, copied(root))
    tmp_path.chmod(0o700)
    lines, errors = started("nobody", "--only", "eval/query_that_reads", root=root, search=search).communicate()
    assert not errors
    last = json.loads(lines.splitlines()[-1])
    assert "unavailable" in last or last == {"end": True, "escaped": 0, "left": []}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a process as nobody")
def test_where_nobody_may_not_write_there_are_no_attacks_as_nobody(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with pytest.raises(OutOfReach), within_reach(NOBODY, tmp_path):
        pass


def test_every_snippet_is_data_and_none_is_imported() -> None:
    assert {path.suffix for path in Path(__file__).with_name("snippets").iterdir()} == {".txt"}


def test_without_walls_the_witnesses_see_what_gets_through() -> None:
    """The suite can fail: nothing here rests on walls that are never missed."""
    reached = ("eval", "files_read", "proc_snoop", "tcp", "udp", "unix")
    without = "landlock,namespaces,seccomp,clock"
    run = started(USERS[-1], "--classes", ",".join(reached), "--without", without)
    lines, errors = run.communicate()
    records = [json.loads(line) for line in lines.splitlines()]
    assert records, errors
    if "unavailable" in records[0]:
        pytest.skip(f"{records[0]['unavailable']}: {records[0]['message']}")
    escapes = Counter(record["group"] for record in records if record.get("escapes"))
    assert all(escapes[group] >= 3 for group in reached), escapes
    seen = " ".join(word for record in records for word in record.get("escapes", ()))
    for word in ("secret: file", "secret: env", "secret: argv", "secret: memory", "the canary was read",
                 "tcp was spoken to", "udp was spoken to", "unix path was spoken to",
                 "unix name was spoken to"):  # fmt: skip  # a table
        assert word in seen
