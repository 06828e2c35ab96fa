"""The order gate: a ruling on each order before it is sent, from whole numbers and times that are passed in.

It reads no clock and no float, and asks no model. The same orders, reports and quotes give the same rulings. A passed
order counts at once. A cancel is counted and never refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import ge
from typing import Final

from ...ledger import JSON, compute_digest
from ...risk import BP, MODES, Mode, Policy, digest_policy
from ..orders import PRICE_UNITS, US_PER_SECOND, ChildOrder, ExecutionReport, Side, refuse_unless
from .hours import MarketHours, TradingDay, make_hours
from .limits import OrderLimits
from .patterns import count_crossing, count_layers, count_stuffing, count_washed, drop_cancels, measure_levels
from .rates import NO_LIMIT, RateCounter, Rates
from .ruling import (
    BINDS_ALL,
    BINDS_REDUCTIONS,
    ORDER_RULES,
    RATE_RULES,
    OrderRuling,
    Values,
    holds_all,
    passes,
    rule_on_cancel,
)
from .state import AssetState, GateState, SideState

_US_PER_MS: Final = 1_000
_US_PER_MINUTE: Final = 60 * US_PER_SECOND
_BUY: Final = "buy"
_COUNTERS: Final = ("orders", "messages")
_KEPT_TABLES: Final = 1_000
_NO_DAY: Final = TradingDay(0, 0, ())


@dataclass(frozen=True, slots=True)
class RepeatsAllowed:
    """A person let a side of an asset trade on.

    `counted` is how many orders it had sent by then.
    """

    asset: str
    side: Side
    counted: int
    by: str
    reason: str
    at_us: int

    def record(self) -> dict[str, JSON]:
        """Return it as a JSON-able object."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class _Asked:
    """An order with what it is measured by; `unit_e4` is the worst price at which a share counts."""

    order: ChildOrder
    asset: AssetState
    own: SideState
    other: SideState
    reduces: bool
    unit_e4: int | None
    levels: tuple[int, int]


