"""Workspaces of version b756a02 open: a finished run, and one that was killed after twenty evaluations."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from alphaloom.desk.cli.main import run_command

ARCHIVE = Path(__file__).with_name("b756a02.tar.xz")
pytestmark = pytest.mark.slow


@pytest.fixture
def old(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], command: str, workspace: Path) -> dict[str, Any]:
    capsys.readouterr()
    assert run_command([*command.split(), "--workspace", str(workspace), "--json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out.partition("\n")[0])
    return answer


def test_a_finished_run_is_read_verified_and_counted(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workspace = old / "finished"
    for command in ("status", "log latest", "audit verify", "resume latest"):
        told(capsys, command, workspace)
    assert [row["status"] for row in told(capsys, "library list", workspace)["factors"]] == ["live"]
    assert told(capsys, "evidence verify latest", workspace)["differ"] == 0


def test_a_killed_run_is_gone_on_with(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "resume latest", old / "cut")["evaluations"] == 60
