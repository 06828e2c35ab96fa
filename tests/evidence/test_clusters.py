"""Clusters of candidates: bets that are there are counted, noise is counted one by one."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from alphaloom.evidence.multiple_testing.deflated_sharpe import count_clusters, silhouette


def families(bets: int, of_each: int, seed: int = 0, own: float = 0.3) -> NDArray[np.float64]:
    """Return candidates that are copies of a few bets, with some noise of their own."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((500, bets))
    return np.asarray(np.repeat(common, of_each, axis=1) + own * rng.standard_normal((500, bets * of_each)))


@pytest.mark.parametrize(("bets", "of_each"), [(2, 5), (3, 4), (7, 6), (10, 10)])
def test_copies_of_a_few_bets_count_as_those_bets(bets: int, of_each: int) -> None:
    assert count_clusters(families(bets, of_each)) == bets


def test_independent_candidates_count_one_by_one() -> None:
    assert count_clusters(np.random.default_rng(1).standard_normal((500, 30))) == 30


def test_a_book_that_never_trades_is_a_bet_of_its_own() -> None:
    assert count_clusters(np.column_stack([families(3, 4), np.zeros(500)])) == 4


@given(st.integers(1, 12), st.integers(0, 99))
def test_there_are_never_more_bets_than_candidates_and_their_order_does_not_matter(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    returns = rng.standard_normal((60, 2)) @ rng.standard_normal((2, count)) + 0.2 * rng.standard_normal((60, count))
    clusters = count_clusters(returns)
    assert 1 <= clusters <= count
    assert count_clusters(returns[:, rng.permutation(count)] * 3) == clusters


def test_silhouettes_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(2)
    points, labels = rng.standard_normal((12, 2)), np.array([1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4])
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    for item, found in enumerate(silhouette(distance, labels)):
        means = {k: distance[item, (labels == k) & (np.arange(12) != item)].mean() for k in (1, 2, 3) if k}
        means[4] = distance[item, 11]
        own = labels[item]
        other = min(value for label, value in means.items() if label != own)
        expected = 0.0 if own == 4 else (other - means[own]) / max(other, means[own])
        assert found == pytest.approx(expected)
