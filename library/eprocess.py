"""Evidence that grows with the days: a capital that bets on a factor's daily RankIC, and can be looked at any time.

The hypothesis that is tested: on every day, given all that the market knew at its close, the expected RankIC of the factor
in the claimed direction is not above a bar. Whoever bets on a RankIC above it then expects to win nothing, and his capital
reaches 1/alpha with a probability of at most alpha, however long he plays and whenever he looks (Ville's inequality).

A label of h days makes the RankIC of neighbouring days overlap, and half-known bets would let one stop at a lucky moment.
So h + 1 accounts take turns: each bets on every (h + 1)-th day, and knows how its last bet ended before it bets again.
Days are settled in quarters of `settle_days` days. No bet is made in the last h days of a quarter, so that at its end
nothing is open; the accounts are then counted together and share the capital evenly. The capital at the ends of quarters
is a martingale of the whole market's knowledge. An average of accounts that is read at any day is none: one could wait for
the end of a bet that stands well and stop before the end of one that stands badly. Tests simulate it, with labels that
overlap fully and nearly not.

The bet is the largest that nothing can ruin: 0.95 of what an account holds, times the RankIC less the bar, over the most that
a RankIC of -1 could lose. Nothing is cut and no law of the days is assumed, so a mean of zero that is made of rare crashes
proves nothing either. Larger bets would need a floor under the losses: bets of up to half a unit of three daily deviations
were proven in half of the days (567 and 441 at 0.03), and by crashes too (capital at 20 in 9 of 100 series with skewness -1
and twice the deviation expected); they were left.

Measured (4,000 series of ten years for zero, 1,000 of twenty for the others; h = 5, RankIC of a day with standard deviation
0.08; slow factor / one that is mostly new each day; tests repeat a part of it):

=======================  =======================  =======================  =======================
true mean RankIC         capital ever at 20       median days to a         median days to a
                         (at most 0.05 allowed)   capital of 40            capital of 100
=======================  =======================  =======================  =======================
0                        0.005 / 0.000            -                        -
0.02                                              1,449 / 1,386            1,796 / 1,701
0.03                                              945 / 945                1,197 / 1,134
0.05                                              567 / 567                693 / 693
=======================  =======================  =======================  =======================

The average of accounts without quarters would be faster by an eighth. It is no e-value: whoever stops a single bet of 0.9 after
four of its six days if they went badly, and waits if they went well, has 1.11 in expectation, not 1. A test of the h-day
position marked to market each day, which needs no turns, was tried and left: on S&P 500 prices it tests something else. A
60-day volatility has a RankIC of 0.0001 on five-day labels (t 0.0), and of -0.008 a day (t -5) by that measure, since ranks of
one-day returns see the median and not the mean.

What is not covered: a factor whose expected RankIC is above zero in some months and below in others, zero on average, and
foreseeable from its own past. The hypothesis rules such months out, and so does no test of overlapping days.

References
----------
Ville (1939); Waudby-Smith and Ramdas (2024), JRSS B 86: betting on bounded means. Henzi and Ziegel (2022), Biometrika 109:
turns for overlapping horizons. Shin, Ramdas and Rinaldo (2024), NEJSDS 2: e-detectors. Xu and Ramdas (2024), AISTATS:
e-LOND. Shares of the level: ours, 1 / (k (k + 1)).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Series = NDArray[np.float64]
BET_SHARE: Final = 0.95
"""Share of what an account holds that a RankIC of -1 would lose."""
QUARTER_DAYS: Final = 63


def quarter_days(horizon: int) -> int:
    """Return after how many scored days bets are settled: 63, or twice as many where the horizon fills a quarter."""
    return QUARTER_DAYS if 6 * (horizon + 1) <= QUARTER_DAYS + 3 else 2 * QUARTER_DAYS


def settle_quarters(daily: ArrayLike, bar: float, horizon: int) -> Series:
    """Return by what each whole quarter multiplies the capital.

    Parameters
    ----------
    daily
        RankIC of each day in the claimed direction, ``[D]``, in order of time, in [-1, 1]. NaN is a day without a bet.
    bar
        The hypothesis is a mean of at most this; bets win on days above it. RankIC, above -1.
    horizon
        Days of the label.

    Returns
    -------
    Series
        ``[quarters]``, above 0; days after the last whole quarter wait for its end.

    Raises
    ------
    ValueError
        If `bar` is not above -1.
    """
    if not bar > -1.0:
        raise ValueError(f"bar must be above -1, got {bar}")
    length, turns = quarter_days(horizon), horizon + 1
    won = np.nan_to_num(BET_SHARE * (np.asarray(daily, dtype=np.float64) - bar) / (1.0 + bar))
    won = won[: len(won) // length * length].reshape(-1, length)[:, : length - horizon]
    logs = np.log1p(won)
    accounts = np.asarray([np.exp(logs[:, turn::turns].sum(axis=1)) for turn in range(turns)], dtype=np.float64)
    return np.asarray(accounts.mean(axis=0), dtype=np.float64)


def compute_capital(factors: Series) -> Series:
    """Return the capital at the end of each quarter, 1 at the start: an e-value at any of them. ``[quarters]``."""
    return np.asarray(np.cumprod(factors), dtype=np.float64)


def e_detector(factors: Series) -> Series:
    """Return the e-detector at the end of each quarter: bets that may have begun at any quarter, the best of them.

    While the hypothesis holds, it stays below c for c quarters on average at least, whatever the days before. So it finds
    a change that comes after good years, which `compute_capital` has to earn back first. ``[quarters]``, 1 at the start.
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
        1 for the first entry that was ever watched, and so on; an entry keeps its place.
    promoted
        Entries that were proven before.
    level
        Expected share of false ones among all that will ever be proven, in (0, 1).

    Returns
    -------
    float
        ``place (place + 1) / (level (promoted + 1))``: the shares of the level, ``1 / (k (k + 1))``, sum to 1. They are
        larger than those of the stream of trials up to the 25th place, and watchlists are short.

    Raises
    ------
    ValueError
        If `place` or `promoted` cannot be.
    """
    if place < 1 or promoted < 0:
        raise ValueError(f"place must be at least 1 and promoted at least 0, got {place} and {promoted}")
    return place * (place + 1) / (level * (promoted + 1))
