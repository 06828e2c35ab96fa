"""Shares and cash of an account after fills and corporate actions."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from alphaloom.execution import ChildOrder, ExecutionError, ExecutionReport, PositionCount, PositionEvent

SHARES, PRICES = st.integers(-(10**9), 10**9), st.integers(0, 10**9)


@given(SHARES, st.integers(1, 100), st.integers(1, 100), PRICES)
def test_a_split_keeps_the_value(shares: int, new: int, old: int, price_e4: int) -> None:
    after, paid_e4 = PositionEvent("AAA", "split", price_e4, new, old).apply(shares)
    lost = shares * new * price_e4 - (after * price_e4 + paid_e4) * old
    assert abs(lost) < old
    assert abs(after) * old <= abs(shares) * new


@given(SHARES, PRICES)
def test_other_events_pay_for_each_share_and_a_new_symbol_takes_all(shares: int, price_e4: int) -> None:
    count = PositionCount(0)
    count.shares["AAA"] = shares
    count.apply(PositionEvent("AAA", "cash", price_e4))
    assert (count.shares["AAA"], count.cash_e4) == (shares, shares * price_e4)
    count.apply(PositionEvent("AAA", "rename", to="BBB"))
    assert {name: held for name, held in count.shares.items() if held} == ({"BBB": shares} if shares else {})
    count.apply(PositionEvent("BBB", "delisting", price_e4))
    assert (count.shares["BBB"], count.cash_e4) == (0, 2 * shares * price_e4)


def test_fills_move_shares_one_way_and_cash_with_costs_the_other() -> None:
    count = PositionCount(1_000_000)
    for number, (side, fill) in enumerate((("buy", (30, 10_000, 5)), ("sell", (50, 11_000, 7)), ("buy", (0, 0, 0)))):
        order = ChildOrder(f"p-{number}", "p", "AAA", side, 50, "market", None, 0)  # type: ignore[arg-type]
        count.take(order, ExecutionReport(order.id, "filled" if fill[0] else "expired", "x", 0, *fill))
    assert count.shares == {"AAA": -20}
    assert count.cash_e4 == 1_000_000 - 300_000 - 5 + 550_000 - 7


@pytest.mark.parametrize(
    ("kind", "others"),
    [
        ("merger", {}), ("cash", {"price_e4": -1}), ("split", {"old_shares": 0}), ("rename", {}),
        ("rename", {"to": "AAA"}), ("split", {"to": "BBB"}),
    ],
)  # fmt: skip  # a table
def test_malformed_events_are_refused(kind: str, others: dict[str, object]) -> None:
    with pytest.raises(ExecutionError):
        PositionEvent("AAA", kind, **others)  # type: ignore[arg-type]
