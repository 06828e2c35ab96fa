"""The exchange behind the acceptor: price-time priority, and the same reports for the same orders and seed."""

from collections import defaultdict
from datetime import date
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.execution.fix import FixMessage, GarbledMessage, InvalidMessage, decode, encode, read_report
from alphaloom.execution.fix.message import format_price, parse_price
from alphaloom.execution.fix.venue import Exchange, ExchangeSettings, SessionOpens, VenueFaults
from alphaloom.execution.fix.venue.faults import MALFORMED_KINDS, make_malformed
from alphaloom.execution.fix.venue.order_book import make_depth

from .wire import AT, HEAD, US, order

PRICE_E4 = 1_000_000
SETTINGS = ExchangeSettings(3, {"AAA": PRICE_E4})


def new(id: str, side: str, shares: int, limit_e4: int | None = None, **other: str) -> FixMessage:
    fields = {11: id, 55: "AAA", 54: side, 60: AT, 38: str(shares), 40: "1" if limit_e4 is None else "2"}
    if limit_e4 is not None:
        fields[44] = format_price(limit_e4)
    fields |= {int(tag.removeprefix("tag_")): value for tag, value in other.items()}
    return FixMessage("FIX.4.4", "D", (*HEAD, *fields.items()))


def cancel(id: str, of: str, *head: tuple[int, str]) -> FixMessage:
    return FixMessage("FIX.4.4", "F", (*HEAD, *head, (11, id), (41, of), (55, "AAA"), (54, "1"), (60, AT)))


def mass(id: str, *fields: tuple[int, str]) -> FixMessage:
    return FixMessage("FIX.4.4", "q", (*HEAD, (11, id), (60, AT), *fields))


def play(exchange: Exchange, *messages: FixMessage, session: str = "DESK") -> list[dict[int, str]]:
    """Return the fields of the reports, after each went through the codec."""
    told = []
    for message in messages:
        for report in exchange.handle(session, message, US):
            fields = (*HEAD, *report.fields) if report.session == "DESK" else report.fields
            if report.session == "DESK":
                decode(encode(FixMessage("FIX.4.4", report.kind, fields)))
            told.append({0: report.kind, 1: report.session, **dict(report.fields)})
    return told


def pick(told: list[dict[int, str]], *tags: int) -> list[tuple[str, ...]]:
    return [tuple(one.get(tag, "") for tag in tags) for one in told]


def test_a_market_order_takes_the_best_depth_first() -> None:
    best = [level for level in make_depth("AAA", PRICE_E4, 3) if level.side == "sell"]
    assert [level.price_e4 for level in best] == [PRICE_E4 + 100 * level for level in range(1, 11)]
    told = play(Exchange(SETTINGS), new("a", "1", best[0].shares + 50))
    assert pick(told, 150, 39, 31, 32, 151, 14) == [
        ("0", "0", "", "", str(best[0].shares + 50), "0"),
        ("F", "1", "100.01", str(best[0].shares), "50", str(best[0].shares)),
        ("F", "2", "100.02", "50", "0", str(best[0].shares + 50)),
    ]


def test_the_older_of_two_orders_at_a_price_is_filled_first_and_depth_behind_it() -> None:
    exchange = Exchange(SETTINGS)
    play(exchange, new("old", "1", 100, PRICE_E4), session="ONE")
    play(exchange, new("young", "1", 100, PRICE_E4), new("low", "1", 100, PRICE_E4 - 100), session="TWO")
    told = play(exchange, new("s", "2", 150))
    assert [row for row in pick(told, 1, 11, 32, 31) if row[2]] == [
        ("DESK", "s", "100", "100"), ("ONE", "old", "100", "100"), ("DESK", "s", "50", "100"),
        ("TWO", "young", "50", "100"),
    ]  # fmt: skip  # a table
    assert [(one.id, one.left) for one in exchange.list_open()] == [("young", 50), ("low", 100)]


def test_with_recorded_opens_each_order_is_filled_at_the_open_of_its_session() -> None:
    days = (date(2026, 1, 5), date(2026, 1, 6))
    opens = SessionOpens(days, ("AAA", "BBB"), np.array([[100_000, 0], [110_000, 50_000]]))
    exchange = Exchange(ExchangeSettings(3, opens=opens, partial_fills=True))
    told = play(
        exchange,
        new("a", "1", 70_000), new("b", "2", 9, 100_000), new("c", "1", 9, 99_999), new("d", "1", 9, tag_55="BBB"),
        new("e", "1", 9, tag_60="20260106-20:59:59.999"), new("f", "1", 9, tag_60="20260105-21:00:00.000"),
        new("g", "1", 9, tag_60="20260107-14:30:00.000"), new("h", "1", 9, tag_60="20260231-14:30:00.000"),
        new("i", "1", 9, tag_55="CCC"),
    )  # fmt: skip  # a table
    fills = defaultdict(list)
    for row in told:
        if row[150] == "F":
            fills[row[11]].append((int(row[32]), row[31]))
    assert {id: (sum(shares for shares, _ in parts), {price for _, price in parts}) for id, parts in fills.items()} == {
        "a": (70_000, {"10"}), "b": (9, {"10"}), "e": (9, {"11"}), "f": (9, {"11"}),
    }  # fmt: skip  # a table
    assert min(len(parts) for parts in fills.values()) > 1
    assert [row[11] + row[58] for row in told if row[150] in "C8"] == [
        "cthe opening price is worse than the limit", "dno opening price", "gno session on the day of TransactTime",
        "hno session on the day of TransactTime", "iunknown symbol",
    ]  # fmt: skip  # a table
    assert {row[60] for row in told if row[11] == "e"} == {"20260106-20:59:59.999"}
    assert exchange.list_open() == []


