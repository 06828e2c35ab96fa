"""What a person and a program are told of the record of calls."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from alphaloom.desk.cli.main import run_command
from alphaloom.ledger.calls import CallLog, CallOutcome, ToolCall

Capture = pytest.CaptureFixture[str]


def record(workspace: Path, *names: str) -> Path:
    with CallLog.open(workspace / "audit", clock=lambda: datetime(2026, 1, 2, tzinfo=UTC)) as log:
        for name in names:
            log.append(
                ToolCall(
                    "1a2b3c4d", "market", name, CallOutcome.REFUSED, "forbidden", rows=3, bytes=10, duration_ms=1.5
                )
            )
    return log.path


def told(capsys: Capture, *arguments: str, code: int = 0) -> Any:
    capsys.readouterr()
    assert run_command(["audit", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def said(capsys: Capture, *arguments: str, code: int = 0) -> str:
    capsys.readouterr()
    assert run_command(["audit", *arguments]) == code
    captured = capsys.readouterr()
    return captured.out + captured.err


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder whose workspace has a record."""
    monkeypatch.chdir(tmp_path)
    record(tmp_path / ".alphaloom", "first", "\x1b[31mred")
    return tmp_path


def test_the_newest_calls_are_told_in_lines_that_steer_no_terminal(capsys: Capture) -> None:
    last = "2026-01-02T00:00:00Z  1a2b3c4d  market.?[31mred  refused (forbidden)  10 bytes, 3 rows, 1.5 ms"
    assert said(capsys, "tail").splitlines()[-1] == last
    assert [row["tool"] for row in told(capsys, "tail", "-n", "1")["calls"]] == ["\x1b[31mred"]


def test_a_whole_record_is_proven_and_a_changed_one_ends_with_1(capsys: Capture, workspace: Path) -> None:
    assert "2 calls in 1 segment" in said(capsys, "verify")
    assert told(capsys, "verify")["ok"] is True
    path = record(workspace / ".alphaloom", "more")
    path.write_bytes(path.read_bytes().replace(b'"more"', b'"less"'))
    assert f"changed: {path.name}, line 2: the line is not what was written" in said(capsys, "verify", code=1)
    found = told(capsys, "verify", code=1)
    assert (found["ok"], found["findings"][0]["line"]) == (False, 2)
    assert told(capsys, "export", "calls.jsonl", "--by", "Ann", code=1)["ok"] is False


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_an_export_has_a_summary_against_which_it_is_proven(capsys: Capture, kind: str, workspace: Path) -> None:
    summary = told(capsys, "export", f"calls.{kind}", "--by", "Ann")["summary"]
    assert told(capsys, "verify", "--summary", summary)["ok"] is True
    assert "is there already" in said(capsys, "export", f"calls.{kind}", code=1)
    for path in (workspace / ".alphaloom" / "audit").iterdir():
        path.unlink()
    record(workspace / ".alphaloom", "all", "anew")
    assert said(capsys, "verify")
    assert said(capsys, "verify", "--summary", summary, code=1)


def test_what_cannot_be_done_is_said(capsys: Capture, tmp_path: Path) -> None:
    assert "There is no record of calls in nowhere" in said(capsys, "tail", "--workspace", "nowhere", code=2)
    assert not (tmp_path / "nowhere").exists()
    assert told(capsys, "export", "calls.xlsx", code=2)["allowed"] == [".jsonl", ".csv", ".parquet"]
    assert "there is no summary" in said(capsys, "verify", "--summary", "none.json", code=1)


def test_calls_are_followed_until_it_is_interrupted(workspace: Path) -> None:
    command = [sys.executable, "-m", "alphaloom", "audit", "tail", "--follow", "--json"]
    with subprocess.Popen(command, cwd=workspace, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        timer = threading.Timer(60, process.kill)
        timer.start()
        there = [json.loads(process.stdout.readline())["tool"] for _ in range(2)]
        record(workspace / ".alphaloom", "new")
        came = json.loads(process.stdout.readline())["tool"]
        process.terminate()
        timer.cancel()
    assert (there, came) == (["first", "\x1b[31mred"], "new")


def test_what_verifying_shows_is_said_and_no_more(capsys: Capture, workspace: Path) -> None:
    alone = " ".join(said(capsys, "verify").split())
    assert "the chain is consistent; it was not compared with a head noted elsewhere" in alone
    assert "nothing was changed" not in alone
    (tip,) = told(capsys, "verify")["tips"]
    assert f"head {tip['hash']} (line {tip['sequence']} of {tip['segment']})" in alone
    record(workspace / ".alphaloom", "later")
    assert "what was noted earlier is unchanged" in said(capsys, "verify", "--head", tip["hash"].upper())


def test_a_head_that_is_no_longer_there_ends_with_1(capsys: Capture) -> None:
    assert f"no line has the noted head {'0' * 64}" in said(capsys, "verify", "--head", "0" * 64, code=1)
    assert "64 hexadecimal digits" in said(capsys, "verify", "--head", "abc", code=2)
