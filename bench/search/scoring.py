"""How good a method's ten factors and their combination are, held against what was planted, on sealed days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alphaloom.evidence.newey_west import newey_west_t
from alphaloom.evidence.windows import Window
from alphaloom.factors import Engine, RowOrder, order_rows, row_rank_correlation

from .choice import ALIKE, centred_ranks, likeness
from .world import LAG, Alpha, World

__all__ = ["Truth", "examined", "judged", "recall", "span_r2", "unrelated"]

Values = NDArray[np.float32]
Frame = NDArray[np.float64]
UNRELATED = 0.3
"""A factor whose likeness to every plant is below this has found nothing that is there."""
FALSE = 0.02


@dataclass(frozen=True)
class Truth:
    """A market's alphas on its sealed days: their orders and the noise-free expected return."""

    window: Window
    alphas: tuple[Alpha, ...]
    orders: tuple[RowOrder, ...]
    expected: Values

    @classmethod
    def of(cls, world: World) -> Truth:
        """Compute the alphas of a planted market."""
        assert world.expected is not None, "nobody knows what is true of this panel"
        window = world.windows.sealed
        values = Engine(world.panel, cache_bytes=0, threads=1).stream([alpha.text for alpha in world.alphas])
        return cls(
            window, world.alphas, tuple(order_rows(window.cut(one)) for one in values), window.cut(world.expected)
        )

    def likeness(self, factors: Sequence[Values]) -> Frame:
        """Return the likeness of each alpha to each factor `[T, N]` on sealed days, ``[alphas, factors]``."""
        own = [order_rows(np.ascontiguousarray(self.window.cut(factor))) for factor in factors]
        return np.array([[likeness(alpha, one) for one in own] for alpha in self.orders]).reshape(len(self.orders), -1)


def recall(like: Frame, counts: Sequence[bool]) -> float:
    """Return the share of the alphas that count to which some factor has a likeness of 0.7 or more."""
    asked = like[np.asarray(counts, dtype=np.bool_)]
    return float(np.mean(asked.max(axis=1, initial=0.0) >= ALIKE)) if len(asked) else float("nan")


def unrelated(like: Frame) -> float:
    """Return the share of the factors that are like no alpha, dead ones included; NaN without factors."""
    return float(np.mean(like.max(axis=0, initial=0.0) < UNRELATED)) if like.shape[1] else float("nan")


def span_r2(ranks: Sequence[Values], expected: Values, present: NDArray[np.bool_]) -> float:
    """Return how much of the expected return's spread the factors' ranks span, with one weight for each over all days.

    Parameters
    ----------
    ranks : sequence of arrays
        Centred ranks ``[days, N]``.
    expected : array
        ``[days, N]``; each day is brought to mean 0 and deviation 1 first.
    present : array
        Cells that take part.
    """
    if not ranks:
        return 0.0
    goal = _standardised(np.where(present, expected, np.nan))[present]
    columns = np.stack([_demeaned(np.where(present, rank, np.nan))[present] for rank in ranks]).T
    fitted = columns @ np.linalg.lstsq(columns, goal, rcond=None)[0]
    return float(1.0 - np.sum((goal - fitted) ** 2) / np.sum(goal**2))


def examined(world: World, factors: Sequence[Values], combined: Values, truth: Truth) -> dict[str, Any]:
    """Return every figure of one method on the sealed days of one planted market."""
    window = world.windows.sealed
    score = np.ascontiguousarray(window.cut(combined))
    daily = row_rank_correlation(score, np.ascontiguousarray(window.cut(world.label)))
    test = newey_west_t(daily, LAG)
    like = truth.likeness(factors)
    counts = [alpha.counts for alpha in truth.alphas]
    present = window.cut(world.panel.universe)
    new = [alpha.counts and not alpha.known for alpha in truth.alphas]
    return {
        "sealed_rank_ic": test.mean,
        "sealed_t": test.t,
        "recall": recall(like, counts),
        "new": recall(like, new),
        "counted": sum(counts),
        "hits": [alpha.text for alpha, row in zip(truth.alphas, like, strict=True) if _hit(alpha, row)],
        "likeness": [round(float(row.max(initial=0.0)), 3) for row in like],
        "span_r2": span_r2(
            [centred_ranks(np.ascontiguousarray(window.cut(f))) for f in factors], truth.expected, present
        ),
        "correlation": _mean(row_rank_correlation(score, truth.expected)),
        "unrelated": unrelated(like),
    }


def judged(world: World, accepted: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Hold what a gate accepted against the truth of the selection days that it looked at.

    An acceptance is false if its mean rank correlation there with the noise-free expected return, in the direction in
    which it is held, is below 0.02, as in `bench.honesty`.
    """
    assert world.expected is not None, "nobody knows what is true of this panel"
    window = world.windows.selection
    expected = window.cut(world.expected)
    values = Engine(world.panel, cache_bytes=0, threads=1).stream([row["text"] for row in accepted])
    daily = [row_rank_correlation(np.ascontiguousarray(window.cut(one)), expected) for one in values]
    truth = [float(each["sign"]) * _mean(series) for each, series in zip(accepted, daily, strict=True)]
    return {
        "accepted": len(truth),
        "false": sum(correlation < FALSE for correlation in truth),
        "truth": [round(t, 4) for t in truth],
    }


def _hit(alpha: Alpha, row: Frame) -> bool:
    return alpha.counts and float(row.max(initial=0.0)) >= ALIKE


def _mean(daily: Frame) -> float:
    """Return the mean; 0 where a score orders nothing on any day."""
    known = daily[~np.isnan(daily)]
    return float(known.mean()) if known.size else 0.0


def _demeaned(rows: NDArray[np.floating]) -> Frame:
    found: Frame = np.asarray(rows - np.nanmean(rows, axis=1, keepdims=True), dtype=np.float64)
    return found


def _standardised(rows: NDArray[np.floating]) -> Frame:
    """Bring each day to mean 0 and deviation 1; a day without any spread stays 0."""
    moved = _demeaned(rows)
    spread = np.nanstd(moved, axis=1, keepdims=True)
    return np.where(spread > 0, moved / np.where(spread > 0, spread, 1.0), moved)
