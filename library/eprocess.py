"""Evidence that accumulates with the days: the capital of bets on a factor's daily RankIC, valid at any time.

The tested hypothesis: on every day, given all that the market knew at its close, the expected RankIC of the factor in
the claimed direction is not above a bar. Bets on a RankIC above the bar then have no expected gain, and their capital
reaches 1/alpha with a probability of at most alpha, however long the bets last and whenever it is read (Ville's
inequality).

A label of h days makes the RankICs of neighbouring days overlap, and half-known bets would allow stopping at a lucky
moment. Therefore h + 1 accounts take turns: each bets on every (h + 1)-th day, and knows the end of its last bet before
the next one. Days are settled in quarters of `quarter_days` days. There is no bet in the last h days of a quarter, so
at its end no bet is open; the accounts are then pooled and share the capital evenly. The capital at the ends of
quarters is a martingale with respect to the whole market's knowledge. An average of accounts that is read at any day is
not: one could wait for the end of a winning bet and stop before the end of a losing one. Tests simulate this, with
labels that overlap fully and hardly.

The bet is the largest that cannot lose all: 0.95 of an account's capital, times the RankIC less the bar, over the
largest loss at a RankIC of -1. Nothing is clipped and no distribution is assumed, so a mean of zero with rare crashes
proves nothing either. Larger bets would need a floor under the losses. Bets of up to half a unit of three daily
deviations proved a factor in half of the days (567 and 441 at 0.03), but also by crashes (capital at 20 in 9 of 100
series with skewness -1 and twice the expected deviation); they were rejected.

Measured (4,000 series of ten years for zero, 1,000 of twenty for the others; h = 5, RankIC of a day with standard
deviation 0.08; slow factor / one that is mostly new each day; tests repeat a part of it):

=======================  =======================  =======================  =======================
true mean RankIC         capital ever at 20       median days to a         median days to a
                         (at most 0.05 allowed)   capital of 40            capital of 100
=======================  =======================  =======================  =======================
0                        0.005 / 0.000            -                        -
0.02                                              1,449 / 1,386            1,796 / 1,701
0.03                                              945 / 945                1,197 / 1,134
0.05                                              567 / 567                693 / 693
=======================  =======================  =======================  =======================

The average of accounts without quarters would be faster by an eighth, but it is not an e-value: if a single bet of 0.9
is stopped after four of its six days if they went badly, and continued if they went well, its expectation is 1.11, not
1. A test of the h-day position marked to market each day, which needs no turns, was tried and rejected: on S&P 500
prices it tests something else. A 60-day volatility has a RankIC of 0.0001 on five-day labels (t 0.0), and of -0.008 a
day (t -5) by that measure, since ranks of one-day returns see the median instead of the mean.

Not covered is a factor whose expected RankIC is above zero in some months and below in others, zero on average, and
predictable from its own past. The hypothesis excludes such months, as does every test of overlapping days.

References ---------- Ville (1939); Waudby-Smith and Ramdas (2024), JRSS B 86: betting on bounded means. Henzi and
Ziegel (2022), Biometrika 109: turns for overlapping horizons. Shin, Ramdas and Rinaldo (2024), NEJSDS 2: e-detectors.
Xu and Ramdas (2024), AISTATS: e-LOND. Shares of the level: ours, 1 / (k (k + 1)).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Series = NDArray[np.float64]
BET_SHARE: Final = 0.95
"""Share of an account's capital that a RankIC of -1 would lose."""
QUARTER_DAYS: Final = 63


def quarter_days(horizon: int) -> int:
    """Return the scored days of a quarter: 63, or twice as many for a horizon that fills too much of it."""
    return QUARTER_DAYS if 6 * (horizon + 1) <= QUARTER_DAYS + 3 else 2 * QUARTER_DAYS


def settle_quarters(daily: ArrayLike, bar: float, horizon: int) -> Series:
    """Return the factor by which each complete quarter multiplies the capital.

    Parameters
    ----------
    daily
        RankIC of each day in the claimed direction, ``[D]``, in order of time, in [-1, 1]. NaN is a day without a bet.
    bar
        RankIC above -1: the hypothesis is a mean of at most this, and bets win on days above it.
    horizon
        Days of the label.

    Returns
    -------
    Series
        ``[quarters]``, above 0; days of an incomplete last quarter are left out.

    Raises
    ------
    ValueError
        `bar` is not above -1.
    """
    if not bar > -1.0:
        raise ValueError(f"bar must be above -1, got {bar}")
    length, turns = quarter_days(horizon), horizon + 1
    gains = np.nan_to_num(BET_SHARE * (np.asarray(daily, dtype=np.float64) - bar) / (1.0 + bar))
    gains = gains[: len(gains) // length * length].reshape(-1, length)[:, : length - horizon]
    logs = np.log1p(gains)
    accounts = np.asarray([np.exp(logs[:, turn::turns].sum(axis=1)) for turn in range(turns)], dtype=np.float64)
    return np.asarray(accounts.mean(axis=0), dtype=np.float64)


def compute_capital(factors: Series) -> Series:
    """Return the capital at the end of each quarter ``[quarters]``, 1 at the start: an e-value at any of them."""
    return np.asarray(np.cumprod(factors), dtype=np.float64)


def e_detector(factors: Series) -> Series:
    """Return the e-detector at the end of each quarter ``[quarters]``: the best of the bets begun at any quarter.

    While the hypothesis holds, it first reaches c after at least c quarters on average, whatever the days before. It
    finds a change after good years, which would have to use up the capital of `compute_capital` first. It starts at 1.
    """
    best, out = 1.0, np.empty(len(factors))
    for quarter, factor in enumerate(factors):
        best = max(best, 1.0) * float(factor)
        out[quarter] = best
    return out


def e_lond_threshold(place: int, promoted: int, level: float) -> float:
    """Return the e-value at which an entry of the watchlist is proven.

    Parameters
    ----------
    place
        Place of the entry among all that were ever watched, from 1; an entry keeps its place.
    promoted
        Number of entries that were proven before.
    level
        False discovery rate over all entries that will ever be proven, in (0, 1).

    Returns
    -------
    float
        ``place (place + 1) / (level (promoted + 1))``: the shares of the level, ``1 / (k (k + 1))``, sum to 1. They are
        larger than those of the stream of trials up to the 25th place, which suits short watchlists.

    Raises
    ------
    ValueError
        `place` is below 1, or `promoted` below 0.
    """
    if place < 1 or promoted < 0:
        raise ValueError(f"place must be at least 1 and promoted at least 0, got {place} and {promoted}")
    return place * (place + 1) / (level * (promoted + 1))
