"""The benchmark of the gateway runs, and tells an order of arrival from a fair one over real connections."""

from __future__ import annotations

from bench.gateway import Scenario, interval, row, started


def test_a_flood_is_felt_in_order_of_arrival_and_hardly_by_counters() -> None:
    with started("--endpoint", "--speed", "50") as upstream:
        found = row(Scenario(places=4, load=0.5, longer=1.0, calls=12, seed=0, speed=50.0), upstream, ("FIFO", "VTC"))
    assert found["FIFO"] > 2 * found["VTC"]


def test_the_interval_holds_the_ratio_of_tails() -> None:
    alone = [float(number) for number in range(1, 201)]
    low, high = interval([1.1 * seconds for seconds in alone], alone)
    assert abs(low - 1.1) < 1e-9, "paired: what is the same in both cancels"
    assert abs(high - 1.1) < 1e-9
