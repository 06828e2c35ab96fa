"""The claim to be tested: these values come from this code and this panel, and from no later day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from ..errors import BadResult, NotCausal, NotDeterministic
from ..jail.frames import Frames
from ..job import Job
from .comparison import Cell, find_first_change, find_first_difference
from .futures import Futures
from .proof_record import CountingRunner

CUT_OFF, REPLACED = "were cut off", "were replaced by another future"


@dataclass(frozen=True, eq=False)
class CausalClaim:
    """Values of a factor on a whole panel.

    Attributes
    ----------
    code : str
        Source that defines `factor(panel)`.
    frames : Frames
        The panel.
    values : NDArray[np.float64]
        The values of the code on it, `[T, N]`.
    """

    code: str
    frames: Frames
    values: NDArray[np.float64]

    @property
    def days(self) -> int:
        """Return the number of days."""
        return len(self.values)

    @property
    def first(self) -> int:
        """Return the row of the first day with a value."""
        return int(np.isfinite(self.values).any(axis=1).argmax())

    def make_prefix_job(self, day: int) -> Job:
        """Return the call on the panel that ends on the row `day`."""
        return Job(self.code, self.frames, day + 1)

    def make_replaced_job(self, day: int, seed: int) -> Job:
        """Return the call on a panel with another future after the row `day`."""
        return Job(self.code, Futures(self.frames, seed).draw_after(day))


@dataclass(frozen=True, slots=True, eq=False)
class Suspect:
    """A cell whose value changed with days after the row `cut`, how these were changed, and the answer then."""

    cell: Cell
    cut: int
    how: str
    answer: NDArray[np.float64]
    seed: int | None = None

    def make_job(self, claim: CausalClaim, cut: int) -> Job:
        """Return the call that changes the days after another row in the same way."""
        if self.how == CUT_OFF:
            return claim.make_prefix_job(cut)
        return claim.make_replaced_job(cut, self.seed or 0)


def make_claim(meter: CountingRunner, code: str, frames: Frames) -> CausalClaim:
    """Return the values on which two calls on the whole panel, in separately started interpreters, agree.

    Raises
    ------
    NotDeterministic
        They differ in a bit.
    BadResult
        There is no value on any day, so that nothing could be tested.
    SandboxError
        Any error of a call.
    """
    # The second call runs only if the first gave values. It runs apart, because all calls of one server share the
    # random numbers of its start.
    one, other = (meter.run(Job(code, frames, apart=apart)).unwrap() for apart in (False, True))
    cell = find_first_difference(one, other)
    if cell is not None:
        raise _make_not_deterministic(frames, cell)
    if not np.isfinite(one).any():
        raise BadResult("the factor has no value on any day", field="factor", hint="A window longer than the panel?")
    return CausalClaim(code, frames, one)


def is_changed(meter: CountingRunner, claim: CausalClaim, suspect: Suspect) -> bool:
    """Return whether the cell changes for this claim too."""
    return not _has_claimed_value(claim, suspect.cell, meter.run(suspect.make_job(claim, suspect.cut)).values)


def _make_not_deterministic(frames: Frames, cell: Cell) -> NotDeterministic:
    day, symbol = find_day(frames, cell.day), frames.symbols[cell.name]
    return NotDeterministic(
        f"two calls on the same panel gave {symbol} another value on {day}",
        day=day,
        symbol=symbol,
        hint="Give every random generator a fixed seed, and read no clock, no address and no order of a set.",
    )


def explain_change(meter: CountingRunner, claim: CausalClaim, suspect: Suspect) -> NotCausal | NotDeterministic:
    """Return the error that names the day and the symbol, and the later day that made the difference.

    The same call and the call on the whole panel are repeated first: code that is not deterministic need not look
    ahead.
    """
    for job, answer in (
        (suspect.make_job(claim, suspect.cut), suspect.answer),
        (Job(claim.code, claim.frames), claim.values),
    ):
        again = meter.run(job).values
        cell = None if again is None else find_first_difference(answer, again)
        if cell is not None:
            return _make_not_deterministic(claim.frames, cell)
    read = _find_read_day(meter, claim, suspect)
    day, later = find_day(claim.frames, suspect.cell.day), find_day(claim.frames, read)
    symbol = claim.frames.symbols[suspect.cell.name]
    to_the_end = read == claim.days - 1
    reads = f"it reads on to the panel's last day, {later}" if to_the_end else f"it reads {later}"
    ahead = read - suspect.cell.day
    return NotCausal(
        f"the value of {symbol} on {day} changed when later days {suspect.how}: {reads}, "
        f"{ahead} {'day' if ahead == 1 else 'days'} later",
        day=day,
        symbol=symbol,
        read=later,
        seed=suspect.seed,
        hint=WHOLE_PANEL_HINT if ahead > FAR_DAYS else NEAR_DAYS_HINT,
    )


FAR_DAYS = 10
"""Days of look-ahead above which a whole-sample computation is more likely than a window."""
WHOLE_PANEL_HINT = (
    "A mean, a rank, a fit or a fill over the whole panel does this: use rolling, ewm or expanding, "
    "and compute every day from the rows up to it."
)
NEAR_DAYS_HINT = (
    "A negative shift, a centred window, a fill from behind or a label of the week's end does this: "
    "compute every day from the rows up to it."
)


def _find_read_day(meter: CountingRunner, claim: CausalClaim, suspect: Suspect) -> int:
    """Return the row of a later day that makes the difference: with it the cell has its value, without it not.

    Bisection: the value is wrong when days after `low` are changed, and right when only those after `high` are.
    """
    low, high = suspect.cut, claim.days - 1
    while high - low > 1:
        middle = (low + high) // 2
        outcome = meter.run(suspect.make_job(claim, middle))
        low, high = (low, middle) if _has_claimed_value(claim, suspect.cell, outcome.values) else (middle, high)
    return high


def _has_claimed_value(claim: CausalClaim, cell: Cell, values: NDArray[np.float64] | None) -> bool:
    """Return whether a call gave the cell the claimed value."""
    if values is None:
        return False
    day = slice(cell.day, cell.day + 1)
    part = (day, slice(cell.name, cell.name + 1))
    same_bits = find_first_difference(claim.values[part], values[part]) is None
    return same_bits or find_first_change(claim.values[day], values[day]) is None  # a cell is judged by its day's scale


def find_day(frames: Frames, row: int) -> date:
    """Return the day of a row."""
    return date.fromisoformat(str(frames.dates[row]))
