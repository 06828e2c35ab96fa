"""From approved targets to whole-share orders: lots, what can be borrowed, and the equity that positions bind.

Arithmetic is on whole numbers: shares held in millionths (`_e6`), since a panel that adjusts prices makes fractions
of shares; equity and prices in 1e-4 of the currency (`_e4`); targets in 1e-8 of equity (`_e8`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from ..ledger import JSON
from ..risk import BP, UNITS_PER_EQUITY, Approved
from .orders import ParentOrder, refuse_unless

SHARE_PARTS: Final = 1_000_000
"""Parts of a share in which holdings are counted (`_e6`)."""


@dataclass(frozen=True)
class HeldShares:
    """What a book holds when its orders are made.

    Attributes
    ----------
    equity_e4
        Equity at the arrival prices, in 1e-4 of the currency.
    shares_e6
        Millionths of shares of each symbol, negative for short.
    arrival_e4
        The last known price of each symbol, in 1e-4.
    """

    equity_e4: int
    shares_e6: Mapping[str, int]
    arrival_e4: Mapping[str, int]


@dataclass(frozen=True)
class OrderTerms:
    """What orders must keep to.

    Attributes
    ----------
    lot_shares
        Shares of a lot; a position is closed to its last share all the same.
    reducing
        Symbols whose positions may only be reduced.
    not_shortable
        Symbols of which no short may grow.
    located
        Shares of each symbol that a lender has promised; None: no list was given, and only `not_shortable` binds.
    margin_long_bp, margin_short_bp
        Equity that a position binds, in basis points of its value.
    cost_bp
        Expected cost of trading, in basis points of the value.
    """

    lot_shares: int = 1
    reducing: Collection[str] = ()
    not_shortable: Collection[str] = ()
    located: Mapping[str, int] | None = None
    margin_long_bp: int = 0
    margin_short_bp: int = 0
    cost_bp: int = 0

    def __post_init__(self) -> None:
        """Refuse a lot that is none."""
        refuse_unless(type(self.lot_shares) is int and self.lot_shares > 0, "lot", self.lot_shares, "1 or more shares")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Shares of an approved target that become no order.

    Attributes
    ----------
    asset
        Symbol.
    rule
        "price": no price is known; "lot": less than a lot is missing; "borrow": nobody lends it; "locate": no lender
        has promised as many; "margin": the positions would bind more than the equity.
    shares
        Shares that are not ordered, negative of a sale; 0 where less than a share, or their number is not known.
    """

    asset: str
    rule: str
    shares: int

    def record(self) -> list[JSON]:
        """Return it as a JSON-able row."""
        return [self.asset, self.rule, self.shares]


@dataclass
class _Wish:
    """Shares of one symbol that are still to be ordered."""

    approved: Approved
    shares: int
    held_e6: int
    price_e4: int
    left_out: list[LeftOut] = field(default_factory=list)

    @property
    def asset(self) -> str:
        return self.approved.signal.asset

    @property
    def after_e6(self) -> int:
        return self.held_e6 + self.shares * SHARE_PARTS

    def cut(self, rule: str, shares: int) -> None:
        """Order so many shares fewer, without a sign."""
        dropped = min(shares, abs(self.shares)) * (1 if self.shares > 0 else -1)
        self.shares -= dropped
        self.left_out.append(LeftOut(self.asset, rule, dropped))


def size_orders(
    approved: Sequence[Approved], held: HeldShares, terms: OrderTerms, session: date
) -> tuple[tuple[ParentOrder, ...], tuple[LeftOut, ...]]:
    """Return the orders that bring a book to its approved targets, and what is left out, both by symbol.

    A target is a share of equity at the arrival price, in whole lots, rounded towards zero; what is held is subtracted,
    and the difference is rounded towards zero too.
    """
    wishes, left_out = list[_Wish](), list[LeftOut]()
    for one in sorted(approved, key=lambda each: each.signal.asset):
        asset = one.signal.asset
        price = held.arrival_e4.get(asset, 0)
        if price <= 0:
            left_out.append(LeftOut(asset, "price", 0))
            continue
        wish = _want(one, held, terms, price)
        _limit_short(wish, terms)
        wishes.append(wish)
    _limit_margin(wishes, held, terms)
    orders = [ParentOrder(wish.approved, wish.shares, wish.price_e4, session) for wish in wishes if wish.shares]
    left_out += [row for wish in wishes for row in wish.left_out]
    return tuple(orders), tuple(sorted(left_out, key=lambda row: (row.asset, row.rule)))


