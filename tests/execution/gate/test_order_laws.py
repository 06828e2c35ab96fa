"""Laws of the order gate over random orders, reports, quotes and cancels."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings, strategies as st

from alphaloom.execution import OrderLimits, OrderRuling
from alphaloom.execution.gate import GateState, OrderGate, RateLimit
from alphaloom.execution.gate.state import LiveOrder, SideState
from alphaloom.risk import BP, Policy

from .market import EQUITY, NOW, PRICE, Desk, make_limits

STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("order"),
            st.sampled_from(["AAA", "BBB"]),
            st.sampled_from(["buy", "sell"]),
            st.integers(1, 300),
            st.sampled_from([None, -100, -1, 0, 1, 100]),
        ),
        st.tuples(st.just("fill"), st.integers(0, 9), st.integers(1, 300), st.integers(-100, 50)),
        st.tuples(st.just("end"), st.integers(0, 9), st.sampled_from(["cancelled", "rejected", "expired"])),
        st.tuples(st.just("cancel"), st.integers(0, 9)),
        st.tuples(st.just("quote"), st.sampled_from(["AAA", "BBB"]), st.integers(-90, 90)),
        st.tuples(st.just("wait"), st.sampled_from([1, 1_000, 400_000, 1_000_000, 61_000_000])),
        st.tuples(st.just("again"), st.just(0)),
    ),
    max_size=40,
)
CAPS = {
    "max_quote_age_s": st.integers(0, 100), "collar_bp": st.integers(0, 3), "session_collar_bp": st.integers(0, 100),
    "order_value_cap": st.integers(0, 30_000), "order_value_cap_bp": st.integers(0, 3),
    "order_shares_cap": st.integers(0, 300), "session_volume_cap_bp": st.integers(0, 900),
    "credit_cap_bp": st.integers(0, 9), "repeats_cap": st.integers(0, 6), "layers_cap": st.integers(0, 3),
    "market_edge_bp": st.integers(0, 2_000),
    "stuffing_cap": st.integers(0, 3), "cascade_cap": st.integers(0, 3), "wash_cap": st.integers(0, 300),
}  # fmt: skip  # a table
LIMITS = st.fixed_dictionaries({}, optional=CAPS)
HELD = st.fixed_dictionaries({"AAA": st.integers(-300, 300), "BBB": st.integers(-300, 300)})
RATES = st.builds(RateLimit, per_second=st.integers(1, 6), times_a_day=st.integers(1, 3), per_day=st.integers(1, 30))
CASES = 60


class Play:
    """Plays steps on a desk; a venue fills no order beyond its shares, nor above the price at which it counts."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.at = NOW
        self.rulings: list[OrderRuling] = []
        self.last: Any = None

    @property
    def open(self) -> list[LiveOrder]:
        return [live for live in self.desk.gate.state.orders.values() if live.remaining]

    def step(self, kind: str, *values: Any) -> None:
        getattr(self, f"do_{kind}")(*values)

    def do_order(self, asset: str, side: Any, shares: int, offset: int | None) -> None:
        limit = None if offset is None else PRICE + offset
        self.rulings.append(self.desk.send(self.desk.order(side, shares, limit, asset), self.at))

    def do_fill(self, place: int, shares: int, offset: int) -> None:
        if self.open:
            live = self.open[place % len(self.open)]
            price = min(PRICE + offset, live.unit_e4)
            self.desk.fill(live.order, min(shares, live.remaining), price, self.at)

    def do_end(self, place: int, kind: Any) -> None:
        if self.open:
            self.desk.report(self.open[place % len(self.open)].order, kind, at=self.at)

    def do_cancel(self, place: int) -> None:
        if self.open:
            self.rulings.append(self.desk.gate.check_cancel(self.open[place % len(self.open)].order.id, self.at))

    def do_quote(self, asset: str, offset: int) -> None:
        self.desk.gate.quote(asset, PRICE + offset * 100, self.at)

    def do_wait(self, time: int) -> None:
        self.at += time

    def do_again(self, _: int) -> None:
        """Ask with a time that lies before the last one."""
        self.rulings.append(self.desk.send(self.desk.order(), self.at - 1))


def play(steps: list[Any], limits: OrderLimits, held: dict[str, int]) -> Play:
    played = Play(Desk(limits, held=held))
    for step in steps:
        played.step(*step)
    return played


@settings(max_examples=CASES)
@given(STEPS, LIMITS, HELD, RATES, RATES)
def test_the_same_sequence_gives_the_same_rulings(
    steps: list[Any], caps: dict[str, int], held: dict[str, int], orders: RateLimit, messages: RateLimit
) -> None:
    limits = make_limits(orders, messages, **caps)
    first, second = play(steps, limits, held), play(steps, limits, dict(reversed(held.items())))
    assert [ruling.record() for ruling in first.rulings] == [ruling.record() for ruling in second.rulings]
    assert all(ruling.passed == (not ruling.refusals) for ruling in first.rulings)


