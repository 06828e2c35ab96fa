"""Orders and what a venue reports of them: whole shares, prices in 1e-4 of the currency (`_e4`), UTC in microseconds.

An order begins as an `Approved` of the risk gate: nothing else can become a `ParentOrder`. A parent is cut into child
orders by a schedule (`execution/schedule`). Each child passes the order gate (`execution/gate`) before it goes to a
venue.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal, Protocol, get_args

from ..ledger import JSON
from ..risk import Approved
from .errors import ExecutionError

Side = Literal["buy", "sell"]
OrderKind = Literal["market", "limit"]
ReportKind = Literal["accepted", "filled", "cancelled", "rejected", "expired", "corrected"]
SIDES: Final[tuple[str, ...]] = get_args(Side)
FINAL_REPORTS: Final = frozenset({"cancelled", "rejected", "expired"})
"""Reports after which no share of an order can be filled any more; a complete fill is the other end."""
PRICE_UNITS: Final = 10_000
"""Units of a price in one unit of the currency."""
US_PER_SECOND: Final = 1_000_000
ID_CHARS: Final = 12


@dataclass(frozen=True, slots=True)
class ParentOrder:
    """What an approved target asks for in one session.

    Attributes
    ----------
    approved
        The signal that the risk gate let pass.
    shares
        Whole shares to buy, negative to sell; not 0.
    arrival_e4
        Price that was known when the order was made, in 1e-4: slippage is counted from it.
    session
        The day on which it may be traded.

    Raises
    ------
    ExecutionError
        `approved` was not made by the risk gate, or a number is out of its range.
    """

    approved: Approved
    shares: int
    arrival_e4: int
    session: date

    def __post_init__(self) -> None:
        """Refuse whatever is not an `Approved`, and malformed numbers."""
        if type(self.approved) is not Approved:
            raise ExecutionError(
                "Only what the risk gate approved may become an order.",
                field="approved",
                got=type(self.approved).__name__,
                allowed="an Approved of risk.decide",
                hint="Ask risk.decide, and pass on what it approves.",
                code="not_approved",
                exit_code=1,
            )
        refuse_unless(type(self.shares) is int and self.shares != 0, "shares", self.shares, "a whole number, not 0")
        refuse_unless(type(self.arrival_e4) is int and self.arrival_e4 > 0, "arrival_e4", self.arrival_e4, "above 0")
        refuse_unless(type(self.session) is date, "session", self.session, "a date")

    @property
    def asset(self) -> str:
        """Return the symbol."""
        return self.approved.signal.asset

    @property
    def side(self) -> Side:
        """Return whether it buys or sells."""
        return "buy" if self.shares > 0 else "sell"

    @property
    def id(self) -> str:
        """Return its id: of the decision, the symbol and the session, so the same decision never makes a second one."""
        text = f"{self.approved.decision}\n{self.asset}\n{self.session.isoformat()}"
        return hashlib.sha256(text.encode()).hexdigest()[:ID_CHARS]


@dataclass(frozen=True, slots=True)
class ChildOrder:
    """One order for a venue: a slice of a parent.

    Attributes
    ----------
    id
        The parent's id and the number of the slice, `0f3a2b1c4d5e-3`; the client order id at the venue.
    parent
        Id of the parent.
    asset
        Symbol.
    side
        "buy" or "sell".
    shares
        Whole shares, above 0.
    kind
        "market" or "limit".
    limit_e4
        Worst price of a limit order, in 1e-4; None of a market order.
    at_us
        When it is due, microseconds since 1970 in UTC.
    """

    id: str
    parent: str
    asset: str
    side: Side
    shares: int
    kind: OrderKind
    limit_e4: int | None
    at_us: int

    def __post_init__(self) -> None:
        """Refuse a malformed order."""
        refuse_unless(self.side in SIDES, "side", self.side, ", ".join(SIDES))
        refuse_unless(type(self.shares) is int and self.shares > 0, "shares", self.shares, "a whole number above 0")
        limited = type(self.limit_e4) is int and self.limit_e4 > 0
        fine = limited if self.kind == "limit" else self.kind == "market" and self.limit_e4 is None
        refuse_unless(fine, "limit_e4", self.limit_e4, "a price above 0 of a limit order, None of a market order")
        refuse_unless(type(self.at_us) is int and self.at_us >= 0, "at_us", self.at_us, "microseconds since 1970")

    @property
    def signed_shares(self) -> int:
        """Return the shares, negative where it sells."""
        return self.shares if self.side == "buy" else -self.shares

    def record(self) -> dict[str, JSON]:
        """Return the order as a JSON-able object."""
        return {name: getattr(self, name) for name in CHILD_FIELDS}


CHILD_FIELDS: Final = ("id", "parent", "asset", "side", "shares", "kind", "limit_e4", "at_us")


@dataclass(frozen=True, slots=True)
class ExecutionReport:
    """What a venue says of one order.

    Attributes
    ----------
    order
        Id of the child order.
    kind
        "accepted", "filled" (wholly or in part), "cancelled", "rejected", "expired", or "corrected": the venue changed
        a fill or took it back, which nothing here undoes.
    exec_id
        The venue's id of this report: one that comes twice counts once.
    at_us
        When, microseconds since 1970 in UTC.
    shares, price_e4
        Of a fill: its shares, and its price in 1e-4; 0 of other reports.
    cost_e4
        Of a fill: commissions and fees, in 1e-4 of the currency.
    reason
        What the venue says of an order that ended without a fill, and which fill it corrected; else empty.
    """

    order: str
    kind: ReportKind
    exec_id: str
    at_us: int
    shares: int = 0
    price_e4: int = 0
    cost_e4: int = 0
    reason: str = ""

    def record(self) -> dict[str, JSON]:
        """Return the report as a JSON-able object."""
        return {name: getattr(self, name) for name in REPORT_FIELDS}


REPORT_FIELDS: Final = ("order", "kind", "exec_id", "at_us", "shares", "price_e4", "cost_e4", "reason")


class Venue(Protocol):
    """Where orders go: the paper venue, an execution engine, or a broker over FIX.

    Calls are made from one thread. Reports come in the order in which the venue made them. `read_reports` waits for at
    most `timeout_s` seconds, and returns at once where there is something to return or nothing can come.
    """

    name: str

    def send(self, orders: Sequence[ChildOrder]) -> None:
        """Send orders that the order gate let pass."""
        ...

    def cancel(self, ids: Sequence[str]) -> None:
        """Ask for the end of orders; what was filled before stays filled."""
        ...

    def read_reports(self, timeout_s: float) -> Sequence[ExecutionReport]:
        """Return what the venue said since the last call, the oldest first."""
        ...

    def close(self) -> None:
        """End the session."""
        ...


def refuse_unless(fine: bool, field: str, got: object, allowed: str) -> None:
    """Raise an error that names a field of an order and what it may be."""
    if not fine:
        raise ExecutionError("An order is malformed.", field=field, got=got, allowed=allowed, code="order")
