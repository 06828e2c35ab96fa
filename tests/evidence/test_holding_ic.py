"""What is held is what the label asks, taken apart by days; the proof says what each test can do."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from alphaloom.evidence.gate.mean_test import confirm_p_value, estimate_label_slope, run_mean_test
from alphaloom.evidence.gate.trial_evidence import TrialEvidence, decide_trial
from alphaloom.evidence.newey_west import newey_west_t, null_distribution
from alphaloom.evidence.scoring.holding_ic import holding_rank_ic, holding_ranks
from alphaloom.evidence.scoring.scorer import Scorer
from alphaloom.evidence.windows import Window
from alphaloom.factors import order_rows, rank_rows, row_rank_correlation

from .lab import SMALL, market as market_of_prices

ASKED = {"horizon_days": 5, "level": 0.05, "watch_p": 0.05, "sign": 1}


def slow_held(values: NDArray[np.float32], horizon: int) -> NDArray[np.float64]:
    """Add up, cell by cell, the centred ranks of the last h days whose label ends inside."""
    days, names = values.shape
    ranks = rank_rows(values)
    ranks -= np.nanmean(ranks, axis=1, keepdims=True)
    out = np.full((days, names), np.nan)
    for day in range(days):
        for name in range(names):
            held = [ranks[day - age, name] for age in range(horizon) if 0 <= day - age < days - horizon - 1]
            known = [rank for rank in held if not math.isnan(rank)]
            out[day, name] = sum(known) / horizon if known else math.nan
    return out


@settings(max_examples=20)
@given(st.integers(1, 6), st.integers(8, 14), st.integers(0, 10_000))
def test_what_is_held_is_the_mean_of_the_last_ranks(horizon: int, days: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 6, (days, 12)).astype(np.float32)
    values[rng.random((days, 12)) < 0.2] = np.nan
    values[:, 0] = rng.random(days)  # no row is empty
    np.testing.assert_allclose(holding_ranks(values, horizon), slow_held(values, horizon), atol=1e-12)


def test_the_held_series_ends_with_the_last_position_and_reads_no_later_rank() -> None:
    rng = np.random.default_rng(1)
    values, daily = rng.standard_normal((60, 40)).astype(np.float32), rng.standard_normal((60, 40))
    daily[58:] = np.nan  # a return ends two days later
    series = holding_rank_ic(values, order_rows(daily), 5)
    assert np.flatnonzero(np.isnan(series)).tolist() == [58, 59]
    later = values.copy()
    later[31:] = rng.standard_normal((29, 40))
    np.testing.assert_array_equal(holding_rank_ic(later, order_rows(daily), 5)[:31], series[:31])


def market(seed: int, days: int, names: int, persistence: float, drift: float) -> tuple[NDArray[np.float64], ...]:
    """Return the RankIC of five-day labels and of what is held, of a factor that drives returns by `drift`."""
    rng = np.random.default_rng(seed)
    factor = np.empty((days, names))
    factor[0] = rng.standard_normal(names)
    for day in range(1, days):
        factor[day] = persistence * factor[day - 1] + math.sqrt(1 - persistence**2) * rng.standard_normal(names)
    daily = rng.standard_normal((days, names)) + drift * factor
    daily[days - 2 :] = np.nan
    label = np.full((days, names), np.nan)
    label[: days - 6] = np.lib.stride_tricks.sliding_window_view(daily, 5, axis=0).sum(axis=-1)[: days - 6]
    values = factor.astype(np.float32)
    return row_rank_correlation(values, label), holding_rank_ic(values, order_rows(daily), 5)


@pytest.mark.parametrize(("persistence", "between"), [(0.0, (0.8, 1.25)), (1.0, (2.0, 2.4))])
def test_the_slope_is_one_for_a_new_factor_each_day_and_the_root_of_h_for_a_fixed_one(
    persistence: float, between: tuple[float, float]
) -> None:
    rank_ic, held = market(2, 600, 200, persistence, 0.0)
    assert between[0] < estimate_label_slope(rank_ic, held, 5) < between[1]


def test_the_held_series_of_a_worthless_fixed_factor_does_not_overlap() -> None:
    rank_ic, held = market(3, 2000, 100, 1.0, 0.0)
    neighbours = [np.corrcoef(one[:-6][1:], one[:-6][:-1])[0, 1] for one in (rank_ic, held)]
    assert neighbours[0] > 0.7
    assert abs(neighbours[1]) < 0.07


def test_both_tests_measure_one_strength_and_held_needs_less_of_it() -> None:
    rank_ic, held = market(4, 500, 200, 0.95, 0.03)
    labels, daily = run_mean_test(rank_ic, None, 5, 10), run_mean_test(rank_ic, held, 5, 10)
    assert labels.t == newey_west_t(rank_ic, 10).t
    assert (daily.horizon, daily.lag, daily.days) == (1, 2, 498)
    assert daily.error * daily.t == pytest.approx(np.nanmean(rank_ic), rel=0.15)
    assert daily.power(1e-4)["rank_ic_provable"] < 0.95 * labels.power(1e-4)["rank_ic_provable"]


def test_the_size_of_the_held_test_is_nominal() -> None:
    rng, rounds, days = np.random.default_rng(5), 4000, 250
    critical = {level: null_distribution(days, 1, 2).t_required(level) for level in (0.05, 1e-2)}
    daily = rng.standard_normal((rounds, days)) * np.exp(0.3 * rng.standard_normal(days))  # days of unlike noise
    found = np.array([abs(newey_west_t(row, 2).t) for row in daily])
    for level, bar in critical.items():
        share, nominal = float(np.mean(found >= bar)), 2 * level
        assert share <= nominal + 3.5 * math.sqrt(nominal * (1 - nominal) / rounds)


def test_a_low_median_is_no_proof_that_a_factor_foretells_returns() -> None:
    rng, days, names = np.random.default_rng(0), 300, 40
    spread = np.linspace(0.3, 3.0, names)
    # A tenth of all days brings 3, the others -1/3: the mean is 0 whatever the spread, and the median is not.
    daily = spread * np.where(rng.random((days, names)) < 0.1, 3.0, -1 / 3) + 2.5 * rng.standard_normal((days, names))
    daily[days - 2 :] = np.nan
    label = np.full((days, names), np.nan)
    label[: days - 6] = np.lib.stride_tricks.sliding_window_view(daily, 5, axis=0).sum(axis=-1)[: days - 6]
    values = np.broadcast_to(-spread, (days, names)).astype(np.float32)
    rank_ic, held = row_rank_correlation(values, label), holding_rank_ic(values, order_rows(daily), 5)
    alone, labels = run_mean_test(rank_ic, held, 5, 10).p_value(1), run_mean_test(rank_ic, None, 5, 10).p_value(1)
    assert alone < 1e-5
    assert confirm_p_value(alone, labels, 0.05) == labels > 0.05
    seen = TrialEvidence(ASKED, 10, rank_ic, np.full(days, np.nan), (), 600, days, {}, held)
    told = decide_trial(seen, 1, 0)
    assert not told["passed"]
    assert not told["watch"]
    assert told["p_value"] == told["p_labels"]


def test_what_the_scorer_holds_ends_inside_the_window_and_reads_no_later_price() -> None:
    """A one-day return ends two opens later; neither the last labels nor the last positions reach over the end."""
    panel, window = market_of_prices(), Window("selection", 120, 180, "", "")
    asked = SMALL.model_copy(update={"test": "held"})
    values = np.random.default_rng(3).standard_normal(panel.universe.shape).astype(np.float32)
    fields = {name: array.copy() for name, array in panel.fields.items()}
    fields["open"][window.stop :] *= np.linspace(0.5, 2.0, panel.names)
    found = Scorer(panel, asked).held(values, window)
    assert found is not None
    assert np.flatnonzero(np.isnan(found)).tolist() == [window.days - 2, window.days - 1]
    later = Scorer(replace(panel, fields=fields), asked).held(values, window)
    np.testing.assert_array_equal(later, found)


@pytest.mark.parametrize(("fault", "passed"), [(None, True), ({"stage": "python", "day": "2012-03-01"}, False)])
def test_code_that_failed_after_search_is_neither_accepted_nor_watched(
    fault: dict[str, str] | None, passed: bool
) -> None:
    strong = 0.2 + 0.05 * np.random.default_rng(4).standard_normal(200)
    seen = TrialEvidence(ASKED, 10, strong, np.full(200, np.nan), (), 600, 200, {}, None, fault)
    told = decide_trial(seen, 1, 0)
    assert (told["passed"], told["watch"]) == (passed, passed)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 0.5))
def test_labels_can_only_take_away_from_what_is_held(tested: float, labels: float, bar: float) -> None:
    told = confirm_p_value(tested, labels, bar)
    assert told >= tested
    assert (told > bar) or (tested <= bar and labels <= bar)
    assert confirm_p_value(labels, labels, bar) == labels


def test_too_few_days_prove_nothing() -> None:
    short = run_mean_test(np.full(4, 0.1), None, 5, 10)
    assert (short.p_value(1), short.power(0.01)["rank_ic_provable"]) == (1.0, None)
