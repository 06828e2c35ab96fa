"""Prices of the venue: a file of reference prices, or the opening prices of recorded sessions."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ....ledger.files import read_given_text
from ...orders import US_PER_SECOND
from ..errors import FixError, InvalidMessage
from ..message import parse_price

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HEADINGS = ("symbol", "price")
DAY_BEGINS_S: Final = 3 * 3600
"""A day begins so many seconds before midnight in UTC: New Zealand opens then, and New York has closed."""


class SessionOpens:
    """The opening prices of recorded sessions.

    Parameters
    ----------
    days
        Of the sessions, in their order.
    symbols
        One for each column.
    opens_e4
        Opening prices in 1e-4 `[T, N]`, 0 where there is none.
    """

    def __init__(self, days: Sequence[date], symbols: Sequence[str], opens_e4: NDArray[np.int64]) -> None:
        self._rows = {day: row for row, day in enumerate(days)}
        self._columns = {symbol: column for column, symbol in enumerate(symbols)}
        self._opens_e4 = opens_e4

    def has_symbol(self, symbol: str) -> bool:
        """Return whether a symbol is traded in any session."""
        return symbol in self._columns

    def has_session(self, at_us: int) -> bool:
        """Return whether a time, in microseconds since 1970, is on a day with a session."""
        return _find_day(at_us) in self._rows

    def find(self, symbol: str, at_us: int) -> int:
        """Return the opening price of the session to which a time belongs, in 1e-4; 0 where there is none."""
        return int(self._opens_e4[self._rows[_find_day(at_us)], self._columns[symbol]])


def _find_day(at_us: int) -> date:
    return datetime.fromtimestamp(at_us / US_PER_SECOND + DAY_BEGINS_S, UTC).date()


def read_prices(path: Path) -> dict[str, int]:
    """Return the price of each symbol in 1e-4.

    Raises
    ------
    FixError
        The columns are others, a price is no number above 0, or a symbol comes twice.
    """
    rows = list(csv.reader(read_given_text(path).splitlines()))
    if not rows or tuple(cell.strip().lower() for cell in rows[0]) != HEADINGS:
        raise _refuse(path, 1, rows[0] if rows else "an empty file", "the line symbol,price")
    prices: dict[str, int] = {}
    for line, row in enumerate(rows[1:], 2):
        if not row:
            continue
        symbol, price = row[0].strip(), _parse(row[1].strip()) if len(row) == len(HEADINGS) else 0
        if not symbol or price < 1 or symbol in prices:
            raise _refuse(path, line, row, "a symbol that comes once, and a price above 0 such as 101.25")
        prices[symbol] = price
    return prices


def _parse(text: str) -> int:
    try:
        return parse_price(text)
    except InvalidMessage:
        return 0


def _refuse(path: Path, line: int, got: object, allowed: str) -> FixError:
    return FixError(
        "The file of prices cannot be used.", field=f"{path}:{line}", got=str(got), allowed=allowed, code="fix_prices"
    )
