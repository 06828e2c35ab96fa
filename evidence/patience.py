"""A second try for a call that met its limits: a busy machine must not decide a verdict."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..sandbox import Job, Outcome, OutOfMemory, Runner, TimedOut

__all__ = ["PATIENCE", "Patient"]

PATIENCE = 4
"""How many times the usual seconds the second try may take."""


class Patient:
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
        for outcome in self._runner.run_each(_noted(jobs, given)):
            yield self._again(given.popleft(), outcome)

    def _again(self, job: Job, outcome: Outcome) -> Outcome:
        if not self._patient or not _is_limit(outcome):
            return outcome
        [second] = self._runner.run_each([replace(job, patience=PATIENCE)])
        self._patient = not _is_limit(second)
        return second


def _noted(jobs: Iterable[Job], given: deque[Job]) -> Iterator[Job]:
    """Yield jobs, and keep those whose answers are still to come."""
    for job in jobs:
        given.append(job)
        yield job


def _is_limit(outcome: Outcome) -> bool:
    return isinstance(outcome.error, TimedOut | OutOfMemory)
