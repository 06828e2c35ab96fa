"""The trading rate: the share of the way to a combination's score that is traded each day.

Trading costs grow with the rate, and the loss from a slow score depends on how fast forecasts decay; the best rate
follows from both (Garleanu and Pedersen 2013, Journal of Finance 68, 2309-2340: trade part of the way towards the aim).
The rate is chosen by the Sharpe ratio after the campaign's costs of each candidate on search days, not from half-lives.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..evidence import Window
from ..evidence.scoring import Scorer

Frame = NDArray[np.float32]

RATES = (1.0, 0.5, 1 / 3, 0.2, 0.125)
"""Candidates, the fastest first; the fastest wins a tie. The slowest trades half of the distance in five days."""
COMPARED_DAYS = 5


def choose_trading_rate(score: Frame, scorer: Scorer, search: Window) -> float:
    """Return the rate with the highest Sharpe ratio after costs on search; 1 if none is defined."""
    sharpes = net_sharpes(score, scorer, search)
    defined = {rate: value for rate, value in sharpes.items() if not np.isnan(value)}
    return max(defined, key=lambda rate: (defined[rate], rate), default=1.0)


def net_sharpes(score: Frame, scorer: Scorer, window: Window) -> Mapping[float, float]:
    """Return the Sharpe ratio after costs of a score ``[T, N]`` at each rate."""
    return {rate: scorer.score(slow_score(score, rate), window, 1).net_sharpe for rate in RATES}


def measure_half_life(score: Frame, window: Window) -> float:
    """Return the half-life of a score's rank autocorrelation, which is assumed to fall exponentially.

    Parameters
    ----------
    score
        Scores ``[T, N]``, NaN missing.
    window
        Days of the score; every fifth is compared with the one `COMPARED_DAYS` later.

    Returns
    -------
    float
        In days; NaN where the correlation does not fall, is not positive, or the window is too short.
    """
    from ..factors import row_rank_correlation

    cut = window.cut(score)
    if len(cut) <= COMPARED_DAYS:
        return float("nan")
    now, later = (np.ascontiguousarray(rows[::COMPARED_DAYS]) for rows in (cut[:-COMPARED_DAYS], cut[COMPARED_DAYS:]))
    daily = row_rank_correlation(now, later)
    present = daily[~np.isnan(daily)]
    correlation = float(present.mean()) if present.size else float("nan")
    return float(COMPARED_DAYS * np.log(0.5) / np.log(correlation)) if 0 < correlation < 1 else float("nan")


def slow_score(score: Frame, rate: float) -> Frame:
    """Return the score that moves a share of the way from its last value to the given score each day.

    Parameters
    ----------
    score
        Scores ``[T, N]``, NaN missing.
    rate
        Share of the way, in (0, 1]; 1 returns the score itself.

    Returns
    -------
    Frame
        ``[T, N]``, NaN where the score is. A name that reappears starts from its score of that day.
    """
    if rate >= 1.0:
        return score
    out = np.empty_like(score)
    position = np.full(score.shape[1], np.nan)
    for day, target in enumerate(score.astype(np.float64)):
        position = np.where(np.isnan(position), target, position + rate * (target - position))
        out[day] = position
    return out
