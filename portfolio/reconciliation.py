"""A broker's positions and cash against those of a paper book."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .paper_book import PaperAccount

BPS_PER_UNIT: Final = 1e4
CASH: Final = ""
"""The symbol of a difference in cash."""


@dataclass(frozen=True)
class PositionDifference:
    """What a broker has more of than the book, negative for less.

    Attributes
    ----------
    symbol
        The symbol, or `CASH`.
    book, broker
        Shares that each holds, or its cash.
    value
        The difference in money, at the book's last price; None for a symbol that the book has no price of.
    equity_bp
        The value in basis points of the book's equity, without sign; None where there is none.
    """

    symbol: str
    book: float
    broker: float
    value: float | None
    equity_bp: float | None

    def exceeds(self, tolerance_bp: float) -> bool:
        """Return whether the difference is larger than a tolerance; one that is not known always is."""
        return self.equity_bp is None or not self.equity_bp <= tolerance_bp  # NaN exceeds


def compare_positions(
    account: PaperAccount, positions: Mapping[str, float], cash: float | None = None
) -> list[PositionDifference]:
    """Return where a broker's shares, and its cash where that is known, differ from a book's, by symbol."""
    equity = account.equity
    found = []
    for symbol in sorted({*account.holdings, *positions}):
        held = account.holdings.get(symbol)
        own, other = held.shares if held else 0.0, positions.get(symbol, 0.0)
        if own != other:
            found.append(_measure(symbol, own, other, held.price if held else None, equity))
    if cash is not None and cash != account.cash:
        found.append(_measure(CASH, account.cash, cash, 1.0, equity))
    return found


def _measure(symbol: str, book: float, broker: float, price: float | None, equity: float) -> PositionDifference:
    value = None if price is None else (broker - book) * price
    share = None if value is None or equity <= 0 else abs(value) / equity * BPS_PER_UNIT
    return PositionDifference(symbol, book, broker, value, share)
