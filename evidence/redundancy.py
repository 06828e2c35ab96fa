"""Does it say what the library already says? Absolute rank correlation of values, exact, on every fifth search day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..factors import row_rank_correlation
from .windows import Window

STEP = 5


@dataclass(frozen=True)
class Overlap:
    """The library factor that a candidate is most like, and how much; `rank_correlation` is signed."""

    factor_id: str
    rank_correlation: float


def rank_correlation(a: NDArray[np.float32], b: NDArray[np.float32], window: Window) -> float:
    """Return the mean daily rank correlation of two factors over every fifth day of a window; 0 where undefined."""
    first, second = (np.ascontiguousarray(window.cut(values)[::STEP]) for values in (a, b))
    daily = row_rank_correlation(first, second)
    return float(np.nanmean(daily)) if not np.isnan(daily).all() else 0.0


def closest(values: NDArray[np.float32], library: Mapping[str, NDArray[np.float32]], window: Window) -> Overlap | None:
    """Return the library factor with the largest absolute rank correlation, None for an empty library."""
    found = [Overlap(name, rank_correlation(values, known, window)) for name, known in sorted(library.items())]
    return max(found, key=lambda one: abs(one.rank_correlation), default=None)
