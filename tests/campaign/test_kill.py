"""`kill -9` at random moments: the same results to the byte, and no answered model call is asked again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from alphaloom.sandbox import status

SMALL = [
    "market.synthetic.days=420",
    "market.synthetic.names=60",
    "evidence.windows.min_selection_days=60",
    "evidence.windows.min_sealed_days=60",
    "agents.rounds=3",
    "agents.hypotheses=3",
    "agents.candidates=3",
    "agents.steps=1",
    "agents.min_search_t=0",
    "agents.early_search_t=0",
    "budget.evaluations=45",
    "budget.trials=4",
]
"""A campaign of a few seconds that still spends trials and submits a set."""

WORKER = Path(__file__).with_name("worker.py")


def start(workspace: Path, log: Path, *more: str) -> subprocess.Popen[bytes]:
    """Run or resume the campaign in a process of its own; it logs each model call that reaches the provider."""
    command = [sys.executable, str(WORKER), str(workspace), str(log), *SMALL, *more]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(workspace: Path, log: Path, *more: str) -> bytes:
    """Run to the end and return the bytes of results.json."""
    process = start(workspace, log, *more)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors.decode()[-2000:]
    (results,) = workspace.glob("runs/*/results.json")
    return results.read_bytes()


def answered_again(log: Path) -> list[str]:
    """Return the calls that were sent after their answer was in the ledger."""
    answered: set[str] = set()
    again = []
    for line in log.read_text().splitlines():
        entry = json.loads(line)
        answered |= {entry["answered"]} if "answered" in entry else set()
        again += [entry["sent"]] if entry.get("sent") in answered else []
    return again


@pytest.mark.slow
def test_killed_at_twenty_random_moments_it_ends_the_same(tmp_path: Path) -> None:
    began = time.monotonic()
    expected = finish(tmp_path / "calm", tmp_path / "calm.jsonl")
    whole = time.monotonic() - began
    draw, kills, storms = random.Random(20), 0, 0
    while kills < 20:
        workspace, log = tmp_path / f"storm-{storms}", tmp_path / f"storm-{storms}.jsonl"
        for _ in range(5):  # then let it through, and begin another
            kills += killed(start(workspace, log), draw.uniform(0.3, whole))
        assert finish(workspace, log) == expected
        assert answered_again(log) == []
        storms += 1
    print(f"{kills} kills over {storms} campaigns of {whole:.0f} s")


def test_killed_twice_it_ends_the_same(tmp_path: Path) -> None:
    """Both kills fall within the search: once after a model's reply, once much later."""
    expected = finish(tmp_path / "calm", tmp_path / "calm.jsonl")
    workspace, log = tmp_path / "storm", tmp_path / "storm.jsonl"
    for lines in (3, 20):
        kill_after(start(workspace, log), log, lines)
    assert finish(workspace, log) == expected
    assert answered_again(log) == []


PYTHON = ("agents.python=true", "agents.hypotheses=6", "evidence.windows.search=0.5")
"""So that agents write Python factors, and some come before the gate."""


@pytest.mark.slow
def test_with_python_factors_it_ends_the_same_too(tmp_path: Path) -> None:
    if not status().available:
        pytest.skip(f"the sandbox cannot run here: {status().problem}")
    expected = finish(tmp_path / "calm", tmp_path / "calm.jsonl", *PYTHON)
    assert b"def factor(panel)" in expected
    workspace, log = tmp_path / "storm", tmp_path / "storm.jsonl"
    for lines in (30, 50):
        kill_after(start(workspace, log, *PYTHON), log, lines)
    assert finish(workspace, log, *PYTHON) == expected
    assert answered_again(log) == []


def kill_after(process: subprocess.Popen[bytes], log: Path, lines: int) -> None:
    """Kill a process when it has logged so many lines of model calls."""
    for _ in range(3_000):
        if log.exists() and len(log.read_text().splitlines()) >= lines:
            break
        time.sleep(0.02)
    assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


def killed(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Kill a process after a while; return False if it was done before."""
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        return True
    assert process.returncode == 0
    return False
