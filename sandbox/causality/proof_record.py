"""The proof that a factor's code is causal on a panel, with a statement of its limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..job import Job, Outcome, Runner

SCOPE_SENTENCE = (
    "All this is said of this code on this panel. It cannot show that whoever wrote the code did not know these "
    "prices, nor that the panel's own columns were known on their day."
)
REPEATABLE_SENTENCE = (
    "Repeatable: two calls on the same panel, in interpreters that were started apart, gave the same bits. Code that "
    "is random on few calls may pass: no wall takes the processor's own random numbers away."
)
ALWAYS_TRIED_DAYS = 2
"""Days that are always tried, so that an author knows them: the first with a value and the last but one."""


@dataclass(frozen=True, slots=True, eq=False)
class CausalProof:
    """A factor's values on a panel, and the tests that they passed.

    Attributes
    ----------
    values : NDArray[np.float64]
        `[T, N]`, NaN where there is no value. If swept, each day was computed by a process that held no later day;
        else they come from one call on the whole panel, without the days of the start-up.
    seed : int
        Seed of the tested days and futures; the same call with it gives the same proof.
    drawn : bool
        Whether the seed was drawn after the code was handed in; else it was given, and the author may have known it.
    cut_off, replaced : tuple of datetime.date
        Days after which all data was cut off, or replaced by another future, without a change up to the day.
    swept : int
        Days that were computed point in time; 0 without a sweep.
    memory : int or None
        Number of days back that the processes of the sweep were given; None: all.
    start_up : int
        Days at the start on which the code raises an error, because the panel is too short; they have no values.
    start_up_error : str
        That error.
    first : datetime.date
        The first day with a value.
    warm_up : int
        Days before it.
    cost : Cost
        Cost of all calls.
    stamp : str
        The warning that stays with every value computed without a boundary; else empty.
    """

    values: NDArray[np.float64]
    seed: int
    drawn: bool
    cut_off: tuple[date, ...]
    replaced: tuple[date, ...]
    swept: int
    memory: int | None
    start_up: int
    start_up_error: str
    first: date
    warm_up: int
    cost: Cost
    stamp: str = ""

    @property
    def point_in_time(self) -> bool:
        """Return whether each day's values come from a process that held no later day."""
        return self.swept > 0

    @property
    def words(self) -> tuple[str, ...]:
        """Return sentences on what is proven and what is not."""
        return (
            REPEATABLE_SENTENCE,
            *(self._describe_sweep() if self.swept else self._describe_cuts()),
            *self._describe_start_up(),
            SCOPE_SENTENCE,
        )

    def _describe_cuts(self) -> tuple[str, ...]:
        days = len({*self.cut_off, *self.replaced})
        unknown = max(days - ALWAYS_TRIED_DAYS, 0)
        screened = (
            f"Screened: no value changed when all days after one of {len(self.cut_off)} days were cut off, or all days "
            f"after one of {len(self.replaced)} were replaced by another plausible future."
        )
        draft = (
            f"The values are a draft, since only {days} of {len(self.values):,} days were tried. Code that looks one "
            f"day ahead on a tenth of the days passes up to {round(100 * 0.9**unknown)} times in 100, and its author "
            "may try "
            "again; code that does so on one day passes nearly always. A sweep finds both, and hands on no value that "
            "knows the future."
        )
        return screened, self._describe_seed(), draft

    def _describe_seed(self) -> str:
        if self.drawn:
            return (
                f"Seed {self.seed}, by which the days were chosen, was drawn after the code was handed in, so its "
                "author "
                "could not know them; only the first day with a value and the last but one are always among them."
            )
        return (
            f"Seed {self.seed}, by which the days were chosen, was given. An author who knew it could write code that "
            "looks ahead on all other days; without a given seed one is drawn after the code is handed in."
        )

    def _describe_sweep(self) -> tuple[str, ...]:
        span = "all days up to it" if self.memory is None else f"the {self.memory} days up to it"
        sentence = (
            f"Swept: each of {self.swept - self.start_up:,} days was computed again by a process of its own that was "
            f"shown {span} and no "
            "later one, and came out the same. These are the values that are handed on, so no value can know the "
            "future."
        )
        return (sentence,)

    def _describe_start_up(self) -> tuple[str, ...]:
        if not self.start_up:
            return ()
        sentence = (
            f"Not shown for the first {self.start_up} days: the code raises an error on panels of fewer than "
            f"{self.start_up + 1} days ({self.start_up_error}). These days have no values here, whatever a call on the "
            "whole "
            "panel says of them; all else is said of later days alone."
        )
        return (sentence,)

    def record(self) -> dict[str, Any]:
        """Return the proof as plain JSON, without the values."""
        return {
            "seed": self.seed,
            "drawn": self.drawn,
            "cut_off": [day.isoformat() for day in self.cut_off],
            "replaced": [day.isoformat() for day in self.replaced],
            "swept": self.swept,
            "memory": self.memory,
            "point_in_time": self.point_in_time,
            "start_up": self.start_up,
            "start_up_error": self.start_up_error,
            "first": self.first.isoformat(),
            "warm_up": self.warm_up,
            "covered": round(float(np.isfinite(self.values).mean()), 6),
            "cost": self.cost.record(),
            "stamp": self.stamp,
            "words": list(self.words),
        }


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of calls: their number, CPU seconds in total, and the largest wall milliseconds and resident MiB."""

    calls: int
    cpu_s: float
    wall_ms: float
    peak_mb: float

    def record(self) -> dict[str, Any]:
        """Return the cost as plain JSON."""
        return {
            "calls": self.calls,
            "cpu_s": round(self.cpu_s, 3),
            "wall_ms": round(self.wall_ms, 1),
            "peak_mb": round(self.peak_mb, 1),
        }


class CountingRunner:
    """A runner that passes jobs to another and counts their cost."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._costs: list[tuple[float, float, float]] = []
        self._tried: dict[str, None] = {}

    @property
    def stamp(self) -> str:
        """Return the other runner's stamp."""
        return self._runner.stamp

    def run_each(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Run each job, and count its cost."""
        for outcome in self._runner.run_each(jobs):
            self._costs.append((outcome.cpu_ms, outcome.wall_ms, outcome.peak_mb))
            self._tried |= dict.fromkeys(outcome.tried)
            yield outcome

    def run(self, job: Job) -> Outcome:
        """Run one job."""
        [outcome] = self.run_each([job])
        return outcome

    @property
    def tried(self) -> tuple[str, ...]:
        """Return the system calls that the kernel refused in any call, in the order of their first appearance."""
        return tuple(self._tried)

    @property
    def cost(self) -> Cost:
        """Return the cost of all calls so far."""
        cpu, wall, peak = zip(*self._costs, strict=True) if self._costs else ((0.0,), (0.0,), (0.0,))
        return Cost(len(self._costs), sum(cpu) / 1000.0, max(wall), max(peak))
