"""Whole-share orders: they come to the target and never pass it, in lots, within what is lent and what equity binds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from alphaloom.execution import SHARE_PARTS, HeldShares, OrderTerms, ParentOrder, size_orders
from alphaloom.risk import BP

from .approvals import DAY, approve

EQUITY_E4 = 10**10
"""A million of the currency."""


def size(
    target_e8: int, held_e6: int = 0, price_e4: int = 100_000, equity_e4: int = EQUITY_E4, **terms: Any
) -> tuple[list[ParentOrder], list[tuple[str, int]]]:
    """Return the orders for one symbol, and what is left out."""
    held = HeldShares(equity_e4, {"AAA": held_e6}, {"AAA": price_e4})
    orders, left_out = size_orders(approve("AAA", target_e8=target_e8), held, OrderTerms(**terms), DAY)
    return list(orders), [(one.rule, one.shares) for one in left_out]


def ordered(*args: Any, **terms: Any) -> int:
    """Return the shares of the order for one symbol; 0 where there is none."""
    return sum(order.shares for order in size(*args, **terms)[0])


@given(
    st.integers(-4_000_000, 4_000_000),
    st.integers(-(10**10), 10**10),
    st.integers(1, 10**7),
    st.sampled_from([1, 10, 100]),
)
def test_an_order_comes_within_a_lot_of_its_target_and_never_passes_it(
    target_e8: int, held_e6: int, price_e4: int, lot: int
) -> None:
    wanted_e6 = target_e8 * EQUITY_E4 * SHARE_PARTS / 10**8 / price_e4
    shares = ordered(target_e8, held_e6, price_e4, lot_shares=lot)
    after_e6 = held_e6 + shares * SHARE_PARTS
    assert shares * (wanted_e6 - held_e6) >= 0 or abs(wanted_e6 - held_e6) < lot * SHARE_PARTS
    assert abs(after_e6 - wanted_e6) < 2 * lot * SHARE_PARTS
    assert abs(after_e6) <= max(abs(wanted_e6), abs(held_e6)) + 1
    assert shares % lot == 0 or abs(wanted_e6) < lot * SHARE_PARTS


def test_targets_become_whole_shares_of_equity_at_the_arrival_price() -> None:
    assert ordered(1_000_000) == 1_000  # 1 % of a million at 10.00
    assert ordered(1_000_000, 400_500_000) == 599
    assert ordered(0, -400_500_000) == 400
    assert ordered(1_000_000, lot_shares=300) == 900
    assert ordered(0, 250_000_000, lot_shares=100) == -250
    assert size(1_000_000, price_e4=0) == ([], [("price", 0)])
    assert size(1_000_000, 999_500_000) == ([], [("lot", 0)])


def test_what_may_only_be_reduced_is() -> None:
    assert ordered(1_000_000, 500_000_000, reducing=["AAA"]) == 0
    assert ordered(-1_000_000, 500_000_000, reducing=["AAA"]) == -500
    assert ordered(-1_000_000, -1_500_000_000, reducing=["AAA"]) == 500


@pytest.mark.parametrize(
    ("terms", "held", "shares", "left_out"),
    [
        ({}, 0, -1_000, []),
        ({"not_shortable": ["AAA"]}, 0, 0, [("borrow", -1_000)]),
        ({"not_shortable": ["AAA"]}, 300, -300, [("borrow", -1_000)]),
        ({"not_shortable": ["AAA"], "located": {"AAA": 5_000}}, 0, 0, [("borrow", -1_000)]),
        ({"located": {"AAA": 1_000}}, 0, -1_000, []),
        ({"located": {"AAA": 999}}, 0, -999, [("locate", -1)]),
        ({"located": {"AAA": 999}, "lot_shares": 100}, 0, -900, [("locate", -100)]),
        ({"located": {}}, -400, 0, [("locate", -600)]),
        ({"located": {}}, 300, -300, [("locate", -1_000)]),
        ({"located": {}}, -1_500, 500, []),
    ],
)
def test_a_short_grows_by_what_is_lent(
    terms: dict[str, Any], held: int, shares: int, left_out: list[tuple[str, int]]
) -> None:
    orders, missed = size(-1_000_000, held * SHARE_PARTS, **terms)
    assert sum(order.shares for order in orders) == shares
    assert missed == left_out


@given(st.lists(st.integers(-4_000_000, 4_000_000), min_size=1, max_size=5), st.integers(1, 30_000), st.integers(0, 50))
def test_positions_never_bind_more_than_the_equity(targets: list[int], margin_bp: int, cost_bp: int) -> None:
    names = [f"A{place}" for place in range(len(targets))]
    approved = [one for name, target in zip(names, targets, strict=True) for one in approve(name, target_e8=target)]
    equity_e4 = 10**9  # a tenth of the equity for which the gate was asked: a withdrawal came in between
    held = HeldShares(equity_e4, dict.fromkeys(names, 0), dict.fromkeys(names, 12_345))
    terms = OrderTerms(margin_long_bp=margin_bp * 9, margin_short_bp=margin_bp * 11, cost_bp=cost_bp)
    orders, _ = size_orders(approved, held, terms, DAY)
    bound = sum(abs(one.shares) * 12_345 * (margin_bp * (9 if one.shares > 0 else 11) + cost_bp) for one in orders)
    assert bound <= equity_e4 * BP
