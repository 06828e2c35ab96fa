"""Shares and cash of an account, counted from fills and corporate actions: the same count beside every venue."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from .orders import ChildOrder, ExecutionReport, refuse_unless

PositionEventKind = Literal["split", "rename", "cash", "delisting"]


@dataclass(frozen=True, slots=True)
class PositionEvent:
    """A corporate action before the open of a session.

    Attributes
    ----------
    asset
        Symbol.
    kind
        "split" (also a consolidation), "rename", "cash" (a dividend), or "delisting".
    price_e4
        In 1e-4. Of a split the price after it, at which a fraction of a share is paid out; of a dividend what each
        share gets, which a short position pays; of a delisting the price that is paid for each share, 0 where it is
        worthless; of a renaming 0.
    new_shares, old_shares
        Of a split: so many new shares for so many old ones.
    to
        Of a renaming: the new symbol.
    """

    asset: str
    kind: PositionEventKind
    price_e4: int = 0
    new_shares: int = 1
    old_shares: int = 1
    to: str = ""

    def __post_init__(self) -> None:
        """Refuse a malformed event."""
        refuse_unless(self.kind in ("split", "rename", "cash", "delisting"), "kind", self.kind, "a corporate action")
        refuse_unless(type(self.price_e4) is int and self.price_e4 >= 0, "price_e4", self.price_e4, "at least 0")
        for name, value in (("new_shares", self.new_shares), ("old_shares", self.old_shares)):
            refuse_unless(type(value) is int and value > 0, name, value, "above 0")
        named = self.to not in ("", self.asset) if self.kind == "rename" else not self.to
        refuse_unless(named, "to", self.to, "another symbol of a renaming, nothing of other events")

    def apply(self, shares: int) -> tuple[int, int]:
        """Return the shares after the event, and the cash that it pays in 1e-4, negative of a short position.

        Whole shares stay, towards zero. The cash for a fraction is rounded towards zero.
        """
        if self.kind == "delisting":
            return 0, shares * self.price_e4
        if self.kind != "split":
            return shares, shares * self.price_e4
        sign = 1 if shares >= 0 else -1
        whole, rest = divmod(abs(shares) * self.new_shares, self.old_shares)
        return sign * whole, sign * (rest * self.price_e4 // self.old_shares)


class PositionCount:
    """Shares by symbol and cash of an account.

    Attributes
    ----------
    shares : Counter of str
        Whole shares, negative where short.
    cash_e4 : int
        In 1e-4 of the currency.

    Parameters
    ----------
    cash_e4
        Cash at the start.
    """

    def __init__(self, cash_e4: int) -> None:
        self.shares: Counter[str] = Counter()
        self.cash_e4 = cash_e4

    def apply(self, event: PositionEvent) -> None:
        """Take in a corporate action."""
        after, paid_e4 = event.apply(self.shares.pop(event.asset, 0))
        self.shares[event.to or event.asset] += after
        self.cash_e4 += paid_e4

    def take(self, order: ChildOrder, report: ExecutionReport) -> None:
        """Take in a report of an order; one that is no fill changes nothing."""
        sign = 1 if order.side == "buy" else -1
        self.shares[order.asset] += sign * report.shares
        self.cash_e4 -= sign * report.shares * report.price_e4 + report.cost_e4

    def list_held(self) -> dict[str, int]:
        """Return the positions without zeros."""
        return {asset: shares for asset, shares in self.shares.items() if shares}
