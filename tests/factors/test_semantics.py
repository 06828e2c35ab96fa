"""The table of what engines disagree about, row by row: what this engine means, and what it keeps of the others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.typing import ArrayLike, NDArray

from alphaloom.factors import OPERATORS, parse
from alphaloom.factors.engine.engine import Engine
from alphaloom.market import Panel
from alphaloom.market.panel import REQUIRED_FIELDS

Values = NDArray[np.float64]
QUIET = 5.5e-4


def panel(columns: Mapping[str, ArrayLike]) -> Panel:
    """Make a panel, everyone a member; a flat list is one name's days. Columns that are not given are zero."""
    given = {name: np.atleast_2d(np.array(x, np.float32).T).T.astype(np.float64) for name, x in columns.items()}
    days, names = shape = next(iter(given.values())).shape
    fields = {name: np.zeros(shape) for name in (*REQUIRED_FIELDS, "returns")} | given
    dates = np.datetime64("2020-01-01") + np.arange(days)
    return Panel(dates, tuple(f"S{j:03}" for j in range(names)), fields, np.ones(shape, bool))


def value(text: str, dialect: str = "alphaloom", **columns: ArrayLike) -> NDArray[np.float32]:
    """Compute a formula over the columns; one name gives one column of days."""
    values = Engine(panel(columns), threads=1).evaluate([parse(text, dialect=dialect)])[0]
    return values[:, 0] if values.shape[1] == 1 else values


def told(text: str, dialect: str) -> str:
    """Return what an import says differs."""
    return "; ".join(parse(text, dialect=dialect).warnings)


def exact_std(x: Values, window: int) -> Values:
    """Take each window by itself, in two passes."""
    rows = [x[day - window + 1 : day + 1] for day in range(window - 1, len(x))]
    return np.array([[math.sqrt(math.fsum((w - w.mean()) ** 2) / (window - 1)) for w in row.T] for row in rows])


def outliers(days: int) -> Values:
    """Return quiet columns; in each of them one day is 1e6, a different one."""
    x = np.random.default_rng(0).normal(0, QUIET, (days, days - 100))
    x[np.arange(days - 100), np.arange(days - 100)] = 1e6
    return x.astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("window", [5, 20])
def test_rolling_std_in_float32(window: int) -> None:
    """An outlier of 1e6 leaves every digit right once it has left; sums kept in float32 would be wrong by far."""
    x = outliers(220)
    exact = exact_std(x, window)
    found = value(f"ts_std(returns, {window})", returns=x)[window - 1 :]
    np.testing.assert_allclose(found, exact, rtol=3e-7)
    sums = [np.cumsum(part.astype(np.float32), axis=0, dtype=np.float32) for part in (x, x * x)]
    total, squares = (cumulative[window:] - cumulative[:-window] for cumulative in sums)
    naive = np.sqrt(np.abs(squares - total * total / window) / (window - 1))
    assert (np.abs(naive - exact[1:]) > exact[1:] / 2).mean() > 0.25


@pytest.mark.parametrize("window", [5, 20, 30])
def test_own_first_draft(window: int) -> None:
    """Float64 sums that are taken afresh every 4 windows are not enough: the guard is what makes this right."""
    x = outliers(220)
    exact = exact_std(x, window)
    found = value(f"ts_std(returns, {window})", returns=x)[window - 1 :]
    np.testing.assert_allclose(found, exact, rtol=3e-7)
    draft = anchored_std(x, window)
    quiet = exact < 2 * QUIET
    assert np.abs(draft - exact)[quiet].max() > QUIET / 2


def anchored_std(x: Values, window: int) -> Values:
    """Keep running float64 sums of values and squares, taken afresh every 4 windows."""
    total, squares, found = np.zeros(x.shape[1]), np.zeros(x.shape[1]), []
    for day in range(window - 1, len(x)):
        old, new = x[day - window], x[day]
        total, squares = total + new - old, squares + new * new - old * old
        if (day + 1 - window) % (4 * window) == 0:
            part = x[day - window + 1 : day + 1]
            total, squares = part.sum(axis=0), (part * part).sum(axis=0)
        found.append(np.sqrt(np.maximum(squares - total * total / window, 0) / (window - 1)))
    return np.array(found)


def test_corr_of_a_constant_window() -> None:
    """A constant window is told by its spread relative to its level, so that the unit of a column does not matter."""
    rng = np.random.default_rng(0)
    moving, flat = rng.normal(size=40), np.full(40, 1.1)
    for level in (1e-8, 1.0, 1e8):
        assert np.isnan(value("ts_corr(returns, close, 10)", returns=moving, close=flat * level)).all()
        small = value("ts_corr(returns, close, 10)", returns=moving, close=level * (1 + moving / 1000))[9:]
        np.testing.assert_allclose(small, 1, atol=2e-3)
    assert "2e-5" in told("Corr($close, $open, 10)", "qlib")
    assert "1e-6" in told("Corr($close, $open, 10d)", "alphagen")


