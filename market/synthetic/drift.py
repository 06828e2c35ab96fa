"""How strongly a signal must push returns so that it has the rank correlation that was asked for.

A signal known at the close of t becomes a score: its rank among the names of that day, as a normal quantile. The push on
the log return from open[t+1] to open[t+2] is strength x own volatility of the median name x score. The strength follows
from the market itself: with the unit push D (five days of it, so a persistent signal collects more) and the noise R of
the same five days, the expected RankIC at strength k is

    [ RankIC(score, k D + R) + RankIC(score, k D - R) ] / 2

because R and -R are equally likely given everything known at t. The luck of the drawn noise cancels, so the strength
knows nothing of the particular future it is used on, and the realised RankIC scatters around the target as it should.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .listings import Listings
from .noise import NoiseReturns

DRIFT_HORIZON_DAYS = 5
MIN_MEASURED_NAMES = 10
"""Days with fewer names than this measure nothing."""


@dataclass(frozen=True)
class DriftScale:
    """Holds the noise that scores are measured against, on every fifth day so that labels do not overlap.

    `noise` is the five-day log return `[D, N]` from open[t+1] to open[t+6] without any drift, NaN where the name does
    not trade on t, t+1 and t+6; `days` are the values of t; `scale` `[T]` is the median own volatility of that day.
    """

    noise: NDArray[np.float64]
    days: NDArray[np.intp]
    scale: NDArray[np.float64]

    def rank_ic(self, score: NDArray[np.float64], drift: NDArray[np.float64]) -> float:
        """Return the expected mean daily RankIC of a score `[T, N]` when this log drift `[T, N]` is at work."""
        total = np.cumsum(np.nan_to_num(drift), axis=0)
        pushed = total[self.days + DRIFT_HORIZON_DAYS - 1] - total[self.days] + np.nan_to_num(drift[self.days])
        known = score[self.days]
        both = [mean_rank_ic(known, pushed + sign * self.noise) for sign in (1.0, -1.0)]
        return float(np.mean(both))


def make_yardstick(listings: Listings, noise: NoiseReturns) -> DriftScale:
    """Measure the five-day noise and the volatility of the median name."""
    days = np.arange(0, len(listings.dates) - DRIFT_HORIZON_DAYS - 1, DRIFT_HORIZON_DAYS)
    to_open = noise.overnight.copy()
    to_open[1:] += noise.intraday[:-1]
    path = np.cumsum(to_open, axis=0)
    label = path[days + 1 + DRIFT_HORIZON_DAYS] - path[days + 1]
    present = listings.present
    label[~(present[days] & present[days + 1] & present[days + 1 + DRIFT_HORIZON_DAYS])] = np.nan
    scale = np.nanmedian(np.where(listings.listed, noise.volatility, np.nan), axis=1)
    return DriftScale(label, days, scale)


def normal_scores(signal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each day's ranks as normal quantiles `[T, N]`: average ties, NaN (also for infinities) stays NaN."""
    from scipy.special import ndtri

    ranks, count = row_ranks(signal)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores: NDArray[np.float64] = np.asarray(ndtri((ranks - 0.5) / count), dtype=np.float64)
    return scores


def row_ranks(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ascending ranks 1..n of each row with average ties, NaN where not finite, and n as `[T, 1]`."""
    finite = np.isfinite(values)
    filled = np.where(finite, values, np.inf)
    order = np.argsort(filled, axis=1)
    ordered = np.take_along_axis(filled, order, axis=1)
    place = np.broadcast_to(np.arange(values.shape[1]), values.shape)
    differs = ordered[:, 1:] != ordered[:, :-1]
    edge = np.ones((len(values), 1), dtype=np.bool_)
    first = np.maximum.accumulate(np.where(np.hstack([edge, differs]), place, 0), axis=1)
    backward = np.where(np.hstack([differs, edge]), place, values.shape[1])[:, ::-1]
    last = np.minimum.accumulate(backward, axis=1)[:, ::-1]
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2.0 + 1.0, axis=1)
    ranks[~finite] = np.nan
    return ranks, finite.sum(axis=1, keepdims=True).astype(np.float64)


def daily_rank_ic(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each row's Spearman correlation over the names that both know; NaN for under ten names or no variation."""
    both = np.isfinite(first) & np.isfinite(second)
    centred = []
    for values in (first, second):
        ranks, count = row_ranks(np.where(both, values, np.nan))
        centred.append(np.where(both, ranks - (count + 1.0) / 2.0, 0.0))
    product = np.einsum("ij,ij->i", *centred)
    spread = np.sqrt(np.einsum("ij,ij->i", centred[0], centred[0]) * np.einsum("ij,ij->i", centred[1], centred[1]))
    usable = (both.sum(axis=1) >= MIN_MEASURED_NAMES) & (spread > 0)
    daily = np.full(len(first), np.nan)
    daily[usable] = product[usable] / spread[usable]
    return daily


def mean_rank_ic(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the mean of the daily rank correlations; zero if no day could be measured."""
    daily = daily_rank_ic(first, second)
    usable = daily[np.isfinite(daily)]
    return float(usable.mean()) if usable.size else 0.0
