"""No command waits for a pipe that it was given as a file, and no file of YAML swells beyond what is read."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from alphaloom.desk.cli.main import run_command

AFTER = 20.0
"""Seconds after which a command that waits for the pipe is let go, so that its test fails and does not hang."""


@contextmanager
def pipe(place: Path) -> Iterator[Path]:
    os.mkfifo(place)
    stop = threading.Event()

    def let_go() -> None:
        stop.wait(AFTER)
        while not stop.wait(0.1):
            os.close(os.open(place, os.O_RDWR | os.O_NONBLOCK))

    thread = threading.Thread(target=let_go)
    thread.start()
    try:
        yield place
    finally:
        stop.set()
        thread.join()


def laughs(levels: int = 40) -> str:
    """Return YAML of a few lines that stands for 9 to the power of `levels` values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 9)}]" for number in range(1, levels)]
    return "\n".join(lines) + "\n"


def campaign(folder: Path, section: str) -> str:
    (folder / "campaign.yaml").write_text(f"name: x\n{section}\n")
    return str(folder / "campaign.yaml")


PIPED = {
    "campaign.yaml": ["run", "X"],
    "panel.parquet": ["data", "audit", "X"],
    "panel.csv": ["data", "audit", "X"],
    "feed.xml": ["news", "add", "X"],
    "feed.jsonl": ["news", "add", "X"],
    "filing.txt": ["news", "add", "X"],
    "news.csv": ["news", "add", "X"],
    "news.parquet": ["news", "add", "X"],
    "tokens.yaml": ["token", "list", "--file", "X"],
    "oauth.yaml": ["serve", "mcp", "--http", "127.0.0.1:0", "--all", "--oauth", "X"],
    "plan.yaml": ["models", "serve", "X"],
    "tenants.yaml": ["models", "gate", "http://127.0.0.1:9", "--auth", "X", "--tenants", "X"],
    "config.json": ["models", "plan", "--gpu", "h200", "--model", "X"],
    "router.yaml": ["route", "hello", "--router", "X"],
    "prompts.jsonl": ["route", "--file", "X"],
    "formulas.txt": ["factor", "check", "--file", "X"],
    "factor.py": ["sandbox", "check", "X"],
    "code.py": ["factor", "check", "X"],
    "library.json": ["library", "import", "X"],
    "summary.json": ["audit", "verify", "--summary", "X"],
    "control.yaml": ["evidence", "control", "--campaign", "X"],
    "control.parquet": ["evidence", "control", "--panel", "X"],
}


@pytest.mark.parametrize("name", PIPED)
def test_a_pipe_in_place_of_a_file_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".alphaloom" / "audit").mkdir(parents=True)
    with pipe(tmp_path / name) as place:
        code = run_command([str(place) if word == "X" else word for word in PIPED[name]])
    text = " ".join(capsys.readouterr().err.split())
    assert (code, "not a regular file" in text) == (1 if name == "summary.json" else 2, True), text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ("market: {panel: panel.csv, sectors: given.csv}", "not a regular file"),
        ("steer: {hypotheses: given.yaml}", "not a regular file"),
        ("steer: {seed_library: given.txt}", "not a regular file"),
        ("steer: {prompts: given.md}", "there is no folder"),
        ("steer: {agent: 'given.py:f'}", "not a regular file"),
        ("context: {documents: [{path: given.txt}]}", "is not there"),
        ("models: {routing: {own_intents: {mine: {file: given.jsonl}}}}", "not a regular file"),
    ],
)
def test_a_pipe_that_a_campaign_file_names_is_refused(
    section: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"2020-01-{day:02},{name},10,11,9,10,1000" for day in (1, 2, 3) for name in "AB"]
    (tmp_path / "panel.csv").write_text("\n".join(["date,symbol,open,high,low,close,volume", *rows]) + "\n")
    (given,) = re.findall(r"given\.\w+", section)
    with pipe(tmp_path / given):
        code = run_command(["run", campaign(tmp_path, section)])
    text = " ".join(capsys.readouterr().err.split())
    assert (code, told in text) == (2, True), text
    assert "Traceback" not in text


SWELLING: Sequence[tuple[str, Sequence[str]]] = (
    ("campaign.yaml", ["run", "X"]),
    ("router.yaml", ["route", "hello", "--router", "X"]),
    ("tokens.yaml", ["token", "list", "--file", "X"]),
    ("oauth.yaml", ["serve", "mcp", "--http", "127.0.0.1:0", "--all", "--oauth", "X"]),
    ("plan.yaml", ["models", "serve", "X"]),
    ("tenants.yaml", ["models", "gate", "http://127.0.0.1:9", "--auth", "X", "--tenants", "X"]),
    ("control.yaml", ["evidence", "control", "--campaign", "X"]),
)


@pytest.mark.parametrize(("name", "command"), SWELLING)
def test_aliases_of_aliases_are_refused_before_they_are_written_out(
    name: str, command: Sequence[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(laughs())
    (tmp_path / name).chmod(0o600)
    assert run_command([str(tmp_path / name) if word == "X" else word for word in command]) == 2
    text = " ".join(capsys.readouterr().err.split())
    assert "aliases" in text
    assert "Traceback" not in text
