"""The benchmark of failing servers runs, and tells what it measured."""

from __future__ import annotations

from bench.router import failover


def test_what_failing_servers_cost_is_measured_and_told() -> None:
    for row in (failover.gone(8, deaf=True, together=True), failover.killed(8), failover.restarted(4)):
        assert row.good, row
    assert row.found.startswith("4 answers, 0 prompts answered twice")


def test_a_hedge_shortens_the_tail_and_is_paid_for() -> None:
    plain, before = failover.hedged(20, hedge=False, slow_s=8.0)  # longer than a crowded machine makes any call
    quick, then = failover.hedged(20, hedge=True, slow_s=8.0)
    assert then < before
    assert plain.found.endswith(" 0 asked beside")
    assert not quick.found.endswith(" 0 asked beside")


def test_calls_go_where_fewer_wait() -> None:
    assert failover.shared(12, 6).good
