"""A file of reference prices: `symbol,price` in each line of a CSV."""

from __future__ import annotations

import csv
from pathlib import Path

from ....ledger.files import read_given_text
from ..errors import FixError, InvalidMessage
from ..message import parse_price

HEADINGS = ("symbol", "price")


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
