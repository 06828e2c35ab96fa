"""The long-short portfolio of a factor: overlapping sleeves of top minus bottom quintile, with their costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...factors.kernels import kernel

Frame = NDArray[np.float64]
Sides = NDArray[np.int8]
Series = NDArray[np.float64]
Returns = NDArray[np.floating]
Opened = NDArray[np.bool_]

SUM_LANES: Final = 32
"""Partial sums in parallel: a fixed number, so that the result does not depend on the processor's vector width."""

TRADING_DAYS_PER_YEAR: Final = 252

GROSS: Final = 2.0
"""Notional of a fully invested portfolio: one unit long, one short."""

NEITHER, BOUGHT, SOLD, BOUGHT_INVERSE, SOLD_INVERSE = 0, 1, 2, 4, 8
"""Bits of a name's side: in the top or bottom quintile of a factor, and of its opposite."""

MIN_SLEEVE_NAMES: Final = 10
"""Fewest ranked names with which a day opens a sleeve."""


@dataclass(frozen=True)
class Costs:
    """Costs of trading and borrowing.

    Attributes
    ----------
    bps_per_side
        Basis points of traded notional, charged when buying and again when selling.
    borrow_bps_per_year
        Basis points of short notional per year of 252 days.
    """

    bps_per_side: float = 10.0
    borrow_bps_per_year: float = 50.0

    @property
    def side(self) -> float:
        """Return the cost per unit traded, decimal."""
        return self.bps_per_side / 1e4

    @property
    def borrow(self) -> float:
        """Return the cost per unit held short for a day, decimal."""
        return self.borrow_bps_per_year / 1e4 / TRADING_DAYS_PER_YEAR


@dataclass(frozen=True, eq=False)
class LongShort:
    """Returns of a factor's long-short portfolio; 1 unit long and 1 unit short when fully invested.

    Attributes
    ----------
    gross, net
        Return of each day before and after trading and borrowing costs, ``[T]``, decimal of one side; NaN on days
        without any return and before the first sleeve.
    turnover
        Notional bought and sold per day, halved (one-way), over the gross of both sides, 2: a portfolio that is
        replaced every day has 1. Mean from the first day on which every sleeve is open; NaN if there is none.
    sharpe_gross, sharpe_net
        Sharpe ratios before and after costs, annualised by the root of 252.
    """

    gross: Series
    net: Series
    turnover: float
    sharpe_gross: float
    sharpe_net: float


def measure_long_short(ranks: Frame, open_returns: Frame, costs: Costs, horizon: int) -> LongShort:
    """Measure the long-short portfolio of a factor from its percentiles.

    Parameters
    ----------
    ranks
        Percentiles ``[T, N]`` in (0, 1] of the factor at the close of each day, NaN missing. Above 0.8 is bought, up to
        0.2 is sold, in equal weights.
    open_returns
        Returns ``[T, N]``, decimal: row t is from the open of t+1, where the rank of t is traded, to the open of t+2.
        NaN counts as 0.
    costs
        Costs of trading and borrowing.
    horizon
        Days that a sleeve is held; one of `horizon` sleeves is renewed each day.

    Returns
    -------
    LongShort
        Weights return to their targets without trading: the cost of undoing one day's drift is counted only in
        `portfolio/backtest.py`.
    """
    sides = np.where(ranks > 0.8, BOUGHT, np.where(ranks <= 0.2, SOLD, NEITHER)).astype(np.int8)
    return sides_long_short(sides, np.count_nonzero(~np.isnan(ranks), axis=1), open_returns, costs, horizon)


def sides_long_short(
    sides: Sides, counts: NDArray[np.int64], open_returns: Returns, costs: Costs, horizon: int, *, sign: int = 1
) -> LongShort:
    """Measure the long-short portfolio of a factor from the sides of its names.

    Parameters
    ----------
    sides, counts
        Side bits ``[T, N]`` and names with a value ``[T]``, as in `rank_ic.Daily`.
    open_returns, costs, horizon
        As for `measure_long_short`.
    sign
        1 holds the factor as it is, -1 its opposite.
    """
    bits = (BOUGHT, SOLD) if sign > 0 else (BOUGHT_INVERSE, SOLD_INVERSE)
    daily, flags = _simulate(sides, counts, np.ascontiguousarray(open_returns), horizon, np.array(bits, np.int8))
    earned, traded, short = daily.T
    missing = ~flags[:, 1]
    open_days = np.flatnonzero(flags[:, 0])
    first = int(open_days[0]) if open_days.size else len(sides)
    missing[:first] = True
    gross = np.where(missing, np.nan, earned)
    net = np.where(missing, np.nan, earned - traded * costs.side - short * costs.borrow)
    steady = traded[first + horizon :]
    turnover = float(steady.mean()) / 2 / GROSS if steady.size else math.nan
    return LongShort(gross, net, turnover, annual_sharpe(gross), annual_sharpe(net))


def annual_sharpe(returns: Series) -> float:
    """Return the annual Sharpe ratio: mean over standard deviation (ddof 1) times the root of 252.

    Parameters
    ----------
    returns
        Daily returns ``[D]``, decimal; NaN is dropped.

    Returns
    -------
    float
        NaN for fewer than two values, or without variation.
    """
    present = returns[~np.isnan(returns)]
    deviation = float(present.std(ddof=1)) if len(present) > 1 else 0.0
    if deviation <= 1e-13 * float(np.abs(present).max(initial=0.0)):
        return math.nan
    return float(present.mean()) / deviation * math.sqrt(TRADING_DAYS_PER_YEAR)


