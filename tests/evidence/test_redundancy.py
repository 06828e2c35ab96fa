"""What the library already says is recognised in its values, also upside down."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from alphaloom.evidence.originality import rank_correlation
from alphaloom.evidence.originality.redundancy import find_closest
from alphaloom.evidence.windows import Window

WINDOW = Window("search", 3, 90, "a", "b")


def draw(seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    values = np.random.default_rng(seed).normal(size=(100, 30))
    values[values > 1.8] = np.nan
    return values.astype(np.float32)


def test_every_fifth_day_of_the_window_is_correlated() -> None:
    a, b = draw(1), draw(1) + draw(2)
    daily = [spearmanr(a[t], b[t], nan_policy="omit")[0] for t in range(3, 90, 5)]
    assert rank_correlation(a, b, WINDOW) == pytest.approx(np.mean(daily), rel=1e-9)


def test_a_clone_with_the_sign_turned_is_caught() -> None:
    library = {"f1": draw(2), "f2": -np.exp(draw(1)), "f3": draw(3)}
    closest = find_closest(draw(1), library, WINDOW)
    assert closest is not None
    assert closest.factor_id == "f2"
    assert closest.rank_correlation == pytest.approx(-1)


def test_days_outside_the_window_do_not_count() -> None:
    other = draw(5)
    other[3:90] = draw(1)[3:90]
    assert rank_correlation(draw(1), other, WINDOW) == 1


def test_nothing_is_like_an_empty_library_or_a_constant() -> None:
    assert find_closest(draw(1), {}, WINDOW) is None
    assert rank_correlation(draw(1), np.ones((100, 30), np.float32), WINDOW) == 0
