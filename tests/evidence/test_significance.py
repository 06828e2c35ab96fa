"""Newey-West, LOND and power against reference values."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.evidence.gate.mean_test import compute_power
from alphaloom.evidence.multiple_testing.online_fdr import gamma, lond_level
from alphaloom.evidence.newey_west import newey_west_t, null_distribution

STREAM = [2.90e-14, 0.06743, 0.01514, 0.08174, 0.00171, 3.61e-05, 0.79149, 0.27201, 0.28295, 7.59e-08]
STREAM += [0.69274, 0.30443, 0.000487, 0.72342, 0.54757]


def lond_discoveries(p_values: list[float], alpha: float) -> list[int]:
    """Run a stream through LOND."""
    found: list[int] = []
    for number, p_value in enumerate(p_values, start=1):
        if p_value <= lond_level(number, len(found), alpha):
            found.append(number)
    return found


def test_newey_west_matches_the_sum_written_out() -> None:
    x = np.random.default_rng(1).standard_normal(60).cumsum()
    d = x - x.mean()
    expected = sum((1 - abs(i - j) / 4) * d[i] * d[j] for i in range(60) for j in range(60) if abs(i - j) <= 3)
    test = newey_west_t(x, 3)
    assert test.standard_error == pytest.approx(math.sqrt(expected) / 60, rel=1e-12)
    assert test.t == pytest.approx(x.mean() / test.standard_error, rel=1e-12)
    assert test.daily_deviation == pytest.approx(math.sqrt(expected / 60), rel=1e-12)


def test_missing_days_are_dropped() -> None:
    assert newey_west_t([1.0, math.nan, 2.0, 4.0], 1) == newey_west_t([1.0, 2.0, 4.0], 1)


@pytest.mark.parametrize("series", [[], [math.nan], [0.1], [0.1] * 50, [0.0] * 9])
def test_a_series_that_cannot_vary_has_no_t(series: list[float]) -> None:
    assert math.isnan(newey_west_t(series, 4).t)


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=40), st.integers(0, 60), st.floats(0.1, 10))
def test_t_does_not_depend_on_the_unit(series: list[float], lag: int, unit: float) -> None:
    first, second = newey_west_t(series, lag), newey_west_t(np.array(series) * unit, lag)
    assert math.isnan(first.t) or math.isnan(second.t) or second.t == pytest.approx(first.t, rel=1e-4)
    assert second.standard_error == pytest.approx(first.standard_error * unit, abs=1e-7)


def test_the_shares_of_all_trials_are_one_budget() -> None:
    assert sum(gamma(number) for number in range(1, 200_000)) < 1
    assert gamma(1) == pytest.approx(0.07720838 * math.log(2))


def test_lond_under_dependence_matches_the_reference() -> None:
    assert lond_discoveries(STREAM, 0.05) == [1, 6, 10]


def test_lond_spends_what_it_says() -> None:
    assert lond_level(1, 0) == pytest.approx(0.05 * gamma(1))
    assert lond_level(10, 2) == pytest.approx(0.05 * gamma(10) * 3 / sum(1 / j for j in range(1, 11)))


def test_lond_without_discoveries_spends_less_than_its_level() -> None:
    assert sum(lond_level(number, 0) for number in range(1, 2000)) < 0.05


@pytest.mark.parametrize(("number", "before", "alpha"), [(0, 0, 0.05), (3, 3, 0.05), (3, -1, 0.05), (3, 0, 1.5)])
def test_a_stream_that_cannot_be_is_refused(number: int, before: int, alpha: float) -> None:
    with pytest.raises(ValueError, match="must be in"):
        lond_level(number, before, alpha)


def test_trials_are_counted_from_one() -> None:
    with pytest.raises(ValueError, match="number"):
        gamma(0)


def test_power_is_the_rank_ic_that_just_passes() -> None:
    null, level = null_distribution(500, 5, 10), lond_level(10, 0)
    provable = compute_power(null, level, 0.2)
    assert null.p_value(provable.rank_ic_provable / 0.2 * math.sqrt(500)) == pytest.approx(level, rel=1e-6)
    assert 0.03 < provable.rank_ic_provable < 0.06
    assert compute_power(null, level / 10, 0.2).rank_ic_provable > provable.rank_ic_provable
