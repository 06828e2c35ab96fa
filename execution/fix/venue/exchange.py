"""The exchange behind the acceptor: orders in, reports out, the same for the same inputs and seed.

It has no clock, no file and no socket. An acceptor that keeps its inputs in their order gets the same reports from a
new exchange after a crash.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...orders import PRICE_UNITS, Side
from ..errors import InvalidMessage
from ..message import Fields, FixMessage, format_price, format_time, parse_price, parse_time
from .order_book import TICK_E4, OrderBook, RestingOrder, draw, make_depth
from .prices import SessionOpens

BASIS: Final = 10_000
SYMBOL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.^_-]{0,15}")
LOWEST_PRICE, PRICE_SPAN = 10, 190
"""Units of the currency: the price of a symbol without one in a file is drawn from 10 to 199."""
MOST_FILL_PARTS: Final = 4
SIDES_BY_CODE: Final[dict[str, Side]] = {"1": "buy", "2": "sell"}
LONGEST_ID: Final = 64
REPORT_LOST, COPY_LOST, COPY_WRONG = COPY_FAULTS = (
    "the report is lost",
    "the copy is lost",
    "the copy has another price",
)

# OrdRejReason (tag 103) and CxlRejReason (tag 102)
UNKNOWN_SYMBOL, DUPLICATE_ORDER, UNSUPPORTED, OTHER_REASON = "1", "6", "11", "99"
TOO_LATE, NO_SUCH_ORDER = "0", "1"


@dataclass(frozen=True, slots=True)
class ExchangeSettings:
    """How the exchange answers.

    Attributes
    ----------
    seed
        Of depth, prices, parts and rejects.
    prices_e4
        Reference price of each symbol that is traded, in 1e-4; None: any symbol, at a price that is drawn.
    partial_fills
        Whether fills come in two to four parts.
    rejects_bp
        Share of the orders that are rejected on demand, in 1e-4.
    drop_copy
        Session that gets a copy of every report; empty: none.
    guard
        Session that gets such copies too, and whose cancels reach the orders of all sessions: a mass cancel those of
        all, another one that of the session in OnBehalfOfCompID; empty: none.
    mass_cancels
        Whether mass cancels are served; else they are rejected.
    opens
        Opening prices at which orders are filled, each in the session of its TransactTime, which is also the time of
        its reports: the venue has no depth then. None: the order book.
    wrong_copies_bp
        Share of the orders, in 1e-4, of whose fills a report to the client or a drop copy is lost or wrong on demand.
    """

    seed: int
    prices_e4: Mapping[str, int] | None = None
    partial_fills: bool = False
    rejects_bp: int = 0
    drop_copy: str = ""
    guard: str = ""
    mass_cancels: bool = True
    opens: SessionOpens | None = None
    wrong_copies_bp: int = 0


@dataclass(frozen=True, slots=True)
class VenueReport:
    """A message for a session; `key` counts those of the session, so that each is handed over once."""

    session: str
    key: str
    kind: str
    fields: Fields


@dataclass(slots=True)
class VenueOrder:
    """An order that the exchange accepted."""

    session: str
    id: str
    number: str
    symbol: str
    side: str
    shares: int
    filled: int = 0
    money_e4: int = 0
    open: bool = True

    @property
    def left(self) -> int:
        """Return the shares that are still open."""
        return self.shares - self.filled if self.open else 0


class Exchange:
    """Books, orders and reports of a simulated venue.

    Parameters
    ----------
    settings
        How it answers.
    """

    def __init__(self, settings: ExchangeSettings) -> None:
        self.settings = settings
        self._books: dict[str, OrderBook] = {}
        self._orders: dict[tuple[str, str], VenueOrder] = {}
        self._by_number: dict[str, VenueOrder] = {}
        self._open: dict[str, dict[str, VenueOrder]] = {}
        self._counts: Counter[str] = Counter()
        self._reports: list[VenueReport] = []

    def handle(self, session: str, message: FixMessage, at_us: int) -> list[VenueReport]:
        """Return the reports that an application message causes, of all sessions."""
        self._reports = []
        if self.settings.opens is not None:
            at_us = _read_time(message)
        if session == self.settings.drop_copy or (session == self.settings.guard and message.kind == "D"):
            self._refuse(session, message, "6", "a session for copies sends no orders")
        elif message.kind == "D":
            self._take_order(session, message, at_us)
        elif message.kind == "F":
            self._take_cancel(session, message, at_us)
        elif message.kind == "q":
            self._take_mass_cancel(session, message, at_us)
        elif message.kind not in ("3", "j"):
            self._refuse(session, message, "3", "this venue takes orders and cancels")
        return self._reports

    def lose(self, session: str, at_us: int) -> list[VenueReport]:
        """Cancel the open orders of a session that is gone, and return the reports."""
        self._reports = []
        for order in list(self._open.get(session, {}).values()):
            self._cancel(order, at_us, (), "cancelled on disconnect")
        return self._reports

    def list_open(self) -> list[VenueOrder]:
        """Return the open orders of all sessions, the oldest first."""
        return [order for order in self._by_number.values() if order.open]

    # Orders.

    def _take_order(self, session: str, message: FixMessage, at_us: int) -> None:
        problem = self._find_problem(session, message, at_us)
        if problem is not None:
            self._reject(session, message, at_us, problem)
            return
        side = SIDES_BY_CODE[message.get(54)]
        order = VenueOrder(
            session, message.get(11), self._count("O"), message.get(55), message.get(54), message.number(38)
        )
        self._orders[session, order.id] = self._by_number[order.number] = order
        self._open.setdefault(session, {})[order.id] = order
        self._tell(order, at_us, "0", ())
        limit = parse_price(message.get(44)) if message.get(40) == "2" else None
        if self.settings.opens is not None:
            self._trade_at_open(order, limit, self.settings.opens.find(order.symbol, at_us), at_us)
            return
        book = self._find_book(order.symbol)
        book.refill()
        for fill in book.match(side, order.shares, limit):
            for shares in self._split(order, fill.shares):
                self._fill(order, shares, fill.price_e4, at_us)
                if not fill.resting.synthetic:
                    self._fill(self._by_number[fill.resting.id], shares, fill.price_e4, at_us)
        if order.left and (limit is None or message.get(59) == "3"):
            self._expire(order, at_us, "nothing more to trade with")
        elif order.left and limit is not None:
            book.rest(RestingOrder(order.number, side, limit, order.left, False))

    def _trade_at_open(self, order: VenueOrder, limit: int | None, price_e4: int, at_us: int) -> None:
        """Fill an order wholly at the opening price, or let it expire where there is none or the limit is better."""
        sign = 1 if SIDES_BY_CODE[order.side] == "buy" else -1
        if not price_e4:
            self._expire(order, at_us, "no opening price")
        elif limit is not None and (price_e4 - limit) * sign > 0:
            self._expire(order, at_us, "the opening price is worse than the limit")
        else:
            for shares in self._split(order, order.shares):
                self._fill(order, shares, price_e4, at_us)

    def _expire(self, order: VenueOrder, at_us: int, why: str) -> None:
        order.open = False
        self._forget(order)
        self._tell(order, at_us, "C", ((58, why),))

    def _find_problem(self, session: str, message: FixMessage, at_us: int) -> tuple[str, str] | None:
        """Return OrdRejReason and text of an order that is refused."""
        order, symbol, kind = message.get(11), message.get(55), message.get(40)
        prices, opens, limit = self.settings.prices_e4, self.settings.opens, message.get(44)
        if (session, order) in self._orders:
            return DUPLICATE_ORDER, "ClOrdID was used before"
        if SYMBOL.fullmatch(symbol) is None or (prices is not None and symbol not in prices):
            return UNKNOWN_SYMBOL, "unknown symbol"
        if opens is not None and not opens.has_symbol(symbol):
            return UNKNOWN_SYMBOL, "unknown symbol"
        if opens is not None and not opens.has_session(at_us):
            return OTHER_REASON, "no session on the day of TransactTime"
        if kind not in ("1", "2") or message.get(54) not in SIDES_BY_CODE:
            return UNSUPPORTED, "market and limit orders to buy or sell are supported"
        if message.get(59, "0") not in ("0", "1", "3"):
            return UNSUPPORTED, "day, good till cancel, and immediate or cancel are supported"
        if message.number(38) < 1 or (kind == "2") != bool(limit) or (limit and parse_price(limit) < 1):
            return OTHER_REASON, "a whole number of shares, and a price above 0 of a limit order alone"
        if len(order) > LONGEST_ID:
            return OTHER_REASON, f"ClOrdID has more than {LONGEST_ID} characters"
        if draw(self.settings.seed, "reject", session, order) % BASIS < self.settings.rejects_bp:
            return OTHER_REASON, "rejected on demand"
        return None

    def _find_book(self, symbol: str) -> OrderBook:
        book = self._books.get(symbol)
        if book is None:
            prices, seed = self.settings.prices_e4, self.settings.seed
            drawn = (LOWEST_PRICE + draw(seed, "price", symbol) % PRICE_SPAN) * PRICE_UNITS
            book = OrderBook(make_depth(symbol, drawn if prices is None else prices[symbol], seed))
            self._books[symbol] = book
        return book

    def _split(self, order: VenueOrder, shares: int) -> list[int]:
        """Return the parts in which a fill comes."""
        if not self.settings.partial_fills:
            return [shares]
        parts = min(2 + draw(self.settings.seed, "parts", order.session, order.id) % (MOST_FILL_PARTS - 1), shares)
        each, rest = divmod(shares, parts)
        return [each + (part < rest) for part in range(parts)]

    def _fill(self, order: VenueOrder, shares: int, price_e4: int, at_us: int) -> None:
        order.filled += shares
        order.money_e4 += shares * price_e4
        if order.filled == order.shares:
            order.open = False
            self._forget(order)
        self._tell(order, at_us, "F", ((31, format_price(price_e4)), (32, str(shares))))

    def _forget(self, order: VenueOrder) -> None:
        self._open[order.session].pop(order.id, None)

    # Cancels.

    def _take_cancel(self, session: str, message: FixMessage, at_us: int) -> None:
        owner = message.get(115) if session == self.settings.guard else session
        order = self._orders.get((owner, message.get(41)))
        if order is not None and order.open:
            self._cancel(order, at_us, ((11, message.get(11)), (41, order.id)), "")
            return
        reason, status = (NO_SUCH_ORDER, "8") if order is None else (TOO_LATE, self._find_status(order))
        fields = (
            (37, order.number if order else "NONE"), (11, message.get(11)), (41, message.get(41)), (39, status),
            (434, "1"), (102, reason), (60, format_time(at_us)),
        )  # fmt: skip  # a table
        self._add(session, "9", fields)

    def _take_mass_cancel(self, session: str, message: FixMessage, at_us: int) -> None:
        scope, symbol = message.get(530), message.get(55)
        supported = self.settings.mass_cancels and (scope == "7" or (scope == "1" and bool(symbol)))
        sessions = sorted(self._open) if session == self.settings.guard else [session]
        orders = [order for name in sessions for order in self._open.get(name, {}).values()] if supported else []
        if scope == "1":
            orders = [order for order in orders if order.symbol == symbol]
        fields = [
            (37, self._count("M")), (11, message.get(11)), (530, scope), (531, scope if supported else "0"),
            (533, str(len(orders))), (60, format_time(at_us)),
        ]  # fmt: skip  # a table
        if not supported:
            fields.insert(4, (532, OTHER_REASON))
        self._add(session, "r", tuple(fields))
        for order in orders:
            self._cancel(order, at_us, ((11, message.get(11)), (41, order.id)), "")

    def _cancel(self, order: VenueOrder, at_us: int, ids: Fields, text: str) -> None:
        order.open = False
        self._forget(order)
        self._books[order.symbol].remove(order.number)
        self._tell(order, at_us, "4", (*ids, *(((58, text),) if text else ())))

    # Reports.

    def _count(self, kind: str) -> str:
        self._counts[kind] += 1
        return f"{kind}{self._counts[kind]}"

    def _add(self, session: str, kind: str, fields: Fields) -> None:
        self._reports.append(VenueReport(session, self._count(f"{session}/"), kind, fields))

    @staticmethod
    def _find_status(order: VenueOrder, exec_type: str = "") -> str:
        """Return OrdStatus."""
        if exec_type in ("4", "8", "C"):
            return exec_type
        if order.filled == order.shares:
            return "2"
        return ("1" if order.filled else "0") if order.open else "4"

    def _tell(self, order: VenueOrder, at_us: int, exec_type: str, extra: Fields) -> None:
        """Add an ExecutionReport of an order."""
        average = (order.money_e4 + order.filled // 2) // order.filled if order.filled else 0
        ids = tuple(pair for pair in extra if pair[0] in (11, 41)) or ((11, order.id),)
        fields = (
            (37, order.number), *ids, (17, self._count("E")), (150, exec_type),
            (39, self._find_status(order, exec_type)), (55, order.symbol), (54, order.side), (38, str(order.shares)),
            *(pair for pair in extra if pair[0] in (31, 32)), (151, str(order.left)), (14, str(order.filled)),
            (6, format_price(average)), (60, format_time(at_us)), *(pair for pair in extra if pair[0] == 58),
        )  # fmt: skip  # a table
        self._report(order.session, fields)

    def _reject(self, session: str, message: FixMessage, at_us: int, problem: tuple[str, str]) -> None:
        """Add the ExecutionReport of an order that is refused."""
        reason, text = problem
        fields = (
            (37, "NONE"), (11, message.get(11)), (17, self._count("E")), (150, "8"), (39, "8"), (103, reason),
            (55, message.get(55)), (54, message.get(54)), (38, message.get(38)), (151, "0"), (14, "0"), (6, "0"),
            (60, format_time(at_us)), (58, text),
        )  # fmt: skip  # a table
        self._report(session, fields)

    def _report(self, session: str, fields: Fields) -> None:
        fault = self._choose_fault(session, dict(fields))
        if fault != REPORT_LOST:
            self._add(session, "8", fields)
        for copy in filter(None, (self.settings.drop_copy, self.settings.guard)):
            told = fields
            if copy == self.settings.drop_copy and fault == COPY_LOST:
                continue
            if copy == self.settings.drop_copy and fault == COPY_WRONG:
                told = tuple(
                    (tag, format_price(parse_price(text) + TICK_E4) if tag == 31 else text) for tag, text in fields
                )
            self._add(copy, "8", ((115, session), *told, (797, "Y")))

    def _choose_fault(self, session: str, fields: Mapping[int, str]) -> str:
        """Return what goes wrong with a report of a fill and its copy; empty for nothing."""
        seed, order = self.settings.seed, fields[11]
        if fields[150] != "F" or draw(seed, "copy", session, order) % BASIS >= self.settings.wrong_copies_bp:
            return ""
        return COPY_FAULTS[draw(seed, "fault", session, order) % len(COPY_FAULTS)]

    def _refuse(self, session: str, message: FixMessage, reason: str, text: str) -> None:
        fields = ((45, str(message.seq)), (372, message.kind), (380, reason), (58, text))
        self._add(session, "j", fields)


def _read_time(message: FixMessage) -> int:
    """Return the TransactTime of a message; 0, which is no session, where it has none or it is in no calendar."""
    try:
        return parse_time(message.get(60), 60)
    except InvalidMessage:
        return 0
