"""Orders as FIX messages, and ExecutionReports (35=8) as ours."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from ..orders import FINAL_REPORTS, PRICE_UNITS, ChildOrder, ExecutionReport, ReportKind
from .message import Fields, FixMessage, format_price, format_time, parse_price, parse_time

SIDE_CODES: Final = {"buy": "1", "sell": "2"}
REPORT_KINDS: Final[dict[str, ReportKind]] = {
    "0": "accepted", "F": "filled", "1": "filled", "2": "filled", "4": "cancelled", "8": "rejected", "C": "expired",
    "3": "expired", "G": "corrected", "H": "corrected",
}  # fmt: skip  # a table
"""What an ExecType means; others say nothing new of an order."""
TRADING_RESENT: Final = frozenset("Fq")
"""Kinds that a trading side sends again: a cancel is wanted later too, an order is not."""
PER_SHARE, IN_PERCENT = "1", "2"
"""CommType: what a Commission is counted by; any other is the whole amount."""
UNKNOWN_ORDER: Final = "1"
"""CxlRejReason of a venue that has no such order."""


def make_new_order(order: ChildOrder, now_us: int) -> Fields:
    """Return the body of a NewOrderSingle: a day order whose ClOrdID is the id of the child."""
    fields = [
        (11, order.id), (55, order.asset), (54, SIDE_CODES[order.side]), (60, format_time(now_us)),
        (38, str(order.shares)), (40, "2" if order.kind == "limit" else "1"),
    ]  # fmt: skip  # a table
    if order.limit_e4 is not None:
        fields.append((44, format_price(order.limit_e4)))
    return (*fields, (59, "0"))


def make_cancel(order: FixMessage, id: str, now_us: int) -> Fields:
    """Return the body of an OrderCancelRequest for a NewOrderSingle, with an id of its own."""
    same = ((55, order.get(55)), (54, order.get(54)))
    return ((41, order.get(11)), (11, id), *same, (60, format_time(now_us)), (38, order.get(38)))


def read_report(message: FixMessage) -> ExecutionReport | None:
    """Return what an ExecutionReport says of an order; None where it says nothing new."""
    known = REPORT_KINDS.get(message.get(150))
    if known is None:
        return None
    filled, silent = known == "filled", "no reason given" if known == "rejected" else ""
    reason = message.get(58, silent) if known in FINAL_REPORTS else ""
    if known == "corrected":
        reason = f"fill {message.get(19)} was {'corrected' if message.get(150) == 'G' else 'taken back'}"
    return ExecutionReport(
        order=message.get(41) or message.get(11),
        kind=known,
        exec_id=message.get(17),
        at_us=parse_time(message.get(60) or message.get(52)),
        shares=message.number(32) if filled else 0,
        price_e4=parse_price(message.get(31), 31) if filled else 0,
        cost_e4=_read_cost(message) if filled else 0,
        reason=reason,
    )


def _read_cost(message: FixMessage) -> int:
    """Return the commission of a fill in 1e-4 of the currency, rounded up: for each share, in percent, or in all."""
    text, shares = message.get(12), message.number(32)
    if not text:
        return 0
    amount = Fraction(text) * PRICE_UNITS
    if message.get(13) == PER_SHARE:
        amount *= shares
    elif message.get(13) == IN_PERCENT:
        amount = Fraction(text) / 100 * shares * parse_price(message.get(31), 31)
    return math.ceil(amount)
