"""`kill -9` at random moments: the same results to the byte, and no answered model call is asked again."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from alphaloom.sandbox import probe_sandbox

pytestmark = pytest.mark.integration

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
    "budget.evaluations=45",
    "budget.trials=4",
]
"""A campaign of a few seconds that still spends trials and submits a combination."""

KILLS, KILLS_EACH = 50, 5

WORKER = Path(__file__).with_name("worker.py")


def start(workspace: Path, log: Path, *more: str) -> subprocess.Popen[bytes]:
    """Run or resume the campaign in a process of its own; it logs each model call that reaches the provider."""
    address, others = [one for one in more if "://" in one], [one for one in more if "://" not in one]
    command = [sys.executable, str(WORKER), str(workspace), str(log), *address, *SMALL, *others]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(workspace: Path, log: Path, *more: str) -> bytes:
    """Run to the end and return the bytes of results.json."""
    process = start(workspace, log, *more)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors.decode()[-2000:]
    (results,) = workspace.glob("runs/*/results.json")
    return results.read_bytes()


def lines(log: Path) -> list[tuple[str, str]]:
    """Return what was logged, in order; the last line of a killed process may be cut off."""
    found: list[tuple[str, str]] = []
    for line in log.read_text().splitlines() if log.exists() else []:
        with suppress(json.JSONDecodeError):
            found += json.loads(line).items()
    return found


def count(log: Path) -> int:
    """Return how many lines were logged."""
    return len(lines(log))


def answered_again(log: Path) -> list[str]:
    """Return the calls that were sent after their answer was in the ledger."""
    answered: set[str] = set()
    again = []
    for word, key in lines(log):
        answered |= {key} if word == "answered" else set()
        again += [key] if word == "sent" and key in answered else []
    return again


def bill(log: Path) -> Counter[str]:
    """Return how often the model charged for each question."""
    return Counter(key for word, key in lines(log) if word == "charged")


class Nursery:
    """Starts workers from one process that has loaded everything, so that a kill costs no start of Python's."""

    def __init__(self) -> None:
        command = [sys.executable, str(WORKER), "--nurse"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def start(self, workspace: Path, log: Path) -> Child:
        """Run or resume the campaign in a process of its own, one at a time."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([str(workspace), str(log), *SMALL]) + "\n")
        self.process.stdin.flush()
        return Child(self.read(), self)

    def read(self) -> int:
        """Return the next number that the process tells."""
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


@dataclass
class Child:
    """A worker that a nursery started."""

    pid: int
    nursery: Nursery
    status: int | None = None

    def wait(self, seconds: float) -> int | None:
        """Return how it ended, or None if it is still at work after a while."""
        assert self.nursery.process.stdout is not None
        if self.status is None and select.select([self.nursery.process.stdout], [], [], seconds)[0]:
            self.status = self.nursery.read()
        return self.status

    def struck(self, seconds: float) -> bool:
        """Kill it after a while; return False if it was done before."""
        if self.wait(seconds) is None:
            os.kill(self.pid, signal.SIGKILL)
        return self.wait(60) == -signal.SIGKILL


@dataclass
class Storm:
    """One campaign that is killed again and again; `lost` counts the calls that each kill caught under way."""

    nursery: Nursery
    workspace: Path
    log: Path
    lost: list[int] = field(default_factory=list)

    def strike(self, draw: random.Random, whole: float, written: int) -> bool:
        """Run or resume it and kill it, at any time or among the calls; return False if it was done before."""
        before = count(self.log)
        child = self.nursery.start(self.workspace, self.log)
        if draw.random() < 0.6:
            most = before + draw.randrange(1, written // 2)
            while count(self.log) < most and child.wait(0.01) is None:
                pass
            struck = child.struck(draw.uniform(0.0, 0.1))
        else:
            struck = child.struck(draw.uniform(0.0, whole))
        under_way = Counter(word for word, _ in lines(self.log)[before:])
        self.lost += [under_way["charged"] - under_way["delivered"]] if struck else []
        return struck

    def kill_after(self, most: int) -> None:
        """Run or resume it and kill it when so many lines are logged."""
        child = self.nursery.start(self.workspace, self.log)
        while count(self.log) < most and child.wait(0.01) is None:
            pass
        assert child.struck(0.0)

    def through(self) -> bytes:
        """Let it through and return the bytes of results.json."""
        status = self.nursery.start(self.workspace, self.log).wait(600)
        assert status == 0, self.log.with_suffix(".said").read_text()[-2000:]
        (results,) = self.workspace.glob("runs/*/results.json")
        return results.read_bytes()


@pytest.fixture
def storm(tmp_path: Path) -> Iterator[Callable[[str], Storm]]:
    nursery = Nursery()
    yield lambda name: Storm(nursery, tmp_path / name, tmp_path / f"{name}.jsonl")
    nursery.close()


@pytest.mark.slow
def test_killed_at_fifty_random_moments_it_ends_the_same(storm: Callable[[str], Storm]) -> None:
    calm = storm("calm")
    calm.through()  # the first one compiles kernels; time is taken of the second
    began, calm = time.monotonic(), storm("again")
    expected = calm.through()
    whole = time.monotonic() - began
    draw, storms = random.Random(50), [storm("storm-0")]
    while sum(len(run.lost) for run in storms) < KILLS:
        if len(storms[-1].lost) < KILLS_EACH and storms[-1].strike(draw, whole, count(calm.log)):
            continue
        check(storms[-1], expected, calm.log)
        storms.append(storm(f"storm-{len(storms)}"))
    check(storms[-1], expected, calm.log)
    lost = [calls for run in storms for calls in run.lost]
    assert max(lost) >= 2, "no kill fell among concurrent calls"
    told = (
        f"{sum(n > 1 for n in lost)} of them caught several calls under way; {count(calm.log)} lines are logged in calm"
    )
    print(f"{len(lost)} kills over {len(storms)} campaigns of {whole:.0f} s; {told}")
    print(f"{sum(bill(calm.log).values())} calls are charged in calm; {sum(lost)} calls were lost in all storms")


def check(storm: Storm, expected: bytes, calm: Path) -> None:
    """Let a campaign end: same bytes, no recorded answer asked again, and only lost calls charged anew."""
    assert storm.through() == expected
    assert answered_again(storm.log) == []
    assert bill(storm.log).keys() == bill(calm).keys()
    assert sum(bill(storm.log).values()) - len(bill(calm)) <= sum(storm.lost) + len(storm.lost)


def test_killed_twice_it_ends_the_same(storm: Callable[[str], Storm]) -> None:
    """Both kills fall within the search: once after a model's reply, once much later."""
    expected, struck = storm("calm").through(), storm("storm")
    for most in (6, 40):
        struck.kill_after(most)
    assert struck.through() == expected
    assert answered_again(struck.log) == []


PYTHON = ("agents.python=true", "agents.hypotheses=6", "evidence.windows.search=0.5")
"""So that agents write Python factors, and some come before the gate."""


@pytest.mark.slow
def test_with_python_factors_it_ends_the_same_too(tmp_path: Path) -> None:
    if not probe_sandbox().available:
        pytest.skip(f"the sandbox cannot run here: {probe_sandbox().problem}")
    expected = finish(tmp_path / "calm", tmp_path / "calm.jsonl", *PYTHON)
    assert b"def factor(panel)" in expected
    workspace, log = tmp_path / "storm", tmp_path / "storm.jsonl"
    for most in (60, 100):
        kill_after(start(workspace, log, *PYTHON), log, most)
    assert finish(workspace, log, *PYTHON) == expected
    assert answered_again(log) == []


def wait_for(process: subprocess.Popen[bytes], log: Path, most: int) -> None:
    """Wait until so many lines are logged, or the process has ended."""
    while count(log) < most and process.poll() is None:
        time.sleep(0.02)


def kill_after(process: subprocess.Popen[bytes], log: Path, most: int) -> None:
    """Kill a process when it has logged so many lines of model calls."""
    wait_for(process, log, most)
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
