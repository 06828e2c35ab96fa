"""Each rule of the order gate below its limit, at it and above it, for orders and for reductions."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from alphaloom.execution import ORDER_RULE_UNITS, ORDER_RULES, ExecutionError, ExecutionReport, OrderLimits, OrderRuling
from alphaloom.execution.gate import NOT_FOR_REDUCTIONS, OrderGate, RateLimit
from alphaloom.ledger import canonical_json
from alphaloom.risk import Policy

from .market import CLOSE, EQUITY, MINUTE, NOW, PRICE, SECOND, Desk, make_limits

Case = Callable[..., tuple[Desk, Any, int]]
"""Returns a desk, an order and its time, such that the value of a rule is its limit and `over`."""
CASES: dict[str, Case] = {}
FLAGS = {"duplicate_id", "kill_switch", "trading_state", "restricted"}
"""Rules whose value is 0 or 1: below their limit there is nothing."""


def case(make: Case) -> Case:
    CASES[make.__name__] = make
    return make


@case
def stale_quote(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(max_quote_age_s=1), **state)
    desk.gate.quote("AAA", PRICE, NOW - SECOND - over)
    return desk, desk.order(), NOW


@case
def collar(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(collar_bp=100), **state)
    return desk, desk.order(limit=PRICE // 100 * 101 + over), NOW


@case
def session_collar(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(session_collar_bp=200), **state)
    desk.gate.quote("AAA", PRICE // 100 * 102, NOW)
    return desk, desk.order(limit=PRICE // 100 * 102 + over), NOW


@case
def order_value(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(order_value_cap=10_000), **state)
    return desk, desk.order(limit=PRICE + over), NOW


@case
def order_value_bp(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(order_value_cap_bp=1), **state)
    return desk, desk.order(limit=PRICE + over), NOW


@case
def order_shares(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(order_shares_cap=100), **state)
    return desk, desk.order(shares=100 + over), NOW


@case
def session_volume(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(session_volume_cap_bp=200), **state)
    desk.fill(desk.sent(shares=60))
    desk.sent(shares=40)
    return desk, desk.order(shares=100 + over), NOW


@case
def credit(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(credit_cap_bp=3), **state)
    desk.fill(desk.sent())
    desk.sent(asset="BBB")
    return desk, desk.order(limit=PRICE + over), NOW


@case
def repeats(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(repeats_cap=4), **state)
    desk.report(desk.sent(), "rejected")
    for _ in range(3 + over):
        desk.fill(desk.sent(), 1)
    return desk, desk.order(), NOW


@case
def duplicate_id(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(), **state)
    desk.report(desk.sent(name="p-same"), "cancelled")
    return desk, desk.order(name="p-same" if over > 0 else "p-other"), NOW


@case
def duplicate(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(duplicate_ms=1), **state)
    desk.sent()
    desk.sent(shares=99, at=NOW)
    return desk, desk.order(), NOW + 1_000 - over


@case
def self_trade(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(), **state)
    desk.sent("sell", limit=PRICE)
    return desk, desk.order(limit=PRICE - 1 + over), NOW


@case
def layering(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(layers_cap=2), **state)
    for place in range(2 + over):
        desk.sent("sell", limit=PRICE + 100 + place)
    return desk, desk.order(), NOW


@case
def quote_stuffing(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(stuffing_cap=2, stuffing_s=1), **state)
    if over <= 0:
        desk.cancel(desk.sent(at=NOW - SECOND), at=NOW - SECOND)  # too long ago for the last one
    for _ in range(2 + over):
        desk.cancel(desk.sent(at=NOW - SECOND + 1), at=NOW - SECOND + 1)
    return desk, desk.order(), NOW


@case
def marking_the_close(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(close_minutes=10, close_volume_cap_bp=200), **state)
    desk.sent(shares=5_000, at=CLOSE - 10 * MINUTE - 1)  # before those minutes
    desk.cancel(desk.sent(shares=100, at=CLOSE - 10 * MINUTE), at=CLOSE - 10 * MINUTE)
    return desk, desk.order(shares=100 + over), CLOSE - 10 * MINUTE


@case
def stop_cascade(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(cascade_cap=2, cascade_step_bp=100), **state)
    price = PRICE
    desk.sent(limit=price)
    for _ in range(1 + over):
        price += price // 100
        desk.gate.quote("AAA", price, NOW)
        desk.sent(limit=price)
    desk.gate.quote("AAA", price + price // 100, NOW)
    return desk, desk.order(limit=price), NOW


@case
def wash(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(wash_cap=10, wash_bp=10, pattern_s=60), **state)
    sold = desk.sent("sell", at=NOW - MINUTE)
    desk.fill(sold, 50, at=NOW - MINUTE)  # too long ago
    desk.fill(desk.sent("sell", at=NOW), 20, PRICE // 1_000 * 1_002)  # at another price
    desk.fill(desk.sent("sell", shares=10 + over), price=PRICE // 1_000 * 1_001)
    for live in list(desk.gate.state.assets["AAA"].sells.open.values()):
        desk.report(live.order, "cancelled")
    return desk, desk.order(), NOW


@case
def clock(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(), **state)
    desk.sent()
    return desk, desk.order(), NOW - over


@case
def kill_switch(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(), policy=Policy(kill_switch=over > 0), **state)
    return desk, desk.order(), NOW


@case
def trading_state(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(), **state)
    desk.gate.set_mode("reducing" if over > 0 else "active")
    return desk, desk.order(), NOW


@case
def market_hours(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(), **state)
    return desk, desk.order(), CLOSE - 1 + over


@case
def restricted(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(), policy=Policy(restricted=("AAA",) if over > 0 else ("BBB",)), **state)
    return desk, desk.order(), NOW


@case
def borrow(over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(), located={"AAA": 150}, **state)
    desk.sent("sell", shares=50)
    return desk, desk.order("sell", shares=100 + over), NOW


def say(desk: Desk, kind: str, at: int) -> None:
    """Send one message: an order, or the cancel of one that is not known."""
    if kind == "orders":
        desk.sent(shares=1, at=at)
    else:
        desk.gate.check_cancel("p-0", at)


def rolling(kind: str, over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(**{kind: RateLimit(per_second=3)}), **state)
    if over <= 0:
        say(desk, kind, NOW - SECOND)  # too long ago for the last one
    for _ in range(1 + over):
        say(desk, kind, NOW - SECOND + 1)  # in the second of the clock before
    return desk, desk.order(), NOW


def calendar(kind: str, over: int, **state: Any) -> tuple[Desk, Any, int]:
    """One burst over a full second is two busy seconds of the clock: the second of three is used up."""
    desk = Desk(make_limits(**{kind: RateLimit(per_second=3, times_a_day=3)}), **state)
    for at in (NOW - 100, NOW):
        for _ in range(3):
            say(desk, kind, at)
    for _ in range(1 + over):
        say(desk, kind, NOW + SECOND)
    return desk, desk.order(), NOW + SECOND


def day(kind: str, over: int, **state: Any) -> tuple[Desk, Any, int]:
    desk = Desk(make_limits(**{kind: RateLimit(per_day=4)}), **state)
    for place in range(2 + over):
        say(desk, kind, NOW + place)
    return desk, desk.order(), NOW + 10 * SECOND


CASES |= {
    f"{kind}_{make.__name__}": partial(make, kind)
    for kind in ("orders", "messages")
    for make in (rolling, calendar, day)
}


def test_every_rule_has_a_case_and_a_unit() -> None:
    assert sorted(CASES) == sorted(ORDER_RULES) == sorted(ORDER_RULE_UNITS)
    assert set(ORDER_RULES) > NOT_FOR_REDUCTIONS


@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("rule", ORDER_RULES)
def test_a_rule_holds_up_to_its_limit(rule: str, over: int) -> None:
    desk, order, at = CASES[rule](over)
    ruling = desk.send(order, at)
    assert ruling.refusals == ((rule,) if over > 0 else ())
    assert ruling.passed == (over <= 0)
    assert tuple(check.rule for check in ruling.checks) == ORDER_RULES
    check = next(check for check in ruling.checks if check.rule == rule)
    assert check.limit is not None
    assert check.actual is not None
    if rule not in FLAGS and over >= 0:
        assert (check.actual > check.limit) == (over > 0)


@pytest.mark.parametrize("rule", sorted(set(ORDER_RULES) - {"borrow", "trading_state"}))
def test_which_rules_bind_a_reduction(rule: str) -> None:
    desk, order, at = CASES[rule](1, held={"AAA": -(10**6)})
    ruling = desk.send(order, at)
    assert ruling.reduces
    assert ruling.refusals == (() if rule in NOT_FOR_REDUCTIONS else (rule,))


def test_a_halted_gate_lets_nothing_pass_and_a_reducing_one_what_reduces() -> None:
    desk = Desk(make_limits(), held={"AAA": 100})
    desk.gate.set_mode("reducing")
    assert desk.send(desk.order("sell", 101)).refusals == ("trading_state",)
    assert desk.send(desk.order("sell", 60)).passed
    assert desk.send(desk.order("sell", 41)).refusals == ("trading_state",)  # with the open ones it would be short
    assert desk.send(desk.order("sell", 40)).passed
    desk.gate.set_mode("halted")
    assert desk.send(desk.order("buy", 1, asset="BBB")).refusals == ("trading_state",)
    desk.gate.state.find("BBB").held = -5
    assert desk.send(desk.order("buy", 1, asset="BBB")).refusals == ("trading_state",)
    assert Desk(make_limits(), held={"AAA": -5}).send(desk.order("buy", 5)).reduces


def test_no_price_and_no_volume_are_refused_and_every_breach_is_shown() -> None:
    desk = Desk(make_limits(session_volume_cap_bp=100), policy=Policy(restricted=("ZZZ",)))
    ruling = desk.send(desk.order(asset="ZZZ", limit=None))
    assert ruling.refusals == ("stale_quote", "collar", "session_collar", "session_volume", "credit", "restricted")
    assert read_values(ruling)["restricted"] == [1, 0]
    unknown = desk.send(desk.order(asset="YYY"))
    assert (unknown.passed, unknown.refusals[:3]) == (False, ("stale_quote", "collar", "session_collar"))
    desk.gate.quote("YYY", PRICE, NOW)
    unknown = desk.send(desk.order(asset="YYY"))
    assert (unknown.passed, unknown.refusals) == (False, ("session_volume",))
    desk.gate.quote("AAA", PRICE, NOW + 1)
    assert desk.send(desk.order()).refusals == ("stale_quote",)  # a price from later


def test_a_price_that_is_older_than_the_last_one_is_not_the_last() -> None:
    desk = Desk(make_limits(collar_bp=100))
    desk.gate.quote("AAA", PRICE * 11 // 10, NOW)
    desk.gate.quote("AAA", PRICE, NOW - MINUTE // 2)
    assert desk.send(desk.order(limit=PRICE)).refusals == ("collar",)
    assert desk.send(desk.order(limit=PRICE * 11 // 10)).passed


def test_a_market_order_and_a_sale_count_at_the_far_edge() -> None:
    desk = Desk(make_limits(market_edge_bp=100))
    desk.sent(limit=None, shares=10)
    assert desk.gate.state.credit_e4 == 10 * (PRICE + PRICE // 100)
    desk.sent("sell", limit=PRICE, shares=10, asset="BBB")
    assert desk.gate.state.credit_e4 == 20 * (PRICE + PRICE // 100)
    assert desk.send(desk.order("sell", limit=None)).refusals == ("self_trade",)


def test_what_nobody_lends_is_not_sold_short() -> None:
    desk = Desk(make_limits(), held={"AAA": 100}, policy=Policy(not_shortable=("AAA",)))
    assert desk.send(desk.order("sell", 101)).refusals == ("borrow",)
    assert desk.send(desk.order("sell", 100)).passed
    assert desk.send(desk.order("sell", 1)).refusals == ("borrow",)


def test_a_side_that_was_stopped_stays_so_until_a_named_person_allows_more() -> None:
    desk = Desk(make_limits(repeats_cap=2))
    for _ in range(2):
        desk.fill(desk.sent())
    assert desk.send(desk.order()).refusals == ("repeats",)
    tomorrow = NOW + 24 * 60 * MINUTE
    desk.gate.quote("AAA", PRICE, tomorrow)
    assert desk.send(desk.order(), tomorrow).refusals == ("repeats",)
    for by, reason in (("", "it is fine"), ("Ada", " ")):
        with pytest.raises(ExecutionError):
            desk.gate.allow_repeats("AAA", "buy", by, reason, tomorrow)
    allowed = desk.gate.allow_repeats("AAA", "buy", "Ada", "a long schedule", tomorrow)
    assert (allowed.counted, allowed.by) == (2, "Ada")
    assert desk.send(desk.order(), tomorrow).passed


def test_what_was_open_when_more_was_allowed_frees_nothing_when_it_ends() -> None:
    desk = Desk(make_limits(repeats_cap=2))
    waits = [desk.sent() for _ in range(2)]
    desk.gate.allow_repeats("AAA", "buy", "Ada", "a long schedule", NOW)
    for order in waits:
        desk.cancel(order)
    for _ in range(2):
        desk.fill(desk.sent())
    assert desk.send(desk.order()).refusals == ("repeats",)


def test_a_new_day_counts_again_and_keeps_what_is_open() -> None:
    limits = make_limits(RateLimit(per_day=4), session_volume_cap_bp=300, credit_cap_bp=3, repeats_cap=4)
    desk = Desk(limits)
    waits = desk.sent()
    desk.fill(desk.sent())
    desk.fill(desk.sent())
    assert set(desk.send(desk.order()).refusals) == {"session_volume", "credit", "orders_day"}
    tomorrow = NOW + 24 * 60 * MINUTE
    desk.gate.quote("AAA", PRICE * 2, tomorrow)
    ruling = desk.send(desk.order(limit=PRICE * 2, shares=101), tomorrow)
    checks = {check.rule: check.actual for check in ruling.checks}
    assert (checks["session_collar"], checks["session_volume"], checks["credit"]) == (0, 201, 302 * PRICE)
    assert (checks["repeats"], checks["orders_day"]) == (2, 1)
    desk.report(waits, "expired")
    assert desk.gate.state.credit_e4 == 0


def test_a_report_that_comes_twice_counts_once_and_one_of_nothing_stops() -> None:
    desk = Desk(make_limits())
    order = desk.sent()
    for _ in range(2):
        desk.gate.apply(make_fill(order.id, "e-1", 30))
    assert desk.gate.state.assets["AAA"].held == 30
    desk.gate.apply(make_fill(order.id, "e-2", 80))  # more than there was: the position is what it is
    assert desk.gate.state.assets["AAA"].held == 110
    assert desk.gate.state.credit_e4 == 110 * PRICE
    with pytest.raises(ExecutionError, check=lambda error: error.code == "unknown_order"):
        desk.gate.apply(make_fill("p-99", "e-3", 1))


def test_no_float_enters() -> None:
    desk = Desk(make_limits())
    order = desk.sent()
    wrong: Any = 1.0
    for ask in (
        lambda: desk.gate.quote("AAA", wrong, NOW),
        lambda: desk.send(desk.order(), wrong),
        lambda: desk.fill(order, wrong),
        lambda: desk.fill(order, 1, wrong),
        lambda: desk.fill(order, -1),
    ):
        with pytest.raises(ExecutionError, match="malformed"):
            ask()


def read_values(ruling: OrderRuling) -> dict[str, Any]:
    """Return value and limit of each rule, as they are recorded."""
    recorded = json.loads(canonical_json(ruling.record()))
    assert recorded["refusals"] == list(ruling.refusals)
    rules: dict[str, Any] = recorded["rules"]
    return rules


def make_fill(order: str, exec_id: str, shares: int) -> ExecutionReport:
    return ExecutionReport(order, "filled", exec_id, NOW, shares, PRICE)


def test_a_cancel_is_counted_and_never_refused() -> None:
    desk = Desk(make_limits(messages=RateLimit(per_second=3, per_day=4)))
    order = desk.sent()
    rulings = [desk.cancel(order) for _ in range(5)]
    assert all(ruling.passed and not ruling.refusals for ruling in rulings)
    assert read_values(rulings[-1])["messages_day"] == [6, 3]
    assert desk.send(desk.order()).refusals == ("messages_rolling", "messages_calendar", "messages_day")


def test_an_adopted_order_counts_as_one_that_passed() -> None:
    desk, other = (Desk(make_limits(messages=RateLimit(per_day=3))) for _ in range(2))
    order = desk.sent()
    other.gate.adopt(order, NOW)
    with pytest.raises(ExecutionError):
        other.gate.adopt(order, NOW)
    for one in (desk, other):
        one.fill(order, 10)
        assert one.gate.state.credit_e4 == 100 * PRICE
        assert one.send(order).refusals == ("duplicate_id",)
        assert one.sent(shares=1)
        assert one.send(one.order()).refusals == ("messages_day",)


def test_the_digest_names_limits_policy_and_profile() -> None:
    made = [
        Desk(make_limits()), Desk(make_limits(wash_bp=11)), Desk(make_limits(), policy=Policy(net_cap_bp=1)),
        Desk(make_limits(RateLimit(per_second=7))),
    ]  # fmt: skip  # a table
    assert len({desk.gate.digest for desk in made}) == len(made)


@pytest.mark.parametrize(
    "changed", [{"collar_bp": -1}, {"collar_bp": 1.0}, {"profile": "moon"}, {"colar_bp": 1}, {"wash_cap": "0"}]
)
def test_limits_are_whole_numbers_of_known_names(changed: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        OrderLimits.model_validate(changed)


@pytest.mark.parametrize("changed", [{"equity_e4": 0}, {"equity_e4": 1.0}, {"usual_shares": {"A": -1}}])
def test_nothing_is_ruled_on_a_malformed_book(changed: dict[str, Any]) -> None:
    with pytest.raises(ExecutionError):
        Desk(make_limits(), **changed)


def test_the_shipped_limits_let_a_usual_day_pass() -> None:
    """Four hundred names, each of a four-hundredth of equity, sent at one instant."""
    names = [f"N{place}" for place in range(400)]
    desk = Desk(OrderLimits(), usual_shares=dict.fromkeys(names, 50_000), equity_e4=EQUITY)
    for name in names:
        desk.gate.quote(name, PRICE, NOW)
    assert isinstance(desk.gate, OrderGate)
    assert all(desk.send(desk.order(shares=EQUITY // 400 // PRICE, limit=None, asset=name)).passed for name in names)
