"""Time limits of code: a second try on a busy machine, and a fixed allowance on days that must stay hidden.

The duration of a trial on selection days could reveal them: code may work longer where a price rose. All its calls on
days after search therefore share an allowance of CPU time that depends only on the number of these days. A server
replies at whole steps of a clock (`TimeSteps`), before any result of the trial is visible. The code can then only
choose at which of a few steps the reply comes.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice

from ...sandbox import Job, Outcome, OutOfMemory, Runner, TimedOut

SECOND_TRY_FACTOR = 4
"""The second try may take this many times the usual seconds."""


BASE_ALLOWANCE_SECONDS, ALLOWANCE_SECONDS_PER_DAY = 60.0, 1.0
"""CPU seconds for all calls on days after search: a base, and more for each day; a usual call takes 0.03."""
CALLS_PER_CHECK = 8
"""Calls that run between two checks of an allowance."""
WALL_SECONDS_PER_CPU_SECOND = 4.0
"""Wall-clock seconds that count as one CPU second: with some isolation backends the call itself reports its CPU
time."""


@dataclass(frozen=True)
class TimeSteps:
    """Makes work end at whole steps of a clock.

    Attributes
    ----------
    seconds, sleep : callable
        A monotonic clock, and a function that waits for a number of seconds.
    step : float
        Length of a step in seconds.
    """

    seconds: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    step: float = 60.0

    @contextmanager
    def even(self) -> Iterator[None]:
        """Wait after the work, or its failure, until a whole number of steps has passed since its start."""
        began = self.seconds()
        try:
            yield
        finally:
            self.sleep((began - self.seconds()) % self.step)


class Allowance:
    """A runner whose calls share a fixed CPU time; when that is used up, every further call times out.

    Parameters
    ----------
    runner
        Runs the calls.
    days
        Number of days that they compute, the only input of the allowance.
    """

    def __init__(self, runner: Runner, days: int) -> None:
        self._runner, self._seconds_left = runner, BASE_ALLOWANCE_SECONDS + ALLOWANCE_SECONDS_PER_DAY * days

    @property
    def stamp(self) -> str:
        """Return the stamp of the wrapped runner."""
        return self._runner.stamp

    def run_each(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Run each job while there is time left; outcomes are in the order of the jobs."""
        pending = iter(jobs)
        while group := list(islice(pending, CALLS_PER_CHECK)):
            outcomes = self._runner.run_each(group) if self._seconds_left > 0 else (_make_timeout() for _ in group)
            for outcome in outcomes:
                self._seconds_left -= max(outcome.cpu_ms, outcome.wall_ms / WALL_SECONDS_PER_CPU_SECOND) / 1000.0
                yield outcome


def _make_timeout() -> Outcome:
    error = TimedOut("the code takes too long on the days after search", field="cpu_s", hint="Vectorise its loops.")
    return Outcome(None, error, 0.0, 0.0, 0.0)


class RetryingRunner:
    """A runner that repeats a call that met its limits once, with more time.

    After one call that meets the limits twice, no further call is repeated: the code is slow, not the machine.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner, self._may_retry = runner, True

    @property
    def stamp(self) -> str:
        """Return the stamp of the wrapped runner."""
        return self._runner.stamp

    def run_each(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Run each job, some of them twice; outcomes are in the order of the jobs."""
        pending: deque[Job] = deque()
        for outcome in self._runner.run_each(_record_jobs(jobs, pending)):
            yield self._retry(pending.popleft(), outcome)

    def _retry(self, job: Job, outcome: Outcome) -> Outcome:
        if not self._may_retry or not _is_limit(outcome):
            return outcome
        [second] = self._runner.run_each([replace(job, patience=SECOND_TRY_FACTOR)])
        self._may_retry = not _is_limit(second)
        return second


def _record_jobs(jobs: Iterable[Job], pending: deque[Job]) -> Iterator[Job]:
    """Yield jobs, and append them to those whose outcomes are pending."""
    for job in jobs:
        pending.append(job)
        yield job


def _is_limit(outcome: Outcome) -> bool:
    return isinstance(outcome.error, TimedOut | OutOfMemory)
