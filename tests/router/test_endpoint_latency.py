"""When a model counts as slow."""

import pytest
from hypothesis import given, strategies as st

from alphaloom.router.endpoints.endpoint import MIN_LATENCIES, Latency, is_slow

seconds = st.lists(st.floats(0.001, 100), min_size=MIN_LATENCIES, max_size=150)


def of(*took: float) -> Latency:
    latency = Latency()
    for each in took:
        latency.add(each)
    return latency


@given(took=seconds)
def test_the_percentile_is_one_of_its_answers_and_only_few_took_longer(took: list[float]) -> None:
    latency = of(*took)
    found, kept = latency.percentile(), took[-100:]
    assert found in kept
    assert sum(value > found for value in kept) <= 0.05 * len(kept)


@given(took=seconds)
def test_nobody_is_slow_beside_itself_when_nothing_changed(took: list[float]) -> None:
    steady = of(*[took[0]] * len(took))
    assert not is_slow(steady, [steady], 4.0)


@pytest.mark.parametrize(
    ("own", "peer", "slow"),
    [
        ([2.0] * 10, [0.3] * 10, True),
        ([0.2] * 10, [0.01] * 10, False),  # twenty times as long, and nobody would notice
        ([1.0] * 10, [0.3] * 10, False),
        ([2.0] * 10, [0.3] * 3, False),
        ([2.0] * 3, [0.3] * 10, False),
        ([0.1] * 20 + [3.0] * 5, [], True),
    ],
)
def test_a_model_is_slow_by_its_peers_or_by_its_past(own: list[float], peer: list[float], slow: bool) -> None:
    peers = [of(*peer)] if peer else []
    assert is_slow(of(*own), peers, 4.0) is slow
    assert not is_slow(of(*own), peers, 0.0)


def test_who_was_excused_must_show_it_again() -> None:
    latency = of(*[0.1] * 20, *[3.0] * 5)
    latency.excuse()
    assert not is_slow(latency, [], 4.0)
    latency = of(*[0.1] * 20, *[3.0] * 5)
    latency.excuse()
    for _ in range(4):
        latency.add(0.1)
    assert not is_slow(latency, [], 4.0)


def test_of_few_answers_nothing_is_said() -> None:
    assert of(1.0, 2.0).percentile() is None
