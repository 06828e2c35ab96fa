"""The simulation of the gate's size against the code that it checks, and its table against known intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from alphaloom.evidence import EvidenceSettings
from alphaloom.evidence.newey_west import newey_west_t
from alphaloom.evidence.scoring.scorer import Scorer
from alphaloom.evidence.windows import Window
from bench.tails.cells import Cell, above_nominal, table
from bench.tails.laws import LAWS, LIMITS, Law
from bench.tails.market import EARLY, held, listed, spans
from bench.tails.paths import banded_sums, changing, moving_sums, t_statistics
from bench.tails.sizes import BATCH, law_cells

CELL = Cell("a law", True, 300, 5, 1e-3, 50_000, 120)


@pytest.mark.parametrize("lag", [0, 2, 10, 40])
def test_t_in_one_pass_is_the_t_of_the_gate(lag: int) -> None:
    series = np.random.default_rng(lag).standard_normal((8, 120)).cumsum(axis=1).astype(np.float32)
    values = np.empty(8)
    t_statistics(series, lag, values)
    assert values == pytest.approx([newey_west_t(row, lag).t for row in series], rel=1e-4)


def test_moving_sums_add_up_what_a_label_spans() -> None:
    shocks = np.random.default_rng(0).standard_normal((3, 24)).astype(np.float32)
    out = np.empty((3, 20), dtype=np.float32)
    moving_sums(shocks, 5, out)
    assert out == pytest.approx(np.lib.stride_tricks.sliding_window_view(shocks, 5, axis=1).sum(axis=2), abs=1e-5)


def test_a_changing_factor_has_the_autocorrelation_that_it_should() -> None:
    days, horizon, persistence = 40, 5, 0.9
    series = np.empty((days, days), dtype=np.float32)
    banded_sums(np.eye(days, dtype=np.float32), changing(days, horizon, persistence), series)
    apart = np.abs(np.subtract.outer(range(days), range(days)))
    expected = np.maximum(1 - apart / horizon, 0) * persistence**apart
    assert series.T @ series == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("law", [*LAWS, *LIMITS], ids=lambda law: law.name)
def test_every_law_draws_shocks_around_zero_with_no_trend(law: Law) -> None:
    drawn = law.shocks(np.random.default_rng(1), 4000, 120)
    assert drawn.shape == (4000, 120)
    assert drawn.dtype == np.dtype(np.float32)
    error = drawn.std() / np.sqrt(drawn.size)
    assert abs(drawn.mean()) < 5 * error
    assert drawn[:, :60].std() == pytest.approx(drawn[:, 60:].std(), rel=0.05)


def test_intervals_are_exact_binomial_ones() -> None:
    low, high = binomtest(CELL.count, CELL.draws).proportion_ci(0.95, "exact")
    assert CELL.interval == pytest.approx((low / 2e-3, high / 2e-3), rel=1e-9)
    assert CELL.expected == pytest.approx(100)
    assert CELL.surprise == pytest.approx(binomtest(120, 50_000, 2e-3, "greater").pvalue, rel=1e-6)
    wider = replace(CELL, spread=4.0)
    assert wider.interval[0] < CELL.interval[0] < CELL.interval[1] < wider.interval[1]


def test_only_what_is_claimed_and_beyond_chance_is_called_above_nominal() -> None:
    high = replace(CELL, count=160)
    assert above_nominal([CELL, high, replace(high, claimed=False)]) == [high]
    assert "| a law | 300 | 5 | 50,000 | 120 of 100: 1.20 (1.00-1.43) |" in table([CELL])


def test_a_small_run_finds_the_nominal_size_of_the_law_that_is_exact() -> None:
    cells = list(law_cells(replace(LAWS[0], share=1), 300, 5 * BATCH, (0, 300)))
    assert len(cells) == 12
    assert not above_nominal(cells)
    five = [cell for cell in cells if cell.level == 0.05]
    assert all(0.9 < cell.size < 1.1 for cell in five)


def test_random_factors_are_scored_as_the_gate_scores_them() -> None:
    panel, days = listed(3, 420), 120
    span = next(spans(panel, 5, days))
    rng, again = np.random.default_rng(5), np.random.default_rng(5)
    pool = span.pool(rng, 4)
    orders = again.permuted(np.tile(np.arange(panel.names, dtype=np.float32), (4, 1)), axis=1)
    window = Window("part", EARLY, EARLY + days + 6, "", "")
    scorer = Scorer(panel, EvidenceSettings())
    for row, order in zip(pool, orders, strict=True):
        gate = scorer.daily_rank_ic(np.tile(order, (panel.days, 1)), window)[:days]
        assert row == pytest.approx(gate, abs=1e-5)


def test_a_factor_that_changes_keeps_its_order_for_its_days() -> None:
    pool = np.arange(40, dtype=np.float32)[:, None] * np.ones((1, 25), dtype=np.float32)
    found = held(pool, 10, np.random.default_rng(0))
    assert found.shape == (40, 25)
    assert np.all(found[:, :10] == found[:, :1])
    assert np.all(found[:, 10:20] == found[:, 10:11])
    assert not np.all(found[:, 0] == found[:, 10])
    assert held(pool, None, np.random.default_rng(0)) is pool
