"""Ranks and rank correlations against pandas and scipy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from alphaloom.factors.engine.ranks import order_rows, rank_rows, row_rank_correlation

KINDS = ("plain", "ties", "equal", "tiny", "huge", "near", "signed zeros", "infinite", "missing")


def row(rng: np.random.Generator, names: int, kind: str) -> NDArray[np.float64]:
    x = rng.normal(size=names)
    drawn = {
        "plain": x,
        "ties": np.round(x),
        "equal": np.ones(names),
        "tiny": x * 1e-300,
        "huge": x * 1e300,
        "near": 1 + np.round(x * 4) * 1e-12,
        "signed zeros": np.copysign(np.zeros(names), x),
        "infinite": np.where(x > 1, np.inf, np.where(x < -1, -np.inf, x)),
        "missing": np.full(names, np.nan),
    }
    return np.where(rng.random(names) < 0.1, np.nan, drawn[kind])


def drawn(seed: int, names: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return np.array([row(rng, names, kind) for kind in KINDS])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), names=st.sampled_from([1, 2, 9, 70, 200]))
def test_ranks_are_those_of_pandas(kind: type[np.floating], seed: int, names: int) -> None:
    with np.errstate(over="ignore", under="ignore"):
        x = drawn(seed, names).astype(kind)
    expected = pd.DataFrame(x).rank(axis=1, pct=True).to_numpy()
    np.testing.assert_array_equal(rank_rows(x), expected)


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), names=st.sampled_from([9, 12, 200]))
def test_correlations_are_those_of_scipy(seed: int, names: int) -> None:
    a, b = drawn(seed, names), np.random.default_rng(seed).permuted(drawn(seed + 1, names), axis=0)
    for x, y, found in zip(a, b, row_rank_correlation(a, b), strict=True):
        both = ~np.isnan(x) & ~np.isnan(y)
        if both.sum() < 10 or len(set(x[both])) == 1 or len(set(y[both])) == 1:
            assert np.isnan(found)
        else:
            assert abs(found - scipy.stats.spearmanr(x[both], y[both]).statistic) < 1e-12


def test_an_order_made_once_serves_for_values() -> None:
    a, b = drawn(1, 50), drawn(2, 50)
    direct = row_rank_correlation(a, b)
    np.testing.assert_array_equal(row_rank_correlation(order_rows(a), order_rows(b)), direct)
    np.testing.assert_array_equal(row_rank_correlation(a, order_rows(b)), direct)
    np.testing.assert_array_equal(rank_rows(order_rows(a)), rank_rows(a))
    thin = slice(1, None, 3)
    np.testing.assert_array_equal(row_rank_correlation(order_rows(a).take(thin), b[thin]), direct[thin])


def test_slices_and_read_only_arrays_are_ranked_like_their_copies() -> None:
    x = drawn(3, 40)
    x.setflags(write=False)
    np.testing.assert_array_equal(rank_rows(x[:, ::2]), rank_rows(x[:, ::2].copy()))
    np.testing.assert_array_equal(rank_rows(np.asfortranarray(x)), rank_rows(x.copy()))


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="axes days and names"):
        rank_rows(np.ones(3))
    with pytest.raises(ValueError, match="one shape"):
        row_rank_correlation(np.ones((2, 3)), np.ones((2, 4)))
    assert rank_rows(np.ones((0, 4))).shape == (0, 4)


@pytest.mark.parametrize("names", [64, 65, 100, 128, 129, 300, 513, 1000, 1025, 3000])
@pytest.mark.parametrize("kind", ["outlier", "ties", "outliers of both signs"])
def test_rows_that_the_first_digits_do_not_order(names: int, kind: str) -> None:
    """Each length has its own digits; near an outlier, and among many equal values, the lower ones decide."""
    rng = np.random.default_rng(names)
    values = rng.normal(100, 1, (12, names))
    if kind == "ties":
        values = rng.integers(-3, 4, (12, names)).astype(float)
        values[rng.random(values.shape) < 0.3] = np.nan
    else:
        values[:, 0] = -1e6
        values[:, -1] = 1e30 if kind == "outliers of both signs" else -1e6
    values = values.astype(np.float32)
    expected = pd.DataFrame(values).rank(axis=1, pct=True).to_numpy()
    np.testing.assert_allclose(rank_rows(values), expected, rtol=1e-12)
