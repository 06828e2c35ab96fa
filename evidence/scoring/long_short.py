"""The long-short of a factor: overlapping sleeves of top minus bottom quintile, their trading and what it costs."""

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
"""Partial sums side by side, so that the result does not hang on how many the processor adds at once."""

TRADING_DAYS_PER_YEAR: Final = 252
"""Trading days."""

GROSS: Final = 2.0
"""Notional of a fully invested book: one unit long, one short."""

NEITHER, BOUGHT, SOLD, BOUGHT_INVERSE, SOLD_INVERSE = 0, 1, 2, 4, 8
"""Bits of a name's side: in the top or bottom fifth of a factor, and in that of its opposite."""

MIN_SLEEVE_NAMES: Final = 10
"""A day with fewer ranked names opens no sleeve."""


@dataclass(frozen=True)
class Costs:
    """What trading is charged.

    Attributes
    ----------
    bps_per_side
        Basis points of traded notional: paid when buying and again when selling.
    borrow_bps_per_year
        Basis points of short notional a year of 252 days.
    """

    bps_per_side: float = 10.0
    borrow_bps_per_year: float = 50.0

    @property
    def side(self) -> float:
        """Return the cost of a unit traded, decimal."""
        return self.bps_per_side / 1e4

    @property
    def borrow(self) -> float:
        """Return the cost of a unit held short for a day, decimal."""
        return self.borrow_bps_per_year / 1e4 / TRADING_DAYS_PER_YEAR


@dataclass(frozen=True, eq=False)
class LongShort:
    """What a factor's long-short earned; 1 unit long and 1 unit short when fully invested.

    Attributes
    ----------
    gross, net
        Return of each day before and after trading costs and borrow, ``[T]``, decimal of one side; NaN on days without
        any known return and before the first sleeve.
    turnover
        Notional bought and sold a day, halved (one-way), over the gross of both sides, 2: a book that is replaced every
        day has 1. Mean from the first day on which every sleeve is open; NaN if there is none.
    sharpe_gross, sharpe_net
        Annualised by the root of 252.
    """

    gross: Series
    net: Series
    turnover: float
    sharpe_gross: float
    sharpe_net: float


def measure_long_short(ranks: Frame, open_returns: Frame, costs: Costs, horizon: int) -> LongShort:
    """Measure the long-short of a factor by weights and returns.

    Parameters
    ----------
    ranks
        ``[T, N]`` percentiles in (0, 1] of the factor at the close of each day, NaN missing. Above 0.8 is bought, up to
        0.2 is sold, in equal weights.
    open_returns
        ``[T, N]``: row t is what a name earns from the open of t+1, where the rank of t is traded, to the open of t+2.
        NaN earns nothing.
    costs
        Of trading and borrowing.
    horizon
        Days that a sleeve is held; one of `horizon` sleeves is renewed each day.

    Returns
    -------
    LongShort
        Weights return to their targets without trading: the cost of undoing one day's drift is left out here and
        counted in `portfolio/backtest.py`.
    """
    sides = np.where(ranks > 0.8, BOUGHT, np.where(ranks <= 0.2, SOLD, NEITHER)).astype(np.int8)
    return sides_long_short(sides, np.count_nonzero(~np.isnan(ranks), axis=1), open_returns, costs, horizon)


def sides_long_short(
    sides: Sides, counts: NDArray[np.int64], open_returns: Returns, costs: Costs, horizon: int, *, sign: int = 1
) -> LongShort:
    """Measure the long-short of a factor whose fifths are known.

    Parameters
    ----------
    sides, counts
        As in `rank_ic.Daily`.
    open_returns, costs, horizon
        As for `measure_long_short`.
    sign
        1 holds the factor as it is, -1 its opposite.
    """
    bits = (BOUGHT, SOLD) if sign > 0 else (BOUGHT_INVERSE, SOLD_INVERSE)
    daily, known = _trade(sides, counts, np.ascontiguousarray(open_returns), horizon, np.array(bits, np.int8))
    earned, traded, short = daily.T
    quiet = ~known[:, 1]
    open_days = np.flatnonzero(known[:, 0])
    first = int(open_days[0]) if open_days.size else len(sides)
    quiet[:first] = True
    gross = np.where(quiet, np.nan, earned)
    net = np.where(quiet, np.nan, earned - traded * costs.side - short * costs.borrow)
    steady = traded[first + horizon :]
    turnover = float(steady.mean()) / 2 / GROSS if steady.size else math.nan
    return LongShort(gross, net, turnover, annual_sharpe(gross), annual_sharpe(net))


def annual_sharpe(returns: Series) -> float:
    """Return the annual Sharpe ratio: mean over standard deviation (ddof 1) times the root of 252.

    Parameters
    ----------
    returns
        One value a day ``[D]``, decimal; NaN is dropped.

    Returns
    -------
    float
        NaN for fewer than two values, or where nothing varies.
    """
    known = returns[~np.isnan(returns)]
    deviation = float(known.std(ddof=1)) if len(known) > 1 else 0.0
    if deviation <= 1e-13 * float(np.abs(known).max(initial=0.0)):
        return math.nan
    return float(known.mean()) / deviation * math.sqrt(TRADING_DAYS_PER_YEAR)