def _want(approved: Approved, held: HeldShares, terms: OrderTerms, price_e4: int) -> _Wish:
    """Return the shares that bring one symbol to its target."""
    asset, target_e8 = approved.signal.asset, approved.signal.target_e8
    held_e6, lot = held.shares_e6.get(asset, 0), terms.lot_shares
    size = abs(target_e8) * held.equity_e4 // (UNITS_PER_EQUITY * price_e4) // lot * lot
    wanted_e6 = (size if target_e8 > 0 else -size) * SHARE_PARTS - held_e6
    if asset in terms.reducing:
        wanted_e6 = min(max(wanted_e6, -held_e6), 0) if held_e6 >= 0 else max(min(wanted_e6, -held_e6), 0)
    shares = abs(wanted_e6) // SHARE_PARTS
    if size:  # the odd shares of a position that is closed are sold too
        shares -= shares % lot
    wish = _Wish(approved, shares if wanted_e6 > 0 else -shares, held_e6, price_e4)
    if wanted_e6 and not shares:
        wish.left_out.append(LeftOut(asset, "lot", 0))
    return wish


def _limit_short(wish: _Wish, terms: OrderTerms) -> None:
    """Cut a sale whose short would grow beyond what can be borrowed."""
    growth_e6 = max(-wish.after_e6, 0) - max(-wish.held_e6, 0)
    if growth_e6 <= 0:
        return
    lendable = 0 if wish.asset in terms.not_shortable else None
    if lendable is None and terms.located is not None:
        lendable = terms.located.get(wish.asset, 0)
    if lendable is None or growth_e6 <= lendable * SHARE_PARTS:
        return
    excess = -((lendable * SHARE_PARTS - growth_e6) // SHARE_PARTS)  # rounded up
    wish.cut("borrow" if wish.asset in terms.not_shortable else "locate", _round_up(excess, terms.lot_shares))


def _limit_margin(wishes: Sequence[_Wish], held: HeldShares, terms: OrderTerms) -> None:
    """Cut the largest increases until the positions bind no more than the equity, less the expected cost."""
    ordered = {wish.asset: wish for wish in wishes}
    symbols = {*ordered, *held.shares_e6}
    after = {name: ordered[name].after_e6 if name in ordered else held.shares_e6[name] for name in symbols}
    price = {name: ordered[name].price_e4 if name in ordered else held.arrival_e4.get(name, 0) for name in symbols}
    scale = SHARE_PARTS * BP
    bound = sum(abs(after[name]) * price[name] * _margin(after[name], terms) for name in symbols)
    cost = sum(abs(wish.shares) * SHARE_PARTS * wish.price_e4 * terms.cost_bp for wish in wishes)
    excess = bound + cost - held.equity_e4 * scale
    growing = [wish for wish in wishes if abs(wish.after_e6) > abs(wish.held_e6)]
    for wish in sorted(growing, key=lambda each: (-abs(each.shares) * each.price_e4, each.asset)):
        if excess <= 0:
            return
        freed = SHARE_PARTS * wish.price_e4 * (_margin(wish.after_e6, terms) + terms.cost_bp)
        if not freed:
            continue
        growth = (abs(wish.after_e6) - abs(wish.held_e6)) // SHARE_PARTS
        shares = min(_round_up(-(-excess // freed), terms.lot_shares), growth, abs(wish.shares))
        if shares:
            wish.cut("margin", shares)
            excess -= shares * freed


def _margin(after_e6: int, terms: OrderTerms) -> int:
    return terms.margin_long_bp if after_e6 > 0 else terms.margin_short_bp


def _round_up(shares: int, lot: int) -> int:
    return -(-shares // lot) * lot
