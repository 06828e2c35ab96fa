"""How fast to trade towards a combination: the share of the way each day that leaves the highest Sharpe ratio after costs.

Trading costs grow with speed, and the loss from a slow score depends on how long the factors' forecasts last; the best rate
follows from both (Garleanu and Pedersen 2013, Journal of Finance 68, 2309-2340: trade part of the way towards the aim). No
formula of half-lives is used: each candidate is held on search days, with the costs of the campaign.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..evidence import Window
from ..evidence.scoring import Scorer

Frame = NDArray[np.float32]

RATES = (1.0, 0.5, 1 / 3, 0.2, 0.125)
"""Candidates, the fastest first; of equals the fastest is taken. The slowest halves what is left to trade in five days."""


def choose_trading_rate(score: Frame, scorer: Scorer, search: Window) -> float:
    """Return the rate with the highest Sharpe ratio after costs on search; 1 where none is defined."""
    found = net_sharpes(score, scorer, search)
    known = {rate: value for rate, value in found.items() if not np.isnan(value)}
    return max(known, key=lambda rate: (known[rate], rate), default=1.0)


def net_sharpes(score: Frame, scorer: Scorer, window: Window) -> Mapping[float, float]:
    """Return the Sharpe ratio after costs at each rate."""
    return {rate: scorer.score(slow_score(score, rate), window, 1).net_sharpe for rate in RATES}


def measure_half_life(score: Frame, window: Window, days: int = 5) -> float:
    """Return in how many days the rank correlation of a score with itself falls to a half.

    Parameters
    ----------
    score
        ``[T, N]``, NaN missing.
    window
        Every fifth of its days is compared.
    days
        Distance of the compared days; the correlation is taken to fall exponentially from there.

    Returns
    -------
    float
        In days; NaN where the correlation does not fall, is not positive, or the window is too short.
    """
    from ..factors import row_rank_correlation

    cut = window.cut(score)
    if len(cut) <= days:
        return float("nan")
    now, later = (np.ascontiguousarray(each[::5]) for each in (cut[:-days], cut[days:]))
    daily = row_rank_correlation(now, later)
    known = daily[~np.isnan(daily)]
    alike = float(known.mean()) if known.size else float("nan")
    return float(days * np.log(0.5) / np.log(alike)) if 0 < alike < 1 else float("nan")


def slow_score(score: Frame, rate: float) -> Frame:
    """Return a score that goes from where it stood a share of the way to where it should be, every day.

    Parameters
    ----------
    score
        ``[T, N]``, NaN missing.
    rate
        Share of the way, in (0, 1]; 1 changes nothing.

    Returns
    -------
    Frame
        ``[T, N]``. A name that comes back starts from its score of that day.
    """
    if rate >= 1.0:
        return score
    out = np.empty_like(score)
    stands = np.full(score.shape[1], np.nan)
    for day, wanted in enumerate(score.astype(np.float64)):
        stands = np.where(np.isnan(stands), wanted, stands + rate * (wanted - stands))
        out[day] = stands
    return out
