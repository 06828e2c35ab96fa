"""The prices of one session, at which a simulated venue fills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
