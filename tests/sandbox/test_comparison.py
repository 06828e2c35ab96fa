"""When two answers are the same: what is handed on carries nothing that was forgiven."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from alphaloom.sandbox.causality.comparison import Cell, find_first_change, round_values

Frame = NDArray[np.float64]


def drawn(seed: int, scale: float = 1.0) -> Frame:
    """Return fat tails, ties, zeros and holes."""
    rng = np.random.default_rng(seed)
    values = scale * rng.standard_t(2, (6, 25))
    values[:, :5], values[:, 5:8] = values[:, :1], 0.0
    values[rng.random(values.shape) < 0.1] = np.nan
    return values


def places(values: Frame) -> Frame:
    """Return how many names of its day stand below each value, and how many level with it: the slow reference."""
    below = (values[:, None, :] < values[:, :, None]).sum(axis=2)
    found: Frame = below + 1000.0 * (values[:, None, :] == values[:, :, None]).sum(axis=2)
    return found


@given(st.integers(0, 10_000), st.sampled_from([1e-300, 1e-40, 1e-10, 1.0, 1e30]), st.floats(-18, -5))
def test_what_passes_keeps_every_place_and_every_tie(seed: int, scale: float, digits: float) -> None:
    values = drawn(seed, scale)
    other = values * (1.0 + 10.0**digits * np.random.default_rng(seed + 1).standard_normal(values.shape))
    if find_first_change(values, other) is None:
        np.testing.assert_array_equal(places(round_values(values)), places(round_values(other)))


@given(st.integers(0, 10_000))
def test_noise_of_sums_passes(seed: int) -> None:
    values = drawn(seed)[:, 7:]  # no two level
    noise = 1e-15 * np.random.default_rng(seed + 1).uniform(-1, 1, values.shape)
    assert find_first_change(values, values + noise) is None


@given(st.integers(0, 10_000), st.sampled_from([1e-42, 1e-10, 1.0, 1e30]))
def test_rounded_is_single_precision_day_by_day(seed: int, scale: float) -> None:
    values = drawn(seed, scale)
    found = round_values(values)
    np.testing.assert_array_equal(found, found.astype(np.float32).astype(np.float64))
    np.testing.assert_array_equal(found, round_values(found))
    np.testing.assert_array_equal(found[2:3], round_values(values[2:3]))
    if scale > 1e-38:
        largest = np.nanmax(np.abs(values), axis=1, keepdims=True)
        assert np.nanmax(np.abs(found - values) / largest) <= 2.0**-24


@pytest.mark.parametrize("scale", [1e-40, 1e-10, 1.0, 1e12])
def test_two_names_that_change_places_are_found_however_small(scale: float) -> None:
    values = scale * np.array([[5.0, 6.0, 7.0], [0.0, 1.0, 2.0]])
    other = values.copy()
    other[1, :2] = values[1, 1::-1]
    assert find_first_change(values, other) == Cell(1, 0)
    assert find_first_change(values, values[:1]) is None


def test_one_huge_value_does_not_blur_the_others() -> None:
    values = np.concatenate([np.arange(20.0), [1e16]])[None, :]
    np.testing.assert_array_equal(round_values(values)[0, :20], np.arange(20.0))
    assert np.isnan(round_values(np.array([[1.0, 1e39]]))[0, 1]), "as in single precision"
