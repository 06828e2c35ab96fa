"""What happens in one session: prices at which a simulated venue fills, and corporate actions that change positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ...ledger import JSON
from ..orders import refuse_unless

Levels = Sequence[tuple[int, int]]
"""Levels of one side of a book, the best first: price in 1e-4, and shares."""


@dataclass(frozen=True)
class SessionPrices:
    """The prices of one session.

    Attributes
    ----------
    open_us, close_us
        When it opens and closes, microseconds since 1970 in UTC.
    rows
        By symbol: open, high, low and close in 1e-4 of the currency, and shares traded. A symbol that does not trade
        has no row.
    books
        By symbol: bids and offers at the open. Only a venue with depth takes them, and there a symbol without a book
        cannot be traded.
    """

    open_us: int
    close_us: int
    rows: Mapping[str, tuple[int, int, int, int, int]]
    books: Mapping[str, tuple[Levels, Levels]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse prices that cannot be."""
        refuse_unless(0 <= self.open_us < self.close_us - 1, "close_us", self.close_us, "later than open_us")
        for asset, (start, high, low, close, shares) in self.rows.items():
            fine = 0 < low <= min(start, close) and max(start, close) <= high and shares >= 0
            refuse_unless(fine, "rows", [asset, start, high, low, close, shares], "0 < low <= open, close <= high")

    def record(self) -> dict[str, JSON]:
        """Return the session as a JSON-able object."""
        return {
            "open_us": self.open_us,
            "close_us": self.close_us,
            "rows": [[asset, *row] for asset, row in sorted(self.rows.items())],
            "books": {asset: [[list(level) for level in side] for side in book] for asset, book in self.books.items()},
        }


@dataclass(frozen=True, slots=True)
class PositionEvent:
    """A corporate action before the open of a session.

    Attributes
    ----------
    asset
        Symbol.
    kind
        "split" (also a consolidation) or "delisting".
    price_e4
        Of a split the price after it, in 1e-4, at which a fraction of a share is paid out; of a delisting the price
        that is paid for each share, 0 where it is worthless.
    new_shares, old_shares
        Of a split: so many new shares for so many old ones.
    """

    asset: str
    kind: Literal["split", "delisting"]
    price_e4: int
    new_shares: int = 1
    old_shares: int = 1

    def __post_init__(self) -> None:
        """Refuse a malformed event."""
        refuse_unless(self.kind in ("split", "delisting"), "kind", self.kind, "split, delisting")
        refuse_unless(type(self.price_e4) is int and self.price_e4 >= 0, "price_e4", self.price_e4, "at least 0")
        for name, value in (("new_shares", self.new_shares), ("old_shares", self.old_shares)):
            refuse_unless(type(value) is int and value > 0, name, value, "above 0")

    def apply(self, shares: int) -> tuple[int, int]:
        """Return the shares after the event, and the cash that it pays in 1e-4, negative of a short position.

        Whole shares stay, towards zero. The cash for a fraction is rounded towards zero.
        """
        if self.kind == "delisting":
            return 0, shares * self.price_e4
        sign = 1 if shares >= 0 else -1
        whole, rest = divmod(abs(shares) * self.new_shares, self.old_shares)
        return sign * whole, sign * (rest * self.price_e4 // self.old_shares)
