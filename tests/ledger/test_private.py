"""Who may read what Alphaloom makes."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from alphaloom.ledger import Ledger, Run, write_json
from alphaloom.ledger.calls import CallLog
from alphaloom.ledger.files.private import file_mode, make_file, make_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")


def clock() -> datetime:
    return datetime(2020, 1, 2, tzinfo=UTC)


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def filled(workspace: Path) -> None:
    """Write one of everything that the ledger keeps."""
    with Ledger.open(workspace, clock=clock) as ledger, CallLog.open(workspace / "audit", clock=clock):
        ledger.runs.start(Run("one", {}, 1, "d", clock().isoformat()))
        ledger.objects.put(b"body")
        ledger.checkpoints("one")
        write_json(ledger.runs.folder("one") / "results.json", {})
        with ledger.runs.lock("one"), ledger.library.lock():
            pass


def test_a_workspace_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    workspace = tmp_path / "new" / "w"
    filled(workspace)
    found = {path.relative_to(tmp_path).as_posix(): mode(path) for path in (tmp_path / "new").rglob("*")}
    assert {"new/w/ledger.sqlite", "new/w/runs/one/checkpoints.sqlite", "new/w/audit/heads.json"} <= found.keys()
    assert {name: bits for name, bits in found.items() if bits & 0o077} == {}
    assert {mode(tmp_path / "new"), mode(workspace)} == {0o700}


def test_a_group_that_was_let_in_may_use_all_of_it(tmp_path: Path, umask: int) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    workspace.chmod(0o2770)
    filled(workspace)
    modes = {mode(path) for path in workspace.rglob("*") if path.is_dir()}
    assert modes == {0o2770}
    assert {mode(path) for path in workspace.rglob("*") if path.is_file()} == {0o660}


def test_a_folder_that_is_merely_open_to_a_group_shares_nothing(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    make_folder(tmp_path / "w")
    make_file(tmp_path / "w" / "x")
    assert (mode(tmp_path / "w"), mode(tmp_path / "w" / "x")) == (0o700, 0o600)


def test_what_is_there_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w").chmod(0o755)
    (tmp_path / "w" / "x").write_text("{}")
    (tmp_path / "w" / "x").chmod(0o640)
    make_folder(tmp_path / "w")
    make_file(tmp_path / "w" / "x")
    write_json(tmp_path / "w" / "x", {"a": 1})
    assert (mode(tmp_path / "w"), mode(tmp_path / "w" / "x"), file_mode(tmp_path / "w")) == (0o755, 0o640, 0o600)


def test_a_file_in_the_way_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(OSError, match="exists"):
        make_folder(tmp_path / "x")