class OrderGate:
    """Rules on orders under limits and a policy.

    Parameters
    ----------
    limits
        What an order may be.
    policy
        The risk policy: its restricted symbols, those that nobody lends, and its kill switch hold here too.
    state
        The book, which the gate changes as orders pass and reports come.
    hours
        When the market is open; None: as the limits say.

    Raises
    ------
    ExecutionError
        The limits name an exchange, and its calendar is not known here.
    """

    def __init__(self, limits: OrderLimits, policy: Policy, state: GateState, hours: MarketHours | None = None) -> None:
        profile = limits.venue_profile
        self.limits = limits
        self.policy = policy
        self.state = state
        self.hours = hours or make_hours(profile, limits.calendar)
        self.orders, self.messages = RateCounter(profile.orders), RateCounter(profile.messages)
        self.digest = compute_digest(
            {
                "policy": digest_policy(policy),
                "limits": limits.model_dump(mode="json"),
                "profile": profile.model_dump(mode="json"),
            }
        )
        self._day = _NO_DAY
        self._restricted, self._unlent = frozenset(policy.restricted), frozenset(policy.not_shortable)
        self._fixed = tuple(_list_fixed(limits, state.equity_e4, reduces) for reduces in (False, True))
        self._set_tables()
        self._pattern_us, self._stuffing_us = limits.pattern_s * US_PER_SECOND, limits.stuffing_s * US_PER_SECOND

    def quote(self, asset: str, price_e4: int, at_us: int) -> None:
        """Take the last price of an asset, in 1e-4, with the time at which it was known; older ones are ignored."""
        refuse_unless(type(price_e4) is int and price_e4 > 0, "price_e4", price_e4, "a whole number above 0")
        refuse_unless(type(at_us) is int and at_us >= 0, "at_us", at_us, "microseconds since 1970")
        if at_us >= self._day.ends_us:
            self._begin_day(at_us)
        known = self.state.find(asset)
        if at_us < known.quoted_us:  # a report that comes again, or out of its order
            return
        known.quote_e4, known.quoted_us = price_e4, at_us
        if known.first_e4 is None:
            known.first_e4 = price_e4

    def check(self, order: ChildOrder, now_us: int) -> OrderRuling:
        """Rule on an order; one that passes counts at once.

        A time that lies before an earlier one is refused.
        """
        back_us = self._take_time(now_us)
        asked = self._ask(order)
        at_us = self.state.last_us
        measured = self.orders.measure(at_us, 1), self.messages.measure(at_us, 1)
        borrow, lent = self._measure_borrow(asked)
        actuals = (
            *self._measure_price(asked),
            *self._measure_size(asked),
            *self._measure_doubles(asked),
            *self._measure_patterns(asked),
            back_us,
            int(self.policy.kill_switch),
            self.state.level,
            int(not self._day.is_open(at_us)),
            int(order.asset in self._restricted),
            borrow,
            *measured[0],
            *measured[1],
        )
        self._renew_tables()
        limits, bounds = self._tables.get((asked.reduces, lent)) or self._make_table(asked.reduces, lent)
        binds = BINDS_REDUCTIONS if asked.reduces else BINDS_ALL
        passed = holds_all(actuals, bounds) or passes(actuals, limits, binds)
        near = self._list_near(measured)
        if passed:
            self._count(asked, measured)
        return OrderRuling(
            order.id, now_us, passed, asked.reduces, near, ORDER_RULES, actuals, limits, binds, self.digest
        )

    def adopt(self, order: ChildOrder, at_us: int) -> None:
        """Count an order that passed earlier, in a process that has ended; its asset must have a price.

        Raises
        ------
        ExecutionError
            It is a market order without a price by which to count it, or its id is known.
        """
        self._take_time(at_us)
        asked = self._ask(order)
        refuse_unless(asked.unit_e4 is not None, "asset", order.asset, "an asset with a price")
        refuse_unless(order.id not in self.state.orders, "id", order.id, "the id of an order that is not known yet")
        self._count(asked)

    def check_cancel(self, order_id: str, now_us: int) -> OrderRuling:
        """Count the message that cancels an order; it always passes, and its ruling shows the rates."""
        self._take_time(now_us)
        self.state.note_cancel(order_id, self.state.last_us)
        self.messages.count(self.state.last_us)
        measured = self.orders.measure(self.state.last_us, 0), self.messages.measure(self.state.last_us, 0)
        self._renew_tables()
        limits = (*self.orders.limits, *self.messages.limits)
        near = self._list_near(measured)
        return rule_on_cancel(order_id, now_us, (*measured[0], *measured[1]), limits, near, self.digest)

    def apply(self, report: ExecutionReport) -> None:
        """Take a report of the venue; one that comes twice counts once.

        Raises
        ------
        ExecutionError
            The order did not pass this gate, or the numbers of a fill are malformed.
        """
        self.state.apply(report)

    def set_mode(self, mode: Mode) -> None:
        """Set what may pass: everything, only what reduces, or nothing."""
        refuse_unless(mode in MODES, "mode", mode, ", ".join(MODES))
        self.state.level = MODES.index(mode)

    def allow_repeats(self, asset: str, side: Side, by: str, reason: str, now_us: int) -> RepeatsAllowed:
        """Let a side of an asset trade on after its repeats came to their limit; a named person decides it.

        Raises
        ------
        ExecutionError
            No name or no reason is given.
        """
        refuse_unless(bool(by.strip()), "by", by, "the name of a person")
        refuse_unless(bool(reason.strip()), "reason", reason, "why it may trade on")
        own = self.state.find(asset).own(side)
        counted, own.repeats = own.repeats, 0
        for live in own.open.values():
            live.repeats = False  # it is counted no more, so its end frees nothing
        return RepeatsAllowed(asset, side, counted, by.strip(), reason.strip(), now_us)

    def report_rates(self) -> dict[str, dict[str, int]]:
        """Return the day's orders and messages: totals, the busiest second, and seconds that were too busy."""
        return {"orders": self.orders.record(), "messages": self.messages.record()}

    def _take_time(self, now_us: int) -> int:
        """Move the time on, and return by how much it went back in place of that."""
        if type(now_us) is not int:
            refuse_unless(False, "now_us", now_us, "whole microseconds since 1970")
        state = self.state
        back_us = max(state.last_us - now_us, 0)
        state.last_us = now_us + back_us
        if state.last_us >= self._day.ends_us:
            self._begin_day(state.last_us)
        return back_us

    def _begin_day(self, at_us: int) -> None:
        self._day = self.hours.find_day(at_us)
        if self._day.ends_us != self.state.day_ends_us:
            self.state.begin_day(self._day.ends_us, self.limits.repeats_cap)
        self.orders.begin_day()
        self.messages.begin_day()

    def _ask(self, order: ChildOrder) -> _Asked:
        asset = self.state.assets.get(order.asset) or self.state.find(order.asset)
        buys = order.side == _BUY
        own, other = (asset.buys, asset.sells) if buys else (asset.sells, asset.buys)
        reduces = order.shares <= (-asset.held if buys else asset.held) - own.shares
        quote, limit = asset.quote_e4, order.limit_e4
        unit = limit if buys else None
        if unit is None and quote is not None:
            edge = quote + quote * self.limits.market_edge_bp // BP
            unit = edge if limit is None else max(limit, edge)
        levels = 0, 0
        if quote is not None:
            since_us = self.state.last_us - self._pattern_us
            levels = measure_levels(own, quote, buys, self.limits.cascade_step_bp, since_us)
        return _Asked(order, asset, own, other, reduces, unit, levels)

    def _count(self, asked: _Asked, measured: tuple[Rates, Rates] | None = None) -> None:
        """Count an order that passed, and its message; `measured` are the rates with it."""
        order, own, at_us = asked.order, asked.own, self.state.last_us
        assert asked.unit_e4 is not None
        self.state.count_sent(order, asked.unit_e4, not asked.reduces, at_us)
        own.levels, own.level_e4 = asked.levels
        own.level_us = at_us
        if self._is_near_close(at_us):
            asked.asset.sent_at_close += order.shares
        self.orders.count(at_us, measured and measured[0])
        self.messages.count(at_us, measured and measured[1])

    def _measure_price(self, asked: _Asked) -> Values:
        """Return the values of `PRICE_RULES`: a market order trades at the last price."""
        quote, first = asked.asset.quote_e4, asked.asset.first_e4
        if quote is None:
            return None, None, None
        price = asked.order.limit_e4 or quote
        session = None if first is None else _round_up(abs(price - first) * BP, first)
        return self.state.last_us - asked.asset.quoted_us, _round_up(abs(price - quote) * BP, quote), session

    def _measure_size(self, asked: _Asked) -> Values:
        """Return the values of `ORDER_SIZE_RULES`."""
        shares, state, asset = asked.order.shares, self.state, asked.asset
        traded = _round_up((asset.sent + shares) * BP, asset.usual)
        if asked.unit_e4 is None:
            return None, None, shares, traded, None, asked.own.repeats + 1
        value = shares * asked.unit_e4
        credit = state.credit_e4 + (0 if asked.reduces else value)
        return value, _round_up(value * BP, state.equity_e4), shares, traded, credit, asked.own.repeats + 1

    def _measure_doubles(self, asked: _Asked) -> Values:
        """Return the values of `DOUBLE_RULES`."""
        order, state = asked.order, self.state
        sent_us = state.sent_at.get((order.asset, order.side, order.shares, order.limit_e4))
        again = sent_us is not None and state.last_us - sent_us < self.limits.duplicate_ms * _US_PER_MS
        crossing = count_crossing(order, asked.other) if asked.other.open else 0
        return int(order.id in state.orders), int(again), crossing

    def _measure_patterns(self, asked: _Asked) -> Values:
        """Return the values of `PATTERN_RULES`."""
        order, asset, at_us = asked.order, asked.asset, self.state.last_us
        if asset.buys.cancelled or asset.sells.cancelled:
            drop_cancels(asset, at_us - max(self._pattern_us, self._stuffing_us))
        closing: int | None = 0
        if self._is_near_close(at_us):
            closing = _round_up((asset.sent_at_close + order.shares) * BP, asset.usual)
        price = order.limit_e4 or asset.quote_e4 or 0
        since_us = at_us - self._pattern_us
        return (
            count_layers(order, asked.own, asked.other, since_us),
            count_stuffing(asset, at_us - self._stuffing_us),
            closing,
            asked.levels[0],
            count_washed(asked.other, price, self.limits.wash_bp, since_us) if asked.other.fills else 0,
        )

    def _measure_borrow(self, asked: _Asked) -> tuple[int, int | None]:
        """Return the shares short after an order and all open ones of its side, and how many may be."""
        order, located = asked.order, self.state.located
        if order.side == _BUY:
            return 0, 0
        short = max(asked.own.shares + order.shares - asked.asset.held, 0)
        if order.asset in self._unlent:
            return short, 0
        return short, None if located is None else located.get(order.asset, 0)

    def _renew_tables(self) -> None:
        """Take over the limits of rates if they changed: a second was too busy, or a day began."""
        if self.orders.limits is not self._rate_limits[0] or self.messages.limits is not self._rate_limits[1]:
            self._set_tables()

    def _set_tables(self) -> None:
        """Take over the limits of rates."""
        counters = self.orders, self.messages
        self._rate_limits = self.orders.limits, self.messages.limits
        self._warns_at = (*self.orders.warns_at, *self.messages.warns_at)
        self._busy = tuple(
            f"{name}_busy_seconds" for name, one in zip(_COUNTERS, counters, strict=True) if one.is_near()
        )
        self._tables: dict[tuple[bool, int | None], tuple[Values, tuple[int, ...]]] = {}

    def _make_table(self, reduces: bool, lent: int | None) -> tuple[Values, tuple[int, ...]]:
        """Return the limits of all rules, and the same with a large number for None; kept until a rate changes."""
        limits = (*self._fixed[reduces], lent, *self.orders.limits, *self.messages.limits)
        made = limits, tuple(NO_LIMIT if one is None else one for one in limits)
        if len(self._tables) < _KEPT_TABLES:  # a list of locates may have a number for each asset
            self._tables[reduces, lent] = made
        return made

    def _list_near(self, measured: tuple[Rates, Rates]) -> tuple[str, ...]:
        """Return the rates that have come to 60 % of their limit."""
        rates = (*measured[0], *measured[1])
        if not any(map(ge, rates, self._warns_at)):
            return self._busy
        near = zip(RATE_RULES, rates, self._warns_at, strict=True)
        return (*(rule for rule, rate, warns_at in near if rate >= warns_at), *self._busy)

    def _is_near_close(self, at_us: int) -> bool:
        closes_us = self._day.closes_us
        return closes_us is not None and closes_us - self.limits.close_minutes * _US_PER_MINUTE <= at_us


def _list_fixed(limits: OrderLimits, equity_e4: int, reduces: bool) -> Values:
    """Return the limits of the rules before `borrow` in their order: those that no book and no day changes."""
    value = limits.order_value_cap
    return (
        limits.max_quote_age_s * US_PER_SECOND,
        limits.collar_bp,
        limits.session_collar_bp,
        None if value is None else value * PRICE_UNITS,
        limits.order_value_cap_bp,
        limits.order_shares_cap,
        limits.session_volume_cap_bp,
        equity_e4 * limits.credit_cap_bp // BP,
        limits.repeats_cap,
        0,
        0,
        0,
        limits.layers_cap,
        limits.stuffing_cap,
        limits.close_volume_cap_bp,
        limits.cascade_cap,
        limits.wash_cap,
        0,
        0,
        MODES.index("reducing") if reduces else MODES.index("active"),
        0,
        0,
    )


def _round_up(part: int, whole: int | None) -> int | None:
    """Return part over whole, rounded up, so that any excess over a limit counts; None without a whole."""
    return -(-part // whole) if whole else None
