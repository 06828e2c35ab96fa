"""The rules of the order gate in the order in which they are logged, and the ruling on one order.

A rule holds if its value is known and from 0 to its limit; one without a limit holds. Every rule is evaluated, so a
ruling shows every breach.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import gt
from typing import Final, NamedTuple

from ...ledger import JSON
from ...risk import RuleCheck

PRICE_RULES: Final = ("stale_quote", "collar", "session_collar")
ORDER_SIZE_RULES: Final = ("order_value", "order_value_bp", "order_shares", "session_volume", "credit", "repeats")
DOUBLE_RULES: Final = ("duplicate_id", "duplicate", "self_trade")
PATTERN_RULES: Final = ("layering", "quote_stuffing", "marking_the_close", "stop_cascade", "wash")
STATE_RULES: Final = ("clock", "kill_switch", "trading_state", "market_hours", "restricted", "borrow")
RATE_RULES: Final = (
    "orders_rolling", "orders_calendar", "orders_day", "messages_rolling", "messages_calendar", "messages_day",
)  # fmt: skip  # a table
ORDER_RULES: Final = (*PRICE_RULES, *ORDER_SIZE_RULES, *DOUBLE_RULES, *PATTERN_RULES, *STATE_RULES, *RATE_RULES)
"""The rules of every order."""
NOT_FOR_REDUCTIONS: Final = frozenset({"session_collar", *ORDER_SIZE_RULES, "restricted", "borrow"})
"""Rules that do not refuse an order that only reduces a position: its size is bounded by the position."""
BINDS_ALL: Final = (True,) * len(ORDER_RULES)
BINDS_REDUCTIONS: Final = tuple(rule not in NOT_FOR_REDUCTIONS for rule in ORDER_RULES)
_BINDS_NONE: Final = (False,) * len(RATE_RULES)

_MONEY: Final = "1e-4 of the currency"
_OF_VOLUME: Final = "bp of the shares of a usual day"
_MESSAGES: Final = "orders and cancels"
ORDER_RULE_UNITS: Final[Mapping[str, str]] = {
    "stale_quote": "microseconds",
    "collar": "bp of the last price",
    "session_collar": "bp of the first price of the session",
    "order_value": _MONEY,
    "order_value_bp": "bp of equity",
    "order_shares": "shares",
    "session_volume": _OF_VOLUME,
    "credit": _MONEY,
    "repeats": "orders",
    "duplicate_id": "1: the id was sent before",
    "duplicate": "1: a like order was just sent",
    "self_trade": "own shares that it would cross",
    "layering": "own unfilled limit orders",
    "quote_stuffing": "own orders cancelled without a fill",
    "marking_the_close": _OF_VOLUME,
    "stop_cascade": "levels of the price",
    "wash": "own shares just traded on the other side",
    "clock": "microseconds backwards",
    "kill_switch": "1: it is on",
    "trading_state": "0 active, 1 reducing, 2 halted",
    "market_hours": "1: the market is closed",
    "restricted": "1: it is listed",
    "borrow": "shares short after it, open orders too",
    "orders_rolling": "orders in the second before it",
    "orders_calendar": "orders in this second of the clock",
    "orders_day": "orders of the day",
    "messages_rolling": f"{_MESSAGES} in the second before it",
    "messages_calendar": f"{_MESSAGES} in this second of the clock",
    "messages_day": f"{_MESSAGES} of the day",
}
"""Unit of the value of each rule."""

Values = tuple[int | None, ...]


class OrderRuling(NamedTuple):
    """What the gate says of one order, or of one cancel. It is a named tuple, which is made faster than a dataclass.

    Attributes
    ----------
    order
        Id of the child order.
    at_us
        When it was asked.
    passed
        Whether it may be sent; true of every cancel.
    reduces
        Whether it only reduces a position, even if all open orders on its side fill first.
    warnings
        Rates that have come to 60 % of their limit.
    rules, actuals, limits
        Names, values and limits of the rules, in the order in which they are logged.
    binds
        Whether a failure of each rule refuses the order.
    digest
        SHA-256 of the limits, the profile and the policy by which it was ruled.
    """

    order: str
    at_us: int
    passed: bool
    reduces: bool
    warnings: tuple[str, ...]
    rules: tuple[str, ...]
    actuals: Values
    limits: Values
    binds: tuple[bool, ...]
    digest: str

    @property
    def checks(self) -> tuple[RuleCheck, ...]:
        """Return every rule with its value and its limit."""
        return tuple(
            RuleCheck(rule, actual, limit, holds(actual, limit), binds)
            for rule, actual, limit, binds in zip(self.rules, self.actuals, self.limits, self.binds, strict=True)
        )

    @property
    def refusals(self) -> tuple[str, ...]:
        """Return the rules that refuse it."""
        return tuple(check.rule for check in self.checks if check.binds and not check.passed)

    def record(self) -> dict[str, JSON]:
        """Return the ruling as a JSON-able object: of each rule its value and its limit."""
        return {
            "order": self.order,
            "at_us": self.at_us,
            "passed": self.passed,
            "reduces": self.reduces,
            "refusals": list(self.refusals),
            "warnings": list(self.warnings),
            "rules": {check.rule: [check.actual, check.limit] for check in self.checks},
            "digest": self.digest,
        }


def holds(actual: int | None, limit: int | None) -> bool:
    """Tell whether a value is known and from 0 to its limit; always true without a limit."""
    return limit is None or (actual is not None and 0 <= actual <= limit)


def passes(actuals: Values, limits: Values, binds: tuple[bool, ...]) -> bool:
    """Tell whether every rule that binds holds."""
    return all(holds(actual, limit) or not bound for actual, limit, bound in zip(actuals, limits, binds, strict=True))


def holds_all(actuals: Values, bounds: tuple[int, ...]) -> bool:
    """Tell in one go whether every rule holds, binding or not; False says nothing, `passes` does.

    Only the first value may be negative. `bounds` are the limits with a large number for None.
    """
    try:
        return actuals[0] >= 0 and not any(map(gt, actuals, bounds))  # type: ignore[operator, arg-type]
    except TypeError:  # a value is not known
        return False


def rule_on_cancel(
    order: str, at_us: int, actuals: Values, limits: Values, warnings: tuple[str, ...], digest: str
) -> OrderRuling:
    """Return the ruling on a cancel: its rates are shown, and none blocks it."""
    return OrderRuling(order, at_us, True, True, warnings, RATE_RULES, actuals, limits, _BINDS_NONE, digest)
