"""How long code may take: a second try on a busy machine, and a fixed allowance on days that nobody may see.

The time of a trial on selection days could reveal them: code may work longer where a price rose. So all its calls on days
after search share an allowance of CPU time that depends on the number of these days alone. A server answers at whole steps of
a clock (`TimeSteps`), before anything of the trial can be seen. What is left to the code is at which of a few steps the answer
comes.
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
"""How many times the usual seconds the second try may take."""


BASE_ALLOWANCE_SECONDS, ALLOWANCE_SECONDS_PER_DAY = 60.0, 1.0
"""CPU seconds of all calls on days after search: a sum, and more for each day; a usual call takes 0.03."""
CALLS_PER_CHECK = 8
"""Calls that are under way when an allowance is looked at."""
WALL_SECONDS_PER_CPU_SECOND = 4.0
"""Seconds by the wall clock that count for one of CPU: behind some walls a call tells its CPU time itself."""


@dataclass(frozen=True)
class TimeSteps:
    """Work that ends at whole steps of a clock.

    Attributes
    ----------
    seconds, sleep : callable
        A clock that only ever rises, and what waits so many seconds.
    step : float
        Seconds.
    """

    seconds: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    step: float = 60.0

    @contextmanager
    def even(self) -> Iterator[None]:
        """Wait, after the work and also after its failure, until a whole number of steps has gone by since it began."""
        began = self.seconds()
        try:
            yield
        finally:
            self.sleep((began - self.seconds()) % self.step)


class Allowance:
    """A runner of which the calls share a fixed CPU time; when it is used up, each further call has taken too long.

    Parameters
    ----------
    runner
        Runs the calls.
    days
        How many days they may compute: nothing else decides how much they may use.
    """

    def __init__(self, runner: Runner, days: int) -> None:
        self._runner, self._left = runner, BASE_ALLOWANCE_SECONDS + ALLOWANCE_SECONDS_PER_DAY * days

    @property
    def stamp(self) -> str:
        """Return the other runner's stamp."""
        return self._runner.stamp

    def run_each(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Run each job while there is time; answers come in the order of the jobs."""
        waiting = iter(jobs)
        while group := list(islice(waiting, CALLS_PER_CHECK)):
            found = self._runner.run_each(group) if self._left > 0 else (_make_timeout() for _ in group)
            for outcome in found:
                self._left -= max(outcome.cpu_ms, outcome.wall_ms / WALL_SECONDS_PER_CPU_SECOND) / 1000.0
                yield outcome


def _make_timeout() -> Outcome:
    error = TimedOut("the code takes too long on the days after search", field="cpu_s", hint="Vectorise its loops.")
    return Outcome(None, error, 0.0, 0.0, 0.0)


class RetryingRunner:
    """A runner that gives a call that met its limits one more try, with more time.

    After one call that meets them again there is no further try: the code is slow, not the machine.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner, self._patient = runner, True

    @property
    def stamp(self) -> str:
        """Return the other runner's stamp."""
        return self._runner.stamp

    def run_each(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Run each job, some of them twice; answers come in the order of the jobs."""
        given: deque[Job] = deque()
        for outcome in self._runner.run_each(_note_jobs(jobs, given)):
            yield self._again(given.popleft(), outcome)

    def _again(self, job: Job, outcome: Outcome) -> Outcome:
        if not self._patient or not _is_limit(outcome):
            return outcome
        [second] = self._runner.run_each([replace(job, patience=SECOND_TRY_FACTOR)])
        self._patient = not _is_limit(second)
        return second


def _note_jobs(jobs: Iterable[Job], given: deque[Job]) -> Iterator[Job]:
    """Yield jobs, and keep those whose answers are still to come."""
    for job in jobs:
        given.append(job)
        yield job


def _is_limit(outcome: Outcome) -> bool:
    return isinstance(outcome.error, TimedOut | OutOfMemory)
