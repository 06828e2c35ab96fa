"""Each manipulative pattern is refused by its own rule; what a schedule sends is not."""

from __future__ import annotations

from random import Random

import pytest

from alphaloom.execution import OrderLimits
from alphaloom.execution.gate import patterns

from .manipulation import PATTERNS
from .market import MINUTE, NOW, PRICE, SECOND, Desk, make_limits

SHIPPED = {
    name: getattr(OrderLimits(), name)
    for name in ("layers_cap", "stuffing_cap", "close_volume_cap_bp", "cascade_cap", "wash_cap")
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_is_refused_by_its_rule(pattern: str, seed: int) -> None:
    rule, generate = PATTERNS[pattern]
    rulings = list(generate(Desk(make_limits(**SHIPPED)), Random(seed)))
    refusals = [ruling.refusals for ruling in rulings if not ruling.passed]
    assert rulings[0].passed
    assert refusals
    assert all(refusal == (rule,) for refusal in refusals)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_without_its_limit_the_pattern_passes(pattern: str) -> None:
    rule, generate = PATTERNS[pattern]
    names = {
        "layering": "layers_cap", "quote_stuffing": "stuffing_cap", "marking_the_close": "close_volume_cap_bp",
        "stop_cascade": "cascade_cap", "wash": "wash_cap",
    }  # fmt: skip  # a table
    rulings = list(generate(Desk(make_limits(**{**SHIPPED, names[rule]: None})), Random(1)))
    assert all(ruling.passed for ruling in rulings)


def test_every_pattern_has_a_definition() -> None:
    heads = [line for line in (patterns.__doc__ or "").splitlines() if line and not line.startswith(" ")]
    for name in ("Layering and spoofing", "Quote stuffing", "Marking the close", "Stop cascade", "Wash trade"):
        assert name in heads


@pytest.mark.parametrize("side", ["buy", "sell"])
def test_a_schedule_is_no_pattern(side: str) -> None:
    """Limit orders each five minutes, replaced when they wait too long, while the price drifts against them."""
    desk, price = Desk(make_limits(**SHIPPED)), PRICE
    for place in range(60):
        at = NOW + 5 * MINUTE * place
        price += (1 if side == "buy" else -1) * price // 500
        desk.gate.quote("AAA", price, at)
        first = desk.sent(side, 20, price, at=at)
        if place % 3 == 0:
            desk.cancel(first, at + MINUTE)
            first = desk.sent(side, 20, price, at=at + MINUTE)
        desk.fill(first, price=price, at=at + MINUTE)


def test_a_fall_back_by_a_level_ends_a_cascade() -> None:
    desk = Desk(make_limits(cascade_cap=1, cascade_step_bp=100))
    for place, percent in enumerate((100, 99, 100, 99)):
        desk.gate.quote("AAA", PRICE // 100 * percent, NOW)
        desk.sent("sell", 1, PRICE + place)
    desk.gate.quote("AAA", PRICE // 100 * 95, NOW)
    ruling = desk.send(desk.order("sell", 1, PRICE))
    assert ruling.refusals == ("stop_cascade",)
    assert {check.rule: check.actual for check in ruling.checks}["stop_cascade"] == 5
    later = NOW + MINUTE
    assert desk.send(desk.order("sell", 1, PRICE), later).passed  # after the window it begins again


def test_what_was_filled_was_no_layer() -> None:
    desk = Desk(make_limits(layers_cap=1, stuffing_cap=0))
    for place in range(4):
        filled = desk.sent("sell", 10, PRICE + 10 + place)
        desk.fill(filled, 1, PRICE + 10)
        desk.cancel(filled)
    assert desk.sent("buy")
    desk.gate.check_cancel("p-unknown", NOW + SECOND)
