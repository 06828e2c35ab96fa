"""Nothing but an `Approved` becomes an order, and a malformed order is refused."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from alphaloom.execution import ChildOrder, ExecutionError, ParentOrder
from alphaloom.risk import Signal

from .approvals import DAY, approve

CHILD = ChildOrder("0f3a-1", "0f3a", "AAA", "buy", 100, "limit", 10_000, 0)


@pytest.mark.parametrize(
    "asked",
    [None, "AAA", Signal("AAA", 1, 1, 1, 5, "by hand", "f0", DAY), {"signal": "AAA"}],
    ids=lambda one: type(one).__name__,
)
def test_only_what_the_gate_approved_becomes_an_order(asked: Any) -> None:
    with pytest.raises(ExecutionError, match="approved"):
        ParentOrder(asked, 100, 10_000, DAY)


def test_one_decision_makes_one_id_for_a_symbol_and_a_session() -> None:
    first, other = approve("AAA", "BBB")
    one = ParentOrder(first, 100, 10_000, DAY)
    assert one.id == ParentOrder(first, -7, 12_000, DAY).id
    assert len({one.id, ParentOrder(other, 100, 10_000, DAY).id, replace(one, session=date(2026, 1, 6)).id}) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"shares": 0}, {"shares": 1.0}, {"shares": True}, {"side": "short"}, {"kind": "market"}, {"limit_e4": 0},
        {"limit_e4": None}, {"at_us": -1}, {"kind": "stop"},
    ],
    ids=str,
)  # fmt: skip  # a table
def test_a_malformed_child_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ExecutionError) as raised:
        replace(CHILD, **change)
    assert raised.value.field in ("shares", "side", "limit_e4", "at_us")