@settings(max_examples=CASES)
@given(STEPS, LIMITS, LIMITS, HELD, st.data())
def test_tighter_limits_let_nothing_new_pass(
    steps: list[Any], caps: dict[str, int], tighter: dict[str, int], held: dict[str, int], data: st.DataObject
) -> None:
    """From one state the same order is asked under limits and under limits of which none is looser."""
    loose = make_limits(None, None, **caps)
    own = {name: getattr(loose, name) for name in tighter}
    sides = {name: max if name == "market_edge_bp" else min for name in tighter}  # a higher edge is tighter
    both = {name: cap if own[name] is None else sides[name](own[name], cap) for name, cap in tighter.items()}
    tight = loose.model_copy(update=both)
    played = play(steps, make_limits(None, None, **{name: value * 3 + 3 for name, value in caps.items()}), held)
    order = played.desk.order(
        data.draw(st.sampled_from(["buy", "sell"])),
        data.draw(st.integers(1, 300)),
        data.draw(st.sampled_from([None, PRICE - 100, PRICE, PRICE + 100])),
    )

    def ask(limits: OrderLimits) -> OrderRuling:
        state = copy.deepcopy(played.desk.gate.state)
        return OrderGate(limits, Policy(), state).check(order, played.at)

    assert ask(loose).passed or not ask(tight).passed


@settings(max_examples=CASES)
@given(STEPS, st.integers(0, 9), HELD)
def test_credit_never_exceeds_its_limit(steps: list[Any], cap: int, held: dict[str, int]) -> None:
    played = Play(Desk(make_limits(credit_cap_bp=cap), held=held))
    for step in steps:
        played.step(*step)
        assert 0 <= played.desk.gate.state.credit_e4 <= EQUITY * cap // BP
        check_sums(played.desk.gate.state)


def check_sums(state: GateState) -> None:
    """Compare the running sums with sums over all orders."""
    lives = list(state.orders.values())
    assert state.credit_e4 == sum(live.credit_e4 for live in lives)
    assert all(live.credit_e4 == (live.filled + live.remaining) * live.unit_e4 for live in lives if live.increases)
    for name, asset in state.assets.items():
        own = [live for live in lives if live.order.asset == name]
        assert asset.sent == sum(live.filled + live.remaining for live in own)
        for side, found in (("buy", asset.buys), ("sell", asset.sells)):
            check_side([live for live in own if live.order.side == side], found)


def check_side(lives: list[LiveOrder], side: SideState) -> None:
    assert side.open == {live.order.id: live for live in lives if live.remaining}
    assert side.shares == sum(live.remaining for live in lives)
    assert side.waiting == sum(live.waits for live in lives)
    assert side.repeats == sum(bool(live.remaining or live.filled) for live in lives)


@settings(max_examples=CASES)
@given(STEPS, HELD)
def test_reductions_never_turn_a_position(steps: list[Any], held: dict[str, int]) -> None:
    """In a gate that only reduces, each position stays on its side and never grows, whatever fills first."""
    played = Play(Desk(make_limits(), held=held))
    played.desk.gate.set_mode("reducing")
    for step in steps:
        before = {name: asset.held for name, asset in played.desk.gate.state.assets.items()}
        played.step(*step)
        for name, asset in played.desk.gate.state.assets.items():
            assert min(0, before[name]) <= asset.held <= max(0, before[name])


@settings(max_examples=CASES)
@given(st.lists(st.sampled_from([0, 1, 1_000, 300_000, 700_000, 1_000_000, 2_500_000]), max_size=40), RATES)
def test_rates_are_those_of_a_slow_count(gaps: list[int], limit: RateLimit) -> None:
    desk, at = Desk(make_limits(limit)), NOW
    sent: list[int] = []
    for gap in gaps:
        at += gap
        ruling = desk.send(desk.order(shares=1), at)
        found = {check.rule: check.actual for check in ruling.checks}
        assert found["orders_rolling"] == sum(at - 1_000_000 < time for time in sent) + 1
        assert found["orders_calendar"] == sum(at // 1_000_000 == time // 1_000_000 for time in sent) + 1
        assert found["orders_day"] == len(sent) + 1
        sent += [at] * ruling.passed
    seconds = [time // 1_000_000 for time in sent]
    busy = sum(seconds.count(second) >= (limit.per_second or 0) for second in set(seconds))
    assert busy == desk.gate.report_rates()["orders"]["busy_seconds_calendar"] < limit.times_a_day
