"""Smart routing costs what the best of all splits costs."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, strategies as st

from alphaloom.execution import ChildOrder, ExecutionError, VenueQuote, route_order

BUY = ChildOrder("0f3a-1", "0f3a", "AAA", "buy", 5, "market", None, 1_000)
MID_E4 = 100


@st.composite
def quotes(draw: st.DrawFn) -> list[VenueQuote]:
    found = []
    for name in "ABC"[: draw(st.integers(1, 3))]:
        prices = sorted(draw(st.sets(st.integers(98, 103), max_size=3)), reverse=draw(st.booleans()))
        found.append(
            VenueQuote(
                name,
                tuple((price, draw(st.integers(1, 3))) for price in prices),
                draw(st.integers(-150, 150)),
                draw(st.sampled_from([0, 70, 400])),
                draw(st.sampled_from([0, 500, 3_000])),
                draw(st.integers(0, 2)),
                MID_E4,
                draw(st.none() | st.integers(0, 4)),
            )
        )
    return found


def list_prices(quote: VenueQuote, child: ChildOrder) -> list[int]:
    """Return the price of each single share that a venue has for a child, the best first."""
    shares = [price for price, count in (*quote.levels, (quote.hidden_e4, quote.hidden_shares)) for _ in range(count)]
    sign = 1 if child.side == "buy" else -1
    within = [price for price in shares if child.limit_e4 is None or sign * price <= sign * child.limit_e4]
    return sorted(within, reverse=sign < 0)[: quote.most_shares]


def find_cost(child: ChildOrder, split: tuple[int, ...], asked: list[VenueQuote], wait_e6: int) -> int:
    """Return what a split costs, share by share."""
    sign = 1 if child.side == "buy" else -1
    cost, used = 0, [quote for quote, count in zip(asked, split, strict=True) if count]
    for quote, count in zip(asked, split, strict=True):
        cost += sum(sign * (price - MID_E4) * 100 + quote.fee_e6 for price in list_prices(quote, child)[:count])
    wait = sum(split) * wait_e6 * max((quote.latency_us for quote in used), default=0) // 1_000
    return cost + wait + sum(quote.order_fee_e6 for quote in used)


@given(
    quotes(),
    st.integers(1, 7),
    st.sampled_from(["buy", "sell"]),
    st.none() | st.integers(98, 103),
    st.sampled_from([0, 20]),
)
def test_the_route_costs_what_the_best_split_costs(
    asked: list[VenueQuote], shares: int, side: str, limit_e4: int | None, wait_e6: int
) -> None:
    child = replace(BUY, side=side, shares=shares, limit_e4=limit_e4, kind="limit" if limit_e4 else "market")  # type: ignore[arg-type]  # two words
    route = route_order(child, asked, MID_E4, wait_e6)
    rooms = [len(list_prices(quote, child)) for quote in asked]
    wanted = min(shares, sum(rooms))
    splits = [one for one in product(*(range(room + 1) for room in rooms)) if sum(one) == wanted]
    assert route.cost_e6 == min(find_cost(child, one, asked, wait_e6) for one in splits)
    ours = {part.venue: part.shares for part in route.slices}
    assert find_cost(child, tuple(ours.get(quote.venue, 0) for quote in asked), asked, wait_e6) == route.cost_e6
    assert sum(ours.values()) + route.unrouted_shares == shares
    for part in route.slices:
        (quote,) = (quote for quote in asked if quote.venue == part.venue)
        assert part.limit_e4 == list_prices(quote, child)[part.shares - 1]


def test_orders_arrive_together_and_keep_the_id_of_the_child() -> None:
    asked = [VenueQuote("A", ((101, 3),), latency_us=100), VenueQuote("B", ((101, 3),), latency_us=900)]
    route = route_order(BUY, asked, MID_E4)
    orders = route.split(BUY)
    assert [(venue, order.id, order.shares, order.at_us) for venue, order in orders] == [
        ("A", "0f3a-1.1", 3, 1_800),
        ("B", "0f3a-1.2", 2, 1_000),
    ]


def test_a_slow_venue_is_left_out_where_waiting_costs_more_than_it_saves() -> None:
    asked = [VenueQuote("A", ((102, 9),), latency_us=0), VenueQuote("B", ((101, 9),), latency_us=10_000)]
    assert [one.venue for one in route_order(BUY, asked, MID_E4, wait_e6=9).slices] == ["B"]
    assert [one.venue for one in route_order(BUY, asked, MID_E4, wait_e6=11).slices] == ["A"]


def test_quotes_of_one_name_are_refused() -> None:
    with pytest.raises(ExecutionError, match="malformed"):
        route_order(BUY, [VenueQuote("A", ()), VenueQuote("A", ())], MID_E4)