def test_one_nan_in_the_window() -> None:
    """One gap is felt for as many rows as the window, and no longer; fewer values must be asked for."""
    x = np.arange(30.0)
    x[12] = np.nan
    for name in ("ts_mean", "ts_sum", "ts_std", "ts_max", "ts_rank", "decay_linear", "ema", "ts_median", "ts_argmax"):
        missing = np.isnan(value(f"{name}(returns, 5)", returns=x))
        assert np.flatnonzero(missing[4:]).tolist() == [8, 9, 10, 11, 12], name
        few = np.isnan(value(f"{name}(returns, 5, min_periods=2)", returns=x))
        assert np.flatnonzero(few).tolist() in ([0], [0, 12]), name
    for text, dialect in (("Mean($close, 5)", "qlib"), ("TS_MEAN($close, 5)", "alphaagent")):
        kept = value(text, dialect, close=x)
        np.testing.assert_allclose(kept, pd.Series(x).rolling(5, min_periods=1).mean(), rtol=1e-6)
    assert np.flatnonzero(np.isnan(value("Mean($close,5d)", "alphagen", close=x))[4:]).tolist() == [8, 9, 10, 11, 12]


def test_qlib_early_window() -> None:
    """The first rows are missing unless the formula says how many values will do, and then it shows in its text."""
    x = np.arange(1.0, 9.0)
    assert np.isnan(value("ts_mean(returns, 5)", returns=x)).tolist() == [True] * 4 + [False] * 4
    assert value("ts_mean(returns, 5, min_periods=1)", returns=x)[:3].tolist() == [1, 1.5, 2]
    assert "min_periods=1" in parse("ts_mean(returns, 5, min_periods=1)").canonical_text
    assert parse("ts_mean(close, 5, min_periods=1)").warmup == 4
    kept = parse("Mean($close, 5)", dialect="qlib")
    assert kept.canonical_text == "ts_mean(close, 5, min_periods=1)"
    assert value("Mean($close, 5)", "qlib", close=x)[:3].tolist() == [1, 1.5, 2]


def test_ts_rank() -> None:
    """Today's value among the window: ascending, average ties, percentile in (0, 1]."""
    found = value("ts_rank(returns, 4)", returns=[1, 2, 3, 4, 0, 4, 4, 3])
    np.testing.assert_allclose(found[3:], [1, 0.25, 0.875, 0.75, 0.5])
    unscaled = value("ts_rank(returns, 4, scaled=count)", returns=[1, 2, 3, 4, 0, 4, 4, 3])
    np.testing.assert_allclose(unscaled[3:], [4, 1, 3.5, 3, 2])
    x = np.round(np.random.default_rng(0).normal(size=80) * 2) / 2
    np.testing.assert_allclose(
        value("ts_rank(returns, 9)", returns=x), pd.Series(x).rolling(9).rank(pct=True), rtol=1e-6
    )
    kept = value("Rank($close, 9)", "qlib", close=x)
    np.testing.assert_allclose(kept, pd.Series(x).rolling(9, min_periods=1).rank(pct=True), rtol=1e-6)
    turned = value("Rank($close,9d)", "alphagen", close=x)
    np.testing.assert_allclose(turned, (-pd.Series(x)).rolling(9).rank(pct=True), rtol=1e-6)


def test_cs_rank() -> None:
    """Among the names that have a value: ascending, average ties, percentile in (0, 1]."""
    found = value("rank(returns)", returns=[[3, 1, np.nan, 1, 2]])
    np.testing.assert_allclose(found, [[1, 0.375, np.nan, 0.375, 0.75]])
    x = [[3, 1, np.nan, 1, 2]]
    np.testing.assert_allclose(value("CSRank($close)", "alphagen", close=x), [[0.75, 0, np.nan, 0.25, 0.5]])
    np.testing.assert_allclose(value("CSRank($close)", "qlib", close=x), found)
    lowest = value("rank(returns, ties=min, scaled=unit)", returns=x)
    np.testing.assert_allclose(lowest, [[1, 0, np.nan, 0, 2 / 3]], rtol=1e-6)


def test_cs_rank_of_near_ties() -> None:
    """Values that are equal in float32 share a rank; those that differ in the last digit do not."""
    close = np.float32(1.1)
    found = value("rank(returns)", returns=[[close, 1.1, np.nextafter(close, np.float32(2)), 0.5]])
    np.testing.assert_allclose(found, [[0.625, 0.625, 1, 0.25]])


def test_argmax_tie() -> None:
    """Bars since, 0 for today, as a float; on prices with a 0.01 tick the oldest of the highest wins."""
    found = value("ts_argmax(high, 4)", high=[9.99, 10.01, 10.01, 10.0, 10.01, 10.0])
    assert found[3:].tolist() == [2, 3, 3]
    assert found.dtype == np.float32
    lows = value("ts_argmin(low, 4)", low=[1.0, 2, 1, 2, 3, 3])
    assert lows[3:].tolist() == [3, 2, 3]
    behind = value("ts_argmax(high, 3) - ts_argmin(high, 3)", high=[1.0, 2, 3, 2, 1])
    assert behind[2:].tolist() == [-2, -1, 2]
    placed = value("IdxMax($high, 4)", "qlib", high=[9.99, 10.01, 10.01, 10.0, 10.01, 10.0])
    assert placed.tolist() == [1, 2, 2, 2, 1, 1]