ORDERS = st.lists(
    st.tuples(st.sampled_from("12"), st.integers(1, 9000), st.none() | st.integers(-15, 15), st.sampled_from("AB")),
    max_size=12,
)


@given(ORDERS, st.booleans(), st.integers(0, 3))
def test_the_laws_of_the_book(orders: list[tuple[str, int, int | None, str]], parts: bool, seed: int) -> None:
    """Shares add up, no fill is worse than a limit, nothing that rests could trade, and it all comes again."""
    both: list[list[Any]] = []
    for _ in range(2):
        exchange, told = Exchange(ExchangeSettings(seed, {"AAA": PRICE_E4}, parts, 500, "COPY")), []
        for number, (side, shares, ticks, session) in enumerate(orders):
            limit = None if ticks is None else PRICE_E4 + 100 * ticks
            told += exchange.handle(session, new(f"{session}{number}", side, shares, limit), US + number)
        both.append(told)
    assert both[0] == both[1]
    filled: dict[str, int] = defaultdict(int)
    limits = {f"{session}{n}": (side, shares, ticks) for n, (side, shares, ticks, session) in enumerate(orders)}
    for report in told:
        fields = dict(report.fields)
        if report.session == "COPY":
            assert fields[797] == "Y"
            continue
        side, shares, ticks = limits[fields[11]]
        filled[fields[11]] += int(fields.get(32, "0"))
        assert int(fields[14]) == filled[fields[11]] <= shares
        assert int(fields[151]) in (0, shares - filled[fields[11]])
        if 31 in fields and ticks is not None:
            better = PRICE_E4 + 100 * ticks - parse_price(fields[31])
            assert better >= 0 if side == "1" else better <= 0
    resting = exchange.list_open()
    assert {one.id: one.filled for one in resting}.items() <= {one.id: filled[one.id] for one in resting}.items()
    ticks_of = {side: [limits[one.id][2] or 0 for one in resting if one.side == side] for side in "12"}
    assert max(ticks_of["1"], default=-99) < min(ticks_of["2"], default=99)
    assert len([one for one in told if one.session == "COPY"]) == len([one for one in told if one.session != "COPY"])


def test_parts_add_up_to_the_fill() -> None:
    told = play(Exchange(ExchangeSettings(3, {"AAA": PRICE_E4}, partial_fills=True)), new("a", "1", 100))
    parts = [int(one[32]) for one in told if 32 in one]
    assert len(parts) > 1
    assert sum(parts) == 100


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (new("a", "1", 100, tag_55="BBB"), "1"),
        (new("a", "5", 100), "11"),
        (new("a", "1", 100, tag_40="3"), "11"),
        (new("a", "1", 100, tag_59="4"), "11"),
        (new("a", "1", 0), "99"),
        (new("a", "1", 100, tag_40="2"), "99"),
        (new("a", "1", 100, tag_44="1"), "99"),
        (new("a" * 65, "1", 100), "99"),
        (new("first", "1", 100), "6"),
    ],
)  # fmt: skip  # a table
def test_an_order_that_cannot_be_traded_is_rejected(message: FixMessage, reason: str) -> None:
    exchange = Exchange(SETTINGS)
    play(exchange, new("first", "1", 1))
    assert pick(play(exchange, message), 0, 150, 39, 103) == [("8", "8", "8", reason)]


def test_rejects_on_demand_are_a_share_of_the_orders() -> None:
    exchange = Exchange(ExchangeSettings(3, {"AAA": PRICE_E4}, rejects_bp=500))
    told = [play(exchange, new(f"o{number}", "1", 1))[0][150] for number in range(1000)]
    assert 30 <= told.count("8") <= 70


