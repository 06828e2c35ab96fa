"""Combiners beside each other: what each would have given, and whether the differences are more than luck."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evidence.scoring import Profiler, round_significant
from .trading_rate import half_life

__all__ = ["Entrant", "PairedDifference", "bootstrap_difference", "combination_figures", "compare_combiners"]

Series = NDArray[np.float64]
Frame = NDArray[np.float32]

BOOTSTRAP_BLOCK_HORIZONS = 4
"""Days of a block for each day of the label: labels overlap, and factors' good weeks come together."""
BOOTSTRAP_DRAWS = 2_000
BOOTSTRAP_SEED = 20_130_606
INTERVAL_SHARE = 0.95


@dataclass(frozen=True, eq=False)
class Entrant:
    """A combination as it is, and as it is traded at its rate; ``[T, N]`` each."""

    at_once: Frame
    traded: Frame


@dataclass(frozen=True)
class PairedDifference:
    """Mean of paired daily differences with the interval that holds it in 95 of 100 redrawn histories; NaN unknown."""

    mean: float
    low: float
    high: float
    days: int

    @property
    def is_tie(self) -> bool:
        """Tell whether 0 lies within the interval, or nothing is known."""
        return not (self.low > 0 or self.high < 0)

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        numbers = {name: round_significant(getattr(self, name)) for name in ("mean", "low", "high")}
        return {**numbers, "days": self.days, "tie": self.is_tie}


def bootstrap_difference(
    one: Series, other: Series, horizon: int, *, draws: int = BOOTSTRAP_DRAWS, seed: int = BOOTSTRAP_SEED
) -> PairedDifference:
    """Compare two daily series of the same days by the circular block bootstrap.

    Parameters
    ----------
    one, other
        ``[D]``, NaN where undefined; a day counts where both are known.
    horizon
        Days of the label; blocks are four times as long.
    draws, seed
        Redrawn histories, and where all chance comes from.

    References
    ----------
    Politis and Romano (1992), in Exploring the Limits of Bootstrap, 263-270: blocks in a circle.
    """
    paired = one - other
    paired = paired[~np.isnan(paired)]
    days, block = len(paired), BOOTSTRAP_BLOCK_HORIZONS * horizon
    if days < 2 * block:
        return PairedDifference(float(paired.mean()) if days else float("nan"), float("nan"), float("nan"), days)
    around = np.concatenate([paired, paired[: block - 1]])
    sums = np.convolve(around, np.ones(block), mode="valid")
    starts = np.random.default_rng(seed).integers(0, days, (draws, -(-days // block)))
    means = sums[starts].mean(axis=1) / block
    low, high = np.quantile(means, [(1 - INTERVAL_SHARE) / 2, (1 + INTERVAL_SHARE) / 2])
    return PairedDifference(float(paired.mean()), float(low), float(high), days)


def combination_figures(score: Frame, profiler: Profiler) -> dict[str, Any]:
    """Return what a combination shows on a window: RankIC, t, turnover, Sharpe, half-life, capacity."""
    window = profiler.window
    sheet = profiler.scorer.score(score, window, 1)
    named = ("rank_ic", "t", "turnover", "gross_sharpe", "net_sharpe")
    return {
        **{name: round_significant(getattr(sheet, name)) for name in named},
        "half_life_days": round_significant(half_life(score, window)),
        "capacity": profiler.capacity(score),
    }


def compare_pairs(entrants: Mapping[str, Entrant], profiler: Profiler) -> list[dict[str, Any]]:
    """Return the differences of each pair: of the daily RankIC at once, and of the daily return after costs as traded.

    The first tells the combiners apart, whatever the rates; the second is what the rates are chosen for.
    """
    scorer, window = profiler.scorer, profiler.window
    told = {name: scorer.daily_rank_ic(each.at_once, window) for name, each in entrants.items()}
    earned = {name: scorer.score(each.traded, window, 1).net_daily for name, each in entrants.items()}
    names, horizon = list(entrants), scorer.settings.horizon_days
    return [
        {
            "of": one,
            "less": other,
            "rank_ic": bootstrap_difference(told[one], told[other], horizon).record(),
            "net_return": bootstrap_difference(earned[one], earned[other], horizon).record(),
        }
        for place, one in enumerate(names)
        for other in names[:place]
    ]


def compare_combiners(entrants: Mapping[str, Entrant], profilers: Mapping[str, Profiler]) -> dict[str, Any]:
    """Return figures and paired differences of several combinations on each window, by the window's name."""
    return {
        name: {
            "combiners": {kind: combination_figures(each.traded, profiler) for kind, each in entrants.items()},
            "differences": compare_pairs(entrants, profiler),
        }
        for name, profiler in profilers.items()
    }
