"""What a method is judged by: at most ten factors, none like another, and one score made of them on search days."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from alphaloom.factors import RowOrder, order_rows, rank_rows, row_rank_correlation

__all__ = ["ALIKE", "MOST", "centred_ranks", "chosen", "combination", "likeness", "ridge"]

Values = NDArray[np.float32]
Frame = NDArray[np.float64]
Item = TypeVar("Item")
MOST = 10
ALIKE = 0.7
"""Absolute mean daily rank correlation from which two factors are one; also what makes a hit."""
PENALTY = 0.01
"""The ridge's share of the mean variance of the factors' ranks: it keeps twins from taking opposite sides."""


def likeness(one: RowOrder, other: RowOrder) -> float:
    """Return the absolute mean daily rank correlation of two factors; 0 where no day has both."""
    daily = row_rank_correlation(one, other)
    known = daily[~np.isnan(daily)]
    return abs(float(known.mean())) if known.size else 0.0


def chosen(
    preferred: Iterable[Item], values: Callable[[Item], Values], *, most: int = MOST, alike: float = ALIKE
) -> list[Item]:
    """Return a method's factors in its own order of preference, leaving out each that is like one taken before.

    Parameters
    ----------
    preferred : iterable
        Factors, the best first; it is read no further than needed.
    values : callable
        Gives a factor's values on search days, ``[days, N]``.
    most : int
        How many to take.
    alike : float
        Likeness from which a factor is left out.
    """
    taken: list[tuple[Item, RowOrder]] = []
    for item in preferred:
        order = order_rows(values(item))
        if all(likeness(order, other) < alike for _, other in taken):
            taken.append((item, order))
        if len(taken) == most:
            break
    return [item for item, _ in taken]


def centred_ranks(values: Values) -> Values:
    """Return each day's ranks between -0.5 and 0.5, 0 where a value is missing, ``[T, N]``."""
    ranks: Values = (np.nan_to_num(rank_rows(values) - 0.5)).astype(np.float32)
    return ranks


def ridge(ranks: Sequence[Values], label: Frame) -> Frame:
    """Return one weight for each factor: ridge regression of the label's ranks on the factors' on labelled cells.

    Parameters
    ----------
    ranks : sequence of arrays
        Centred ranks of the factors on search days, ``[days, N]`` each.
    label : array
        ``[days, N]``, NaN missing.
    """
    if not ranks:
        return np.zeros(0)
    there = ~np.isnan(label)
    goal = centred_ranks(label.astype(np.float32))[there].astype(np.float64)
    columns = np.stack([rank[there] for rank in ranks]).astype(np.float64)
    gram = columns @ columns.T
    gram += PENALTY * float(np.mean(np.diag(gram))) * np.eye(len(ranks))
    weights: Frame = np.asarray(np.linalg.lstsq(gram, columns @ goal, rcond=None)[0], dtype=np.float64)
    return weights


def combination(ranks: Sequence[Values], weights: Frame, universe: NDArray[np.bool_]) -> Values:
    """Return the weighted sum of the factors' centred ranks ``[T, N]``, NaN outside the universe."""
    total = np.zeros(universe.shape)
    for each, weight in zip(ranks, weights, strict=True):
        total += weight * each
    return np.where(universe, total, np.nan).astype(np.float32)
