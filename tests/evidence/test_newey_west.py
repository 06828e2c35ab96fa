"""The null distribution against Student, against simulation, and against milder kinds of overlap."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from scipy.linalg import cholesky, toeplitz
from scipy.stats import norm, t as student

from alphaloom.evidence.newey_west import MAX_NULL_DAYS, NullDistribution, null_distribution, null_from_response


def simulated(days: int, horizon: int, lag: int, paths: int, seed: int) -> NDArray[np.float64]:
    """Return |t| of simulated means, independently of the code under test: time by row, paths by column."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(paths // 2000):
        shocks = np.cumsum(rng.standard_normal((days + horizon, 2000), dtype=np.float32), axis=0)
        series = shocks[horizon:] - shocks[:-horizon]
        mean = series.mean(axis=0)
        series -= mean
        variance = (series**2).sum(axis=0)
        for step in range(1, lag + 1):
            variance += 2 * (1 - step / (lag + 1)) * np.einsum("ij,ij->j", series[step:], series[:-step])
        found.append(np.abs(mean) * days / np.sqrt(variance))
    return np.concatenate(found)


def sizes(null: NullDistribution, sample: NDArray[np.float64], level: float) -> tuple[float, float]:
    """Return how often a simulated t is called significant, over nominal, and its standard error."""
    tries = 2 * len(sample)  # both tails count, each of them once
    share = float((sample >= null.t_required(level)).sum()) / tries
    return share / level, math.sqrt(1 / (tries * level))


@pytest.mark.parametrize("t", [1e-4, 0.01, 0.3, 1.0, 3.0, 8.0])
def test_independent_days_without_lags_give_student(t: float) -> None:
    assert null_distribution(50, 1, 0).p_value(t) == pytest.approx(student.sf(t * math.sqrt(49 / 50), 49), rel=1e-9)


def test_a_normal_p_value_is_ten_times_too_small() -> None:
    assert null_distribution(294, 5, 10).p_value(norm.isf(1e-4)) == pytest.approx(1e-3, rel=0.01)


@pytest.mark.parametrize("days", [300, 500])
def test_simulated_size_is_nominal(days: int) -> None:
    sample = simulated(days, 5, 10, 20_000, seed=days)
    for level in (0.05, 1e-3):
        ratio, error = sizes(null_distribution(days, 5, 10), sample, level)
        assert abs(ratio - 1) <= 3.5 * error


@pytest.mark.parametrize("persistence", [0.0, 0.5, 0.9, 0.99, -0.5])
@pytest.mark.parametrize("horizon", [1, 5, 20])
def test_a_faster_factor_has_a_thinner_tail(persistence: float, horizon: int) -> None:
    days, steps = 250, np.arange(250)
    correlation = np.maximum(1 - steps / horizon, 0) * float(persistence) ** steps
    faster = null_from_response(cholesky(toeplitz(correlation), lower=True), horizon, 2 * horizon)
    worst = null_distribution(days, horizon, 2 * horizon)
    assert all(faster.p_value(t) <= worst.p_value(t) * (1 + 1e-6) for t in (1.0, 2.0, 3.0, 4.0, 6.0))


def test_shocks_that_cluster_have_a_thinner_tail() -> None:
    rng, days = np.random.default_rng(3), 300
    response = np.zeros((days, days + 4))
    for offset in range(5):
        np.fill_diagonal(response[:, offset:], 1.0)
    kicks = rng.standard_normal((20, days + 4))
    tails = []
    for kick in kicks:
        size = np.exp(0.4 * math.sqrt(1 - 0.97**2) * np.convolve(kick, 0.97 ** np.arange(days + 4))[: days + 4])
        clustered = null_from_response(response * size, 5, 10)
        tails.append([clustered.p_value(t) for t in (3.0, 4.0, 5.0)])
    worst = null_distribution(days, 5, 10)
    assert np.all(np.mean(tails, axis=0) < [worst.p_value(t) for t in (3.0, 4.0, 5.0)])


@settings(max_examples=25)
@given(st.floats(1e-13, 0.49), st.integers(20, 120), st.integers(1, 6))
def test_the_quantile_inverts_the_tail(p: float, days: int, horizon: int) -> None:
    null = null_distribution(days, horizon, 2 * horizon)
    assert null.p_value(null.t_required(p)) == pytest.approx(p, rel=1e-6)


def test_the_tail_falls_and_is_symmetric() -> None:
    null = null_distribution(300, 5, 10)
    tail = [null.p_value(t) for t in np.linspace(-9, 9, 73)]
    assert all(left > right for left, right in itertools.pairwise(tail))
    assert tail[36] == 0.5
    assert tail[10] + tail[-11] == pytest.approx(1)


def test_nothing_is_proved_by_nan_and_no_t_reaches_zero() -> None:
    null = null_distribution(300, 5, 10)
    assert null.p_value(math.nan) == 1.0
    assert 0 < null.p_value(math.inf) <= 1e-14
    assert null.t_required(1e-16) == math.inf


def test_longer_windows_borrow_a_fatter_tail() -> None:
    long = null_distribution(MAX_NULL_DAYS * 3, 5, 10)
    assert long.days == MAX_NULL_DAYS * 3
    assert long.p_value(4.0) == null_distribution(MAX_NULL_DAYS, 5, 10).p_value(4.0)
    assert long.p_value(4.0) < null_distribution(500, 5, 10).p_value(4.0)


@pytest.mark.parametrize(("days", "horizon", "lag"), [(2, 1, 0), (10, 5, 10), (10, 5, -1), (10, 0, 2)])
def test_a_window_that_is_too_short_is_refused(days: int, horizon: int, lag: int) -> None:
    with pytest.raises(ValueError, match="day"):
        null_distribution(days, horizon, lag)


def test_p_must_be_a_tail() -> None:
    with pytest.raises(ValueError, match="p must be"):
        null_distribution(300, 5, 10).t_required(0.7)
