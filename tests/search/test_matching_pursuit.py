"""The few that say what many say: the parts of a blend, not the blend."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.search.surrogate.matching_pursuit import MAX_LEADER_CORRELATION, Dictionary, choose_leaders

DAYS = 4_000


def dictionary(weights: np.ndarray, strengths: np.ndarray, noise: float, seed: int) -> Dictionary:
    """Return factors that are mixtures of sources, each with the t that its sources give it."""
    rng = np.random.default_rng(seed)
    values = weights @ rng.normal(size=(weights.shape[1], DAYS))
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    lengths = np.linalg.norm(weights, axis=1)
    t = (weights @ strengths) / lengths + noise * rng.normal(size=len(weights))
    return Dictionary(t, np.full(len(weights), 3), values @ values.T)


@pytest.mark.parametrize("seed", range(5))
def test_the_parts_of_a_blend_are_chosen_and_not_the_blend(seed: int) -> None:
    parts = np.eye(3)
    blends = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.6, 0.2]])
    leaders = choose_leaders(dictionary(np.vstack([parts, blends]), np.array([12.0, -6.0, 8.0]), 0.3, seed), 10)
    assert set(leaders) == {0, 1, 2}


def test_of_two_that_say_the_same_the_smaller_is_chosen() -> None:
    same = dictionary(np.array([[1.0], [1.0]]), np.array([9.0]), 0.0, 1)
    assert set(choose_leaders(Dictionary(same.t, np.array([6, 3]), same.alike), 10)) == {1}


@given(seed=st.integers(0, 10_000), limit=st.integers(1, 6))
def test_leaders_are_few_and_unlike_and_each_says_something(seed: int, limit: int) -> None:
    rng = np.random.default_rng(seed)
    given = dictionary(rng.normal(size=(40, 8)), 6.0 * rng.normal(size=8), 1.0, seed)
    leaders = choose_leaders(given, limit)
    chosen = list(leaders)
    assert len(chosen) <= limit
    assert all(leaders[one] * given.t[one] > 0 for one in chosen)
    alike = np.abs(given.alike[np.ix_(chosen, chosen)]) - np.eye(len(chosen))
    assert not chosen or alike.max(initial=0.0) < MAX_LEADER_CORRELATION


def test_nothing_leads_where_nothing_is() -> None:
    rng = np.random.default_rng(3)
    given = dictionary(rng.normal(size=(50, 30)), np.zeros(30), 0.7, 3)
    assert choose_leaders(given, 10) == {}
