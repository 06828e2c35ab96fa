"""A factor's values point in time: each day by a process of its own that holds no later day.

Two savings, each checked. A process gets only the columns that the code names, if the whole panel gives the same bits
without the others. And it gets only the last rows up to its day, if those reproduce the values of some days; a day that
they do not reproduce is computed again from all rows up to it. The data of a process never reaches past its day, so the
values cannot depend on the future, whatever the code does.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import Crashed
from ..jail.frames import Frames
from ..job import Job, Outcome
from .claim import CUT_OFF, CausalClaim, Suspect, explain_change, find_day
from .comparison import Cell, find_first_change, find_first_difference, round_values
from .proof_record import CountingRunner

Row = NDArray[np.float64]
MEMORY_ROWS = (64, 128, 256, 512, 1024)
"""Numbers of rows up to a day that are tried, the fewest first."""
PROBES = (0.4, 0.6, 0.8, 1.0)
"""Positions in the panel of the days that are tried with few rows."""
DAYS_PER_CHUNK = 32
"""Days that are under way together."""


@dataclass(frozen=True, slots=True, eq=False)
class SweptValues:
    """Values that passed the test.

    Attributes
    ----------
    values : NDArray[np.float64]
        `[T, N]`, missing during the start-up.
    memory : int or None
        Number of rows up to its day that a process gets; None: all.
    start_up, start_up_error
        Days at the start on which the code raises an error, and the error.
    """

    values: NDArray[np.float64]
    memory: int | None
    start_up: int
    start_up_error: str


def sweep_days(
    meter: CountingRunner, claim: CausalClaim, lean: CausalClaim, show: Callable[[int, int], object] | None = None
) -> SweptValues:
    """Return the values of all days, each computed from the rows up to it.

    `lean` is the claim on the columns that suffice (`narrow_claim`).

    Raises
    ------
    NotCausal
        A day's values are not the claimed ones: the first such day.
    Crashed
        The code raises on a day although it had answered on an earlier one.
    SandboxError
        Any other error of a call.
    """
    sweep = _Sweep(meter, claim, lean)
    values = np.full(claim.values.shape, np.nan)
    for day, row in sweep.iterate(0):
        values[day] = row
        if show is not None:
            show(day + 1, claim.days)
    return SweptValues(values, sweep.memory, sweep.start_up, sweep.start_up_error)


def iterate_days(meter: CountingRunner, claim: CausalClaim, first: int = 0) -> Iterator[tuple[int, Row]]:
    """Yield each row number from `first` on and its values point in time `[N]`, so that a sweep can be resumed."""
    yield from _Sweep(meter, claim, narrow_claim(meter, claim)).iterate(first)


class _Sweep:
    """The state of a sweep."""

    def __init__(self, meter: CountingRunner, claim: CausalClaim, lean: CausalClaim) -> None:
        self._meter, self._claim, self._lean = meter, claim, lean
        self.memory = _find_memory(meter, lean)
        self.start_up, self.start_up_error, self._answered = 0, "", False

    def iterate(self, first: int) -> Iterator[tuple[int, Row]]:
        """Yield each day from `first` on, and its values."""
        for start in range(first, self._claim.days, DAYS_PER_CHUNK):
            chunk = range(start, min(start + DAYS_PER_CHUNK, self._claim.days))
            for day, outcome in zip(chunk, self._run_chunk(chunk), strict=True):
                yield day, round_values(self._check_row(day, outcome)[None, :])[0]

    def _run_chunk(self, chunk: range) -> list[Outcome]:
        """Return the outcome of each day: from few rows where that suffices, else from all rows up to it."""
        outcomes = dict(zip(chunk, self._meter.run_each(self._make_job(day) for day in chunk), strict=True))
        doubtful = [day for day in chunk if self._is_short(day) and not _is_same(self._claim, day, outcomes[day])]
        again = self._meter.run_each(self._lean.make_prefix_job(day) for day in doubtful)
        outcomes |= zip(doubtful, again, strict=True)
        if 2 * len(doubtful) > len(chunk):
            self.memory = None
        return [outcomes[day] for day in chunk]

    def _is_short(self, day: int) -> bool:
        return self.memory is not None and day >= self.memory

    def _make_job(self, day: int) -> Job:
        if self._is_short(day):
            return _make_tail_job(self._lean, day, self.memory)
        return self._lean.make_prefix_job(day)

    def _check_row(self, day: int, outcome: Outcome) -> Row:
        """Return the day's values, missing during the start-up; raise where they are not the claimed ones."""
        if self._lean is not self._claim and not _is_same(self._claim, day, outcome):
            outcome = self._meter.run(self._claim.make_prefix_job(day))  # a saving must not cause a refusal
        if isinstance(outcome.error, Crashed):
            return self._extend_start_up(day, outcome.error)
        row: Row = outcome.unwrap()[-1]
        cell = find_first_change(self._claim.values[day : day + 1], row[None, :])
        if cell is not None:
            suspect = Suspect(Cell(day, cell.name), day, CUT_OFF, outcome.unwrap())
            raise explain_change(self._meter, self._claim, suspect)
        self._answered = True
        return row

    def _extend_start_up(self, day: int, error: Crashed) -> Row:
        """Add a day to the start-up and return its missing values; raise once the code has answered."""
        if self._answered or day >= self._claim.days // 2:
            raise Crashed(
                f"the code raises an error on the panel that ends on {find_day(self._claim.frames, day)}: "
                f"{error.message}",
                field="factor",
                hint="A factor is computed anew on every day: return missing values where it has none.",
            )
        self.start_up, self.start_up_error = day + 1, error.message
        return np.full(self._claim.values.shape[1], np.nan)


def narrow_claim(meter: CountingRunner, claim: CausalClaim) -> CausalClaim:
    """Return the claim on the columns that the code names if the others change no bit; else the claim itself."""
    frames = claim.frames
    named = {name: values for name, values in frames.fields.items() if name in _find_strings(claim.code)}
    if not named or len(named) == len(frames.fields):
        return claim
    fewer = Frames(named, frames.dates, frames.symbols)
    answer = meter.run(Job(claim.code, fewer)).values
    return claim if answer is None or find_first_difference(answer, claim.values) else replace(claim, frames=fewer)


def _find_strings(code: str) -> frozenset[str]:
    """Return the string constants of some code; none where it cannot be parsed."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return frozenset(value for value in constants if isinstance(value, str))


def _find_memory(meter: CountingRunner, claim: CausalClaim) -> int | None:
    """Return how many rows up to a day reproduce its values, tested on a few days; None where all are needed."""
    probes = sorted({int(share * (claim.days - 1)) for share in PROBES})
    for rows in MEMORY_ROWS:
        if 3 * rows > claim.days:
            return None
        outcomes = meter.run_each(_make_tail_job(claim, day, rows) for day in probes)
        reproduced = [_is_same(claim, day, outcome) for day, outcome in zip(probes, outcomes, strict=True)]
        if all(reproduced):
            return rows
    return None


def _make_tail_job(claim: CausalClaim, day: int, rows: int | None) -> Job:
    """Return the call on the last `rows` rows up to a day."""
    part = slice(0 if rows is None else day + 1 - rows, day + 1)
    frames = claim.frames
    fields = {name: values[part] for name, values in frames.fields.items()}
    return Job(claim.code, Frames(fields, frames.dates[part], frames.symbols))


def _is_same(claim: CausalClaim, day: int, outcome: Outcome) -> bool:
    """Return whether a call gave a day the claimed values."""
    return outcome.values is not None and find_first_change(claim.values[day : day + 1], outcome.values[-1:]) is None
