"""The paper venue: opening price, share of the volume over all orders of a symbol, limits, and the rest expires."""

from __future__ import annotations

from hypothesis import given, strategies as st

from alphaloom.execution import ChildOrder, PaperSession, PaperVenue

AT = 7


def child(number: int, shares: int, side: str = "buy", limit_e4: int | None = None) -> ChildOrder:
    kind = "market" if limit_e4 is None else "limit"
    return ChildOrder(f"p-{number}", "p", "AAA", side, shares, kind, limit_e4, AT)  # type: ignore[arg-type]


def venue(room: int | None, price_e4: int = 50_000, cost_bp: float = 10.0) -> PaperVenue:
    rooms = None if room is None else {"AAA": room}
    return PaperVenue(PaperSession({"AAA": price_e4} if price_e4 else {}, rooms, cost_bp, AT))


@given(st.lists(st.integers(1, 500), max_size=6), st.integers(0, 900), st.integers(0, 6))
def test_fills_use_the_room_once_whichever_process_asks(sizes: list[int], room: int, before: int) -> None:
    orders = [child(number, shares) for number, shares in enumerate(sizes)]
    whole = venue(room)
    whole.send(orders)
    reports = whole.read_reports(0.0)
    assert sum(one.shares for one in reports) == min(sum(sizes), room)
    for order in orders:
        own = [one for one in reports if one.order == order.id]
        assert sum(one.shares for one in own) <= order.shares
        assert (own[-1].kind == "expired") == (sum(one.shares for one in own) < order.shares)
    first, later = venue(room), venue(room)
    first.send(orders[:before])
    early = first.read_reports(0.0)
    later.recall(orders[before:], {"AAA": sum(one.shares for one in early)})
    assert [*early, *later.read_reports(0.0)] == [*reports]


def test_costs_limits_and_a_symbol_without_an_open() -> None:
    one = venue(None)
    one.send([child(1, 3), child(2, 3, "buy", 50_000), child(3, 3, "buy", 49_999), child(4, 3, "sell", 50_001)])
    told = [(report.order, report.kind, report.shares, report.cost_e4) for report in one.read_reports(0.0)]
    assert told == [
        ("p-1", "filled", 3, 150),
        ("p-2", "filled", 3, 150),
        ("p-3", "expired", 0, 0),
        ("p-4", "expired", 0, 0),
    ]
    closed = venue(None, price_e4=0)
    closed.send([child(1, 3)])
    assert [report.reason for report in closed.read_reports(0.0)] == ["no opening price"]
    assert closed.read_reports(0.0) == []
