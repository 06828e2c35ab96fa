"""Block means scatter as promised on independent days, and beyond it where years have means of their own."""

from __future__ import annotations

import numpy as np

from alphaloom.market import SyntheticConfig, simulate
from bench.blocks import Scatter, beyond, scatter, thinned

BLOCKS, DAYS, HORIZON = 7, 299, 5


def overlapping(rng: np.random.Generator) -> np.ndarray:
    """Return a daily RankIC as the null has it: sums of independent shocks over the horizon."""
    return np.convolve(rng.normal(size=BLOCKS * DAYS + HORIZON - 1), np.ones(HORIZON), "valid")


def many(yearly: float) -> list[Scatter]:
    rng = np.random.default_rng(1)
    series = [overlapping(rng) + np.repeat(rng.normal(0, yearly, BLOCKS), DAYS) for _ in range(200)]
    return [each for daily in series if (each := scatter(daily, HORIZON, DAYS))]


def test_independent_days_scatter_as_the_null_promises() -> None:
    found = many(yearly=0.0)
    assert 0.95 < np.mean([row.ratio for row in found]) < 1.35
    assert beyond(found, HORIZON, DAYS, 0.02) < 0.035


def test_good_and_bad_years_scatter_more() -> None:
    found = many(yearly=0.4)
    assert np.mean([row.ratio for row in found]) > 2.0
    assert beyond(found, HORIZON, DAYS, 0.02) > 0.06


def test_two_blocks_say_nothing() -> None:
    assert scatter(np.ones(2 * DAYS), HORIZON, DAYS) is None


def test_names_are_left_out_evenly() -> None:
    panel = simulate(SyntheticConfig(seed=1, days=60, names=20)).panel
    few = thinned(panel, 5)
    assert few.names == 5
    assert set(few.symbols) < set(panel.symbols)
    assert (few.symbols[0], few.symbols[-1]) == (panel.symbols[0], panel.symbols[-1])
    assert thinned(panel, 20) is panel
