"""Workers: what becomes of them, and of the calls, when something dies."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from alphaloom.sandbox import Busy, Frames, Job, Limits, Outcome, Sandbox, SandboxError, SandboxUnavailable
from alphaloom.sandbox.backend import WorkerBroken
from alphaloom.sandbox.pool import WorkerPool

pytestmark = pytest.mark.integration

FRAMES = Frames({"close": np.ones((3, 2))}, np.datetime64("2020-01-01") + np.arange(3), ("A", "B"))
JOB = Job("def factor(panel):\n    return panel['close']", FRAMES)
GOOD = Outcome(np.ones((3, 2)), None, 1.0, 1.0, 1.0)


class Fragile:
    """A backend whose workers break the first `breaks` times and wait for `gate`."""

    name, stamp = "fragile", ""

    def __init__(self, breaks: int = 0, gate: threading.Event | None = None) -> None:
        self.breaks, self.gate, self.started, self.closed = breaks, gate, 0, 0
        self.limits: list[Limits] = []

    def check(self) -> None:
        pass

    def start(self) -> Fragile:
        self.started += 1
        return self

    def call(self, job: Job, limits: Limits) -> Outcome:
        self.limits.append(limits)
        if self.gate is not None:
            assert self.gate.wait(30)
        if self.started <= self.breaks:
            raise WorkerBroken("as planned")
        return GOOD

    def stop(self) -> None:
        if self.gate is not None:
            self.gate.set()

    def close(self) -> None:
        self.closed += 1


def children(of: int) -> list[int]:
    """Return the processes below a process, all generations; one that ends while it is asked has none."""
    found = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{of}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *children(int(child))]
    return found


def servers() -> set[int]:
    return set(children(os.getpid()))


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    try:
        made = Sandbox(Limits(wall_s=20))
    except SandboxUnavailable as error:
        pytest.skip(f"{error.field}: {error.message}")
    with made:
        yield made


def test_a_broken_worker_is_replaced_and_its_job_done_again() -> None:
    backend = Fragile(breaks=1)
    assert WorkerPool(backend, Limits(), 1).run(JOB) is GOOD
    assert (backend.started, backend.closed) == (2, 1)


def test_a_worker_that_always_breaks_is_told() -> None:
    with pytest.raises(SandboxUnavailable, match="twice"):
        WorkerPool(Fragile(breaks=9), Limits(), 1).run(JOB)


def test_a_job_may_be_given_more_time_and_nothing_else() -> None:
    backend = Fragile()
    pool = WorkerPool(backend, Limits(wall_s=3, memory_mb=64), 1)
    for job in (JOB, replace(JOB, patience=4)):
        pool.run(job)
    assert backend.limits == [Limits(wall_s=3, memory_mb=64), Limits(wall_s=12, memory_mb=64)]


def test_a_full_queue_is_told_at_once() -> None:
    gate = threading.Event()
    pool = WorkerPool(Fragile(gate=gate), Limits(), 1, waiting=1)
    callers = [threading.Thread(target=pool.run, args=(JOB,)) for _ in range(2)]
    for caller in callers:
        caller.start()
    while pool.free:
        time.sleep(0.01)
    with pytest.raises(Busy):
        pool.run(JOB)
    gate.set()
    for caller in callers:
        caller.join()
    assert pool.run(JOB) is GOOD


def test_a_call_that_waits_when_it_is_closed_is_told_and_does_not_run() -> None:
    gate = threading.Event()
    told: list[str] = []
    backend = Fragile(gate=gate)
    pool = WorkerPool(backend, Limits(), 1)

    def call() -> None:
        try:
            told.append(str(pool.run(JOB) is GOOD))
        except SandboxError as error:
            told.append("closed" if "closed" in error.message else error.message)

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    while pool.free > 62 or not backend.started:
        time.sleep(0.01)
    pool.close()
    gate.set()
    for caller in callers:
        caller.join(30)
    assert sorted(told) == ["True", "closed", "closed"]
    assert (backend.started, backend.closed) == (1, 2)  # the worker, once its call had ended, and the backend


def test_a_server_that_was_killed_comes_back(sandbox: Sandbox) -> None:
    sandbox.run(JOB.code, FRAMES)
    for process in servers():
        with suppress(ProcessLookupError):  # the others end with their server
            os.kill(process, signal.SIGKILL)
    assert sandbox.run(JOB.code, FRAMES).all()


def test_a_worker_killed_in_the_middle_loses_nothing_and_leaves_nothing(sandbox: Sandbox) -> None:
    sandbox.run(JOB.code, FRAMES)
    before = servers()
    long = Job("for _ in range(3 * 10**7): pass\n" + JOB.code, FRAMES)
    outcomes: list[Outcome] = []
    caller = threading.Thread(target=lambda: outcomes.extend(sandbox.run_each([long])))
    caller.start()
    while not servers() - before:
        time.sleep(0.01)
    worker = min(servers() - {min(before)})
    os.kill(worker, signal.SIGKILL)
    caller.join()
    assert outcomes[0].unwrap().all()
    sandbox.close()
    assert not servers() & before


def test_nothing_is_left_when_it_is_closed(sandbox: Sandbox) -> None:
    sandbox.run(JOB.code, FRAMES)
    started = servers()
    assert started
    sandbox.close()
    deadline = time.monotonic() + 60
    while (left := [one for one in started if Path(f"/proc/{one}").exists()]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left == []
    with pytest.raises(SandboxError, match="closed"):
        sandbox.run(JOB.code, FRAMES)


def test_descriptors_do_not_pile_up(sandbox: Sandbox) -> None:
    def used() -> list[int]:
        every = [os.getpid(), *sorted(servers())[:2]]  # the server and its worker; a watch may still be on its way out
        open_to_us = [one for one in every if os.access(f"/proc/{one}/fd", os.R_OK)]  # a worker: to root only
        return [len(list(Path(f"/proc/{one}/fd").iterdir())) for one in open_to_us]

    bad = Job("import socket\nsocket.socket()", FRAMES)
    list(sandbox.run_each([JOB, bad]))
    before = used()
    list(sandbox.run_each([JOB, bad, Job("1/0", FRAMES)] * 7))
    assert used() == before


@pytest.mark.usefixtures("sandbox")  # there may be none here
def test_whoever_leaves_early_does_not_wait_for_the_calls_under_way() -> None:
    endless = replace(JOB, code="def factor(panel):\n    while True:\n        pass")
    with Sandbox(Limits(wall_s=300.0), workers=2) as box:
        answers = box.run_each([JOB, *[endless] * 4])
        np.testing.assert_array_equal(next(answers).unwrap(), FRAMES.fields["close"])
        began = time.monotonic()
        answers.close()  # type: ignore[attr-defined]  # it is a generator
        assert time.monotonic() - began < 60.0
        assert box.run(JOB.code, FRAMES).shape == (3, 2)