def sleeve_weights(ranks: Frame, horizon: int) -> Frame:
    """Return the target weight of each name after the close of each day: the mean of the last sleeves.

    Parameters
    ----------
    ranks
        ``[T, N]`` percentiles in (0, 1], NaN missing. Above 0.8 is bought, up to 0.2 is sold, in equal weights.
    horizon
        Sleeves; one is renewed each day.

    Returns
    -------
    Frame
        ``[T, N]``, positive for bought names, never NaN. Each side sums to 1 once `horizon` sleeves are open; before that,
        and around days without a sleeve, to less.
    """
    side = np.where(ranks > 0.8, 1.0, np.where(ranks <= 0.2, -1.0, 0.0))
    count = np.stack([(side > 0).sum(axis=1), (side < 0).sum(axis=1)])
    enough = ((~np.isnan(ranks)).sum(axis=1) >= MIN_SLEEVE_NAMES) & count.all(axis=0)
    scale = np.where(side > 0, 1.0 / np.maximum(count[0], 1)[:, None], 1.0 / np.maximum(count[1], 1)[:, None])
    sleeve = side * scale * enough[:, None] / horizon
    total: Frame = sleeve.copy()
    for age in range(1, min(horizon, len(ranks))):
        total[age:] += sleeve[:-age]
    return total


@kernel
def _turn(
    lanes: Frame, weights: Series, today: Sides, gone: Sides, returns: Returns, opened: Series, closed: Series,
    bits: Sides,
) -> None:  # fmt: skip
    """Renew one sleeve, and add what the day earned, traded and held short; rows are a whole number of lanes long."""
    earned, traded, short = lanes[0], lanes[1], lanes[2]
    buy, sell, bought, sold, long, other = opened[0], opened[1], closed[0], closed[1], bits[0], bits[1]
    for start in range(0, returns.size, SUM_LANES):
        w, r = weights[start : start + SUM_LANES], returns[start : start + SUM_LANES]
        new, old = today[start : start + SUM_LANES], gone[start : start + SUM_LANES]
        for j in range(SUM_LANES):
            held = (buy if new[j] & long else 0.0) + (sell if new[j] & other else 0.0)
            left = (bought if old[j] & long else 0.0) + (sold if old[j] & other else 0.0)
            change = held - left
            weight = w[j] + change
            w[j] = weight
            earned[j] += weight * (np.float64(r[j]) if r[j] == r[j] else 0.0)
            traded[j] += abs(change)
            short[j] += max(-weight, 0.0)


@kernel
def _has_return(returns: Returns) -> bool:
    """Tell whether a day has any return."""
    count = 0
    for i in range(returns.size):
        count += returns[i] == returns[i]
    return count > 0


@kernel
def _count_marked(row: Sides, bit: np.int8) -> int:
    """Count the names that bear a bit."""
    count = 0
    for i in range(row.size):
        count += (row[i] & bit) != 0
    return count


@kernel
def _trade(
    sides: Sides, counts: NDArray[np.int64], returns: Returns, horizon: int, bits: Sides
) -> tuple[Frame, Opened]:
    """Return earned, traded (both ways) and short notional of each day, ``[T, 3]``, and what is known of the day.

    That is whether a sleeve was opened, and whether there is any return, ``[T, 2]``.
    """
    days, names = sides.shape
    units = np.zeros((horizon + days, 2))  # the first rows stand for sleeves that were never opened
    full = names // SUM_LANES * SUM_LANES
    wide = full + SUM_LANES
    weights, rest, lanes = np.zeros(wide), np.zeros(SUM_LANES), np.zeros((3, SUM_LANES))
    rest_today, rest_gone = np.zeros(SUM_LANES, np.int8), np.zeros(SUM_LANES, np.int8)
    daily, known = np.zeros((days, 3)), np.zeros((days, 2), np.bool_)
    for t in range(days):
        high, low = _count_marked(sides[t], bits[0]), _count_marked(sides[t], bits[1])
        known[t, 0] = counts[t] >= MIN_SLEEVE_NAMES and high > 0 and low > 0
        known[t, 1] = _has_return(returns[t])
        if known[t, 0]:
            units[horizon + t, 0], units[horizon + t, 1] = 1.0 / high / horizon, -1.0 / low / horizon
        today, gone = sides[t], sides[max(t - horizon, 0)]
        lanes[:] = 0.0
        rest[: names - full] = returns[t, full:]
        rest_today[: names - full], rest_gone[: names - full] = today[full:], gone[full:]
        opened, closed = units[horizon + t], units[t]
        _turn(lanes, weights, today[:full], gone[:full], returns[t, :full], opened, closed, bits)
        _turn(lanes, weights[full:], rest_today, rest_gone, rest, opened, closed, bits)
        for k in range(3):
            daily[t, k] = lanes[k].sum()
    return daily, known