def test_cancels() -> None:
    exchange = Exchange(SETTINGS)
    play(exchange, new("rest", "1", 100, PRICE_E4 - 5000), new("done", "1", 1))
    assert pick(play(exchange, cancel("c1", "rest")), 0, 150, 39, 11, 41, 151) == [("8", "4", "4", "c1", "rest", "0")]
    assert pick(play(exchange, cancel("c2", "rest")), 0, 102, 39, 41) == [("9", "0", "4", "rest")]
    assert pick(play(exchange, cancel("c3", "done")), 0, 102, 39, 41) == [("9", "0", "2", "done")]
    assert pick(play(exchange, cancel("c4", "none")), 0, 102, 39, 41) == [("9", "1", "8", "none")]
    assert pick(play(exchange, cancel("c5", "rest"), session="OTHER"), 0, 102) == [("9", "1")]
    assert exchange.list_open() == []


def test_mass_cancels_and_a_lost_session_end_the_orders_of_one_session_alone() -> None:
    exchange = Exchange(ExchangeSettings(3))
    for name in ("a", "b"):
        play(exchange, new(name, "1", 100, 100, tag_55=name))
    play(exchange, new("x", "1", 100, 100), session="OTHER")
    assert pick(play(exchange, mass("m1", (530, "1"), (55, "a"))), 0, 531, 533, 150, 41) == [
        ("r", "1", "1", "", ""), ("8", "", "", "4", "a")
    ]  # fmt: skip  # a table
    assert pick(play(exchange, mass("m2", (530, "3"))), 0, 531, 532) == [("r", "0", "99")]
    assert pick(play(exchange, mass("m3", (530, "7"))), 0, 531, 533, 41) == [("r", "7", "1", ""), ("8", "", "", "b")]
    lost = exchange.lose("OTHER", US)
    assert [(report.session, dict(report.fields)[58]) for report in lost] == [("OTHER", "cancelled on disconnect")]
    assert exchange.lose("OTHER", US) == []


def test_a_cancel_of_the_guard_alone_reaches_the_session_that_it_names() -> None:
    exchange = Exchange(ExchangeSettings(3, guard="GUARD", mass_cancels=False))
    play(exchange, new("rest", "1", 100, 100), new("other", "1", 100, 100))
    assert pick(play(exchange, mass("m", (530, "7")), session="GUARD"), 0, 1, 531) == [("r", "GUARD", "0")]
    of_desk = (115, "DESK")
    assert pick(play(exchange, cancel("c1", "rest", of_desk), session="OTHER"), 0, 1, 102) == [("9", "OTHER", "1")]
    assert pick(play(exchange, cancel("c2", "rest"), session="GUARD"), 0, 1, 102) == [("9", "GUARD", "1")]
    told = play(exchange, cancel("c3", "rest", of_desk), session="GUARD")
    assert pick(told, 0, 1, 115, 150, 11, 41) == [
        ("8", "DESK", "", "4", "c3", "rest"), ("8", "GUARD", "DESK", "4", "c3", "rest")
    ]  # fmt: skip  # a table
    assert [order.id for order in exchange.list_open()] == ["other"]


def test_a_drop_copy_session_sends_no_orders_and_other_kinds_are_refused() -> None:
    exchange = Exchange(ExchangeSettings(3, drop_copy="COPY"))
    assert pick(play(exchange, new("a", "1", 1), session="COPY"), 0, 1, 380) == [("j", "COPY", "6")]
    assert pick(play(exchange, FixMessage("FIX.4.4", "8", HEAD)), 0, 380) == [("j", "3")]


@pytest.mark.parametrize("fault", MALFORMED_KINDS)
def test_a_malformed_message_is_malformed(fault: str) -> None:
    bad = make_malformed(fault, encode(order()))
    with pytest.raises(InvalidMessage if fault == MALFORMED_KINDS[-1] else GarbledMessage):
        decode(bad)


def test_faults_are_drawn_by_seed() -> None:
    faults = VenueFaults(1, 1000, 1000)
    drawn = [faults.choose_malformed("DESK", str(key)) for key in range(1000)]
    assert drawn == [VenueFaults(1, 1000, 1000).choose_malformed("DESK", str(key)) for key in range(1000)]
    assert {*drawn} == {"", *MALFORMED_KINDS}
    assert 70 <= sum(faults.breaks_connection("DESK", str(key)) for key in range(1000)) <= 130
    assert not any(VenueFaults(1).choose_malformed("DESK", str(key)) for key in range(100))


def test_a_report_becomes_ours() -> None:
    fields = ((11, "c"), (41, "o"), (17, "E"), (150, "F"), (31, "10.5"), (32, "7"), (12, "0.25"), (13, "3"), (60, AT))
    report = read_report(FixMessage("FIX.4.4", "8", (*HEAD, *fields)))
    assert report is not None
    assert report.record() == {
        "order": "o", "kind": "filled", "exec_id": "E", "at_us": US, "shares": 7, "price_e4": 105_000, "cost_e4": 2500,
        "reason": "",
    }  # fmt: skip  # a table
    assert read_report(FixMessage("FIX.4.4", "8", (*HEAD, (150, "I")))) is None