def sleeve_weights(ranks: Frame, horizon: int) -> Frame:
    """Return the target weight of each name after the close of each day: the mean of the last sleeves.

    Parameters
    ----------
    ranks
        Percentiles ``[T, N]`` in (0, 1], NaN missing. Above 0.8 is bought, up to 0.2 is sold, in equal weights.
    horizon
        Number of sleeves; one is renewed each day.

    Returns
    -------
    Frame
        ``[T, N]``, positive for bought names, never NaN. Each side sums to 1 once `horizon` sleeves are open; before
        that, and around days without a sleeve, to less.
    """
    side = np.where(ranks > 0.8, 1.0, np.where(ranks <= 0.2, -1.0, 0.0))
    count = np.stack([(side > 0).sum(axis=1), (side < 0).sum(axis=1)])
    has_sleeve = ((~np.isnan(ranks)).sum(axis=1) >= MIN_SLEEVE_NAMES) & count.all(axis=0)
    scale = np.where(side > 0, 1.0 / np.maximum(count[0], 1)[:, None], 1.0 / np.maximum(count[1], 1)[:, None])
    sleeve = side * scale * has_sleeve[:, None] / horizon
    total: Frame = sleeve.copy()
    for age in range(1, min(horizon, len(ranks))):
        total[age:] += sleeve[:-age]
    return total


@kernel
def _renew_sleeve(
    lanes: Frame,
    weights: Series,
    today: Sides,
    gone: Sides,
    returns: Returns,
    opened: Series,
    closed: Series,
    bits: Sides,
) -> None:
    """Renew one sleeve, and add the day's return, traded and short notional; rows are whole numbers of lanes."""
    earned, traded, short = lanes[0], lanes[1], lanes[2]
    buy, sell, bought, sold, long_side, short_side = opened[0], opened[1], closed[0], closed[1], bits[0], bits[1]
    for start in range(0, returns.size, SUM_LANES):
        w, r = weights[start : start + SUM_LANES], returns[start : start + SUM_LANES]
        new, old = today[start : start + SUM_LANES], gone[start : start + SUM_LANES]
        for j in range(SUM_LANES):
            opening = (buy if new[j] & long_side else 0.0) + (sell if new[j] & short_side else 0.0)
            closing = (bought if old[j] & long_side else 0.0) + (sold if old[j] & short_side else 0.0)
            change = opening - closing
            weight = w[j] + change
            w[j] = weight
            earned[j] += weight * (np.float64(r[j]) if r[j] == r[j] else 0.0)
            traded[j] += abs(change)
            short[j] += max(-weight, 0.0)


@kernel
def _has_return(returns: Returns) -> bool:
    count = 0
    for i in range(returns.size):
        count += returns[i] == returns[i]
    return count > 0


@kernel
def _count_marked(row: Sides, bit: np.int8) -> int:
    """Count the names that have a bit set."""
    count = 0
    for i in range(row.size):
        count += (row[i] & bit) != 0
    return count


@kernel
def _simulate(
    sides: Sides, counts: NDArray[np.int64], returns: Returns, horizon: int, bits: Sides
) -> tuple[Frame, Opened]:
    """Return gross return, traded (both ways) and short notional of each day, ``[T, 3]``, and flags ``[T, 2]``.

    The flags are whether a sleeve was opened, and whether the day has any return.
    """
    days, names = sides.shape
    units = np.zeros((horizon + days, 2))  # the first rows are of sleeves before the first day, empty
    whole = names // SUM_LANES * SUM_LANES
    padded_width = whole + SUM_LANES
    weights, rest, lanes = np.zeros(padded_width), np.zeros(SUM_LANES), np.zeros((3, SUM_LANES))
    rest_today, rest_gone = np.zeros(SUM_LANES, np.int8), np.zeros(SUM_LANES, np.int8)
    daily, flags = np.zeros((days, 3)), np.zeros((days, 2), np.bool_)
    for t in range(days):
        high, low = _count_marked(sides[t], bits[0]), _count_marked(sides[t], bits[1])
        flags[t, 0] = counts[t] >= MIN_SLEEVE_NAMES and high > 0 and low > 0
        flags[t, 1] = _has_return(returns[t])
        if flags[t, 0]:
            units[horizon + t, 0], units[horizon + t, 1] = 1.0 / high / horizon, -1.0 / low / horizon
        today, gone = sides[t], sides[max(t - horizon, 0)]
        lanes[:] = 0.0
        rest[: names - whole] = returns[t, whole:]
        rest_today[: names - whole], rest_gone[: names - whole] = today[whole:], gone[whole:]
        opened, closed = units[horizon + t], units[t]
        _renew_sleeve(lanes, weights, today[:whole], gone[:whole], returns[t, :whole], opened, closed, bits)
        _renew_sleeve(lanes, weights[whole:], rest_today, rest_gone, rest, opened, closed, bits)
        for k in range(3):
            daily[t, k] = lanes[k].sum()
    return daily, flags