def test_decay_and_wma() -> None:
    """Weights 1 to w, the newest heaviest, sum 1: what a single 1 leaves behind on the days after it."""
    impulse = np.zeros(12)
    impulse[5] = 1
    found = value("decay_linear(returns, 4)", returns=impulse)
    np.testing.assert_allclose(found[5:10], [0.4, 0.3, 0.2, 0.1, 0], rtol=1e-6)
    np.testing.assert_allclose(value("decay_linear(returns, 4)", returns=np.ones(9))[3:], 1, rtol=1e-6)
    oldest_none = value("WMA($close,4d)", "alphagen", close=impulse)
    np.testing.assert_allclose(oldest_none[5:10], [3 / 6, 2 / 6, 1 / 6, 0, 0], rtol=1e-6)
    small = value("WMA($close, 4)", "qlib", close=impulse)
    np.testing.assert_allclose(small[5:10], [0.1, 0.075, 0.05, 0.025, 0], rtol=1e-6)


def test_std_ddof() -> None:
    """The divisor is n - 1, and can be seen and changed."""
    x = [1.0, 2, 4, 8, 16]
    np.testing.assert_allclose(value("ts_std(returns, 5)", returns=x)[4], np.std(x, ddof=1), rtol=1e-6)
    np.testing.assert_allclose(value("ts_std(returns, 5, ddof=0)", returns=x)[4], np.std(x), rtol=1e-6)
    for ddof in (0, 1):
        z = (np.array(x) - np.mean(x)) / np.std(x, ddof=ddof)
        np.testing.assert_allclose(value(f"zscore(returns, ddof={ddof})", returns=[x])[0], z, rtol=1e-6)
    assert "ddof=1" in OPERATORS["ts_std"].signature
    for text, dialect in (("Std($close, 5)", "qlib"), ("Std($close,5d)", "alphagen")):
        np.testing.assert_allclose(value(text, dialect, close=x)[4], np.std(x, ddof=1), rtol=1e-6)


def test_comparison_and_where_on_nan() -> None:
    """What is not known is neither true nor false; a choice is missing where its condition or the chosen branch is."""
    x = [np.nan, 1.0, -1.0]
    np.testing.assert_array_equal(value("returns > 0", returns=x), [np.nan, 1, 0])
    np.testing.assert_array_equal(value("~(returns > 0)", returns=x), [np.nan, 0, 1])
    np.testing.assert_array_equal(value("where(returns > 0, 5, 7)", returns=x), [np.nan, 5, 7])
    found = value("where(close > 0, open, close)", open=[np.nan, np.nan, 3], close=[1, -2, 4.0])
    np.testing.assert_array_equal(found, [np.nan, -2, 3])
    np.testing.assert_array_equal(value("where(holds(returns > 0), 5, 7)", returns=x), [7, 5, 7])
    np.testing.assert_array_equal(value("$close > 0", "qlib", close=x), [0, 1, 0])
    np.testing.assert_array_equal(value("$close != 1", "qlib", close=x), [1, 0, 1])
    np.testing.assert_array_equal(value("If($close > 0, 5, $open)", "qlib", close=x, open=[1, 2, 3]), [1, 5, 3])


def test_corr_of_cross_sectional_ranks() -> None:
    """Where ranks hardly move, the answer is that of exact arithmetic on the float32 ranks, or missing."""
    rng = np.random.default_rng(1)
    x, y = (np.tile(rng.permutation(30).astype(float), (90, 1)) for _ in range(2))
    for day in range(1, 90, 3):
        pair = rng.permutation(30)[:2]
        for each in (x, y):
            each[day:, pair] = each[day:, pair[::-1]]
    window = 8
    found = value(f"ts_corr(rank(close), rank(volume), {window})", close=x, volume=y)
    ranks = [value(f"rank({name})", close=x, volume=y).astype(float) for name in ("close", "volume")]
    seen = 0
    for day, name in np.ndindex(*x.shape):
        if day < window - 1:
            continue
        a, b = (list(map(Fraction, rank[day - window + 1 : day + 1, name])) for rank in ranks)
        expected = exact_correlation(a, b)
        assert np.isnan(found[day, name]) == math.isnan(expected)
        if not math.isnan(expected):
            seen += 1
            assert abs(found[day, name] - expected) < 1e-6
    assert seen > 30


def exact_correlation(x: list[Fraction], y: list[Fraction]) -> float:
    """Correlate without rounding anything but the end."""
    n = len(x)
    a, b = ([term - sum(side, Fraction()) / n for term in side] for side in (x, y))
    xx, yy = (sum((term * term for term in side), Fraction()) for side in (a, b))
    if not xx or not yy:
        return math.nan
    return (
        float(sum((i * j for i, j in zip(a, b, strict=True)), Fraction())) / math.sqrt(float(xx)) / math.sqrt(float(yy))
    )
