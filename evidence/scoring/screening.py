"""A first look at a factor, on every fifth search day only: a fifth of the work, and nearly all that labels of five days say."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .daily import Daily
from .long_short import BOUGHT, BOUGHT_INVERSE, SOLD, SOLD_INVERSE, TRADING_DAYS_PER_YEAR, Costs
from .metrics import FactorWarning

SCREEN_STEP_DAYS = 5


@dataclass(frozen=True)
class ThinBook:
    """The long-short of a factor as every fifth day shows it; see `thin_book`."""

    turnover: float
    sharpe_gross: float
    sharpe_net: float


def thin_book(found: Daily, horizon: int, costs: Costs, sign: int) -> ThinBook:
    """Estimate turnover and Sharpe ratios from days that are `SCREEN_STEP_DAYS` apart.

    Parameters
    ----------
    found
        Statistics of those days; fifths of h-day returns.
    horizon
        h, in days.
    costs
        Of trading and borrowing.
    sign
        1 holds the factor as it is, -1 its opposite.

    Returns
    -------
    ThinBook
        A position is taken to be replaced, after h days, by the share of names that differs between one of these days and
        the next. Sharpe ratios are those of h-day returns, annualised by ``sqrt(252 / h)``. NaN where unknown.
    """
    spread = sign * (found.fifths[:, -1] - found.fifths[:, 0])
    bits = (BOUGHT, SOLD) if sign > 0 else (BOUGHT_INVERSE, SOLD_INVERSE)
    changed = float(np.mean([_changed_share(found.sides, np.int8(bit)) for bit in bits]))
    cost = 4.0 * changed * costs.side + horizon * costs.borrow  # both sides, out of the old names and into the new
    return ThinBook(changed / horizon, _sharpe(spread, horizon), _sharpe(spread - cost, horizon))


def make_screening_note(t: float) -> FactorWarning:
    """Return the note that a sheet rests on every fifth day."""
    return FactorWarning(
        "screened", f"its t on every fifth day is {t:.1f}: no whole sheet was made (evidence.screen_t)"
    )


def _changed_share(sides: NDArray[np.int8], bit: np.int8) -> float:
    """Return the mean share of a side's names that were not on it the time before; NaN where there was none."""
    held = (sides & bit) != 0
    counts = np.count_nonzero(held[1:], axis=1)
    new = np.count_nonzero(held[1:] & ~held[:-1], axis=1)
    known = (counts > 0) & (np.count_nonzero(held[:-1], axis=1) > 0)
    return float((new[known] / counts[known]).mean()) if known.any() else math.nan


def _sharpe(returns: NDArray[np.float64], horizon: int) -> float:
    known = returns[~np.isnan(returns)]
    deviation = float(known.std(ddof=1)) if known.size > 1 else 0.0
    return float(known.mean()) / deviation * math.sqrt(TRADING_DAYS_PER_YEAR / horizon) if deviation > 0 else math.nan
