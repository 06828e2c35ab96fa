"""RankIC of the holding: the mean of the last h ranks against the return of the next day.

The mean RankIC of an h-day label and this series test nearly the same hypothesis on the same returns. The label uses
each day's return h times, in overlapping sums. Here each return is used once, against the mean of the ranks that were
known before it and are still held: the same products in another order, without overlap. While a factor predicts
nothing, every day's value has mean zero given all earlier days, so days are uncorrelated, however slowly the factor
changes.

It is not the default, for two reasons that were measured on S&P 500 names. Real series keep some memory from day to day
(lag-1 autocorrelation .035 for the median formula, .08 for one in twenty). Without overlap, the lag does not cover it,
and a p-value of 1e-5 is then up to 1.7 times that. And ranks of one-day returns see the median instead of the mean: a
60-day volatility has a t of -5 by this measure and of 0 on five-day labels. Where large moves are more often up than
down it finds a factor although all expected returns are equal. A result therefore counts only if the labels' own test
agrees (`mean_test.confirm_p_value`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...factors import RowOrder, rank_rows, row_rank_correlation

Frame = NDArray[np.float64]
Series = NDArray[np.float64]


def holding_ranks(values: NDArray[np.floating], horizon: int) -> Frame:
    """Return the mean rank with which each name is held on each day.

    Parameters
    ----------
    values
        Factor on a window's days `[D, N]`, NaN missing.
    horizon
        Days h that a position is held, at least 1.

    Returns
    -------
    Frame
        `[D, N]`: the sum over the last h days of the factor's rank, centred at 0 within its day, divided by h. A day
        without a rank of the name counts as 0; NaN where none of the h days has one. Ranks of the last h + 1 days of
        the window are not used: their h-day label would end outside.
    """
    ranks = rank_rows(values)
    present = ~np.isnan(ranks)
    count = np.maximum(present.sum(axis=1, keepdims=True), 1)
    centred = np.where(present, ranks - (count + 1) / (2 * count), 0.0)
    last = max(len(ranks) - horizon - 1, 0)
    centred[last:], present[last:] = 0.0, False
    total, is_held = np.zeros(ranks.shape), np.zeros(ranks.shape, dtype=np.bool_)
    for age in range(horizon):
        total[age:] += centred[: len(total) - age]
        is_held[age:] |= present[: len(is_held) - age]
    return np.where(is_held, total / horizon, np.nan)


def holding_rank_ic(values: NDArray[np.floating], order: RowOrder, horizon: int) -> Series:
    """Return each day's rank correlation `[D]` of the ranks held with that day's return.

    Parameters
    ----------
    values
        Factor on a window's days `[D, N]`, NaN missing.
    order
        Order of the one-day labels of the same days: the return from the next open to the one after it.
    horizon
        Days h that a position is held.

    Returns
    -------
    Series
        `[D]`, NaN where fewer than 10 names have both, and on the days after the last position.
    """
    return row_rank_correlation(holding_ranks(values, horizon), order)
