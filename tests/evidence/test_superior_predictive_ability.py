"""Hansen's test: its three p-values in order, uniform where nothing is there, and small where something is."""

import numpy as np
import pytest
from arch.bootstrap import SPA
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from alphaloom.evidence.multiple_testing.superior_predictive_ability import long_run_deviation, run_superiority_test


def books(seed: int, days: int = 250, candidates: int = 5, common: float = 0.5) -> NDArray[np.float64]:
    """Return worthless returns of candidates that are alike."""
    rng = np.random.default_rng(seed)
    both = rng.standard_normal((days, 1)) * np.sqrt(common) + rng.standard_normal((days, candidates)) * np.sqrt(
        1 - common
    )
    return np.asarray(both * np.exp(rng.normal(0, 0.5, candidates)))


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(1, 8), st.floats(-0.3, 0.2))
def test_lower_is_never_above_consistent_nor_consistent_above_upper(seed: int, candidates: int, shift: float) -> None:
    test = run_superiority_test(books(seed, 120, candidates) + shift, 5, replications=99)
    assert 0 < test.lower <= test.consistent <= test.upper <= 1


def test_one_good_book_among_bad_ones_is_found_most_by_the_lower_bound() -> None:
    returns = books(1, 400, 40, common=0.0) - 1.0
    returns[:, 3] += -returns[:, 3].mean() + 0.12 * returns[:, 3].std()  # t = 2.4 alone
    test = run_superiority_test(returns, 1)
    assert test.lower <= test.consistent == pytest.approx(0.01, abs=0.008)
    assert test.upper == pytest.approx(0.2, abs=0.15)  # the best of forty worthless ones reaches 2.4 often
    assert test.candidates == 40


def test_books_that_lose_after_costs_are_not_superior() -> None:
    test = run_superiority_test(books(2) - 1.0, 5)
    assert (test.lower, test.consistent, test.upper) == (1.0, 1.0, 1.0)


def test_the_unit_of_a_book_changes_nothing() -> None:
    returns = books(3, common=0.2)
    assert run_superiority_test(returns, 8) == run_superiority_test(returns * [1, 10, 0.01, 5, 1000], 8)


def test_standard_errors_are_those_of_the_library_which_does_not_use_them() -> None:
    returns = books(4)
    test = SPA(np.zeros(len(returns)), -returns, block_size=7, reps=2, seed=0)
    test.compute()
    assert long_run_deviation(returns, 7) == pytest.approx(np.sqrt(test._loss_diff_var), rel=1e-9)


def test_a_block_of_one_day_is_the_plain_deviation() -> None:
    returns = books(5)
    assert long_run_deviation(returns, 1) == pytest.approx(returns.std(axis=0), rel=1e-9)


def test_the_same_seed_gives_the_same_answer_and_missing_days_earn_nothing() -> None:
    returns = books(6)
    returns[10:40, 2] = np.nan
    assert run_superiority_test(returns, 5) == run_superiority_test(np.nan_to_num(returns), 5)
    assert run_superiority_test(returns, 5, seed=1) != run_superiority_test(returns, 5, seed=2)


def test_a_book_that_never_trades_is_left_out() -> None:
    returns = np.column_stack([books(7), np.zeros(250)])
    assert run_superiority_test(returns, 5).candidates == 5
    with pytest.raises(ValueError, match="vary"):
        run_superiority_test(np.zeros((50, 2)), 5)


@pytest.mark.parametrize(("shape", "block"), [((15, 2), 3), ((50, 2), 0), ((50, 2), 50), ((50,), 5)])
def test_too_little_to_draw_blocks_from_is_refused(shape: tuple[int, ...], block: int) -> None:
    with pytest.raises(ValueError, match="block_days"):
        run_superiority_test(np.ones(shape), block)


def p_values(markets: int, replications: int) -> NDArray[np.float64]:
    """Return `[markets, 3]` p-values on markets with nothing in them."""
    found = (run_superiority_test(books(seed, 200, 4), 4, replications=replications) for seed in range(markets))
    return np.array([(one.lower, one.consistent, one.upper) for one in found])


def furthest(found: NDArray[np.float64]) -> float:
    """Return how far the shares below each level up to 0.6 are from it: above, the cut at zero makes a p of 1."""
    levels = np.linspace(0.01, 0.6, 60)
    return float(np.abs((found[:, None] <= levels + 1e-9).mean(axis=0) - levels).max())


def test_p_values_are_about_uniform_under_the_null() -> None:
    found = p_values(60, 99)
    assert furthest(found[:, 2]) < 1.63 / np.sqrt(60)  # Kolmogorov's bound at 1 %
    assert (found[:, 2] == 1).mean() == pytest.approx(0.2, abs=0.17)  # no mean above zero, with four alike


@pytest.mark.slow
def test_p_values_are_uniform_under_the_null() -> None:
    found = p_values(600, 199)
    assert furthest(found[:, 2]) < 1.63 / np.sqrt(600)
    for level in (0.01, 0.05, 0.1, 0.25):
        share = (found[:, 2] <= level + 1e-9).mean()
        assert share <= level + 3 * np.sqrt(level * (1 - level) / 600) + 0.01  # a bootstrap of 200 days is not exact
