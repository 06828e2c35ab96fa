"""A broker's list of positions, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..table_file import MistakeList, parse_number_cell, parse_text_cell, read_table_file

POSITION_COLUMNS = ("symbol", "shares")
MAX_SHARES_HELD = 1e15


def read_positions(file: Path) -> dict[str, float]:
    """Return the shares of each symbol, negative for short.

    Raises
    ------
    SettingsError
        With every mistake and its line.
    DeskError
        The file is no table, or lacks a column.
    """
    mistakes = MistakeList(file)
    positions: dict[str, float] = {}
    for line, row in read_table_file(file, POSITION_COLUMNS, "FILE"):
        symbol, shares = mistakes.read(line, row, "symbol", parse_text_cell), mistakes.read(line, row, "shares", _parse)
        if symbol in positions:
            mistakes.add(line, "symbol", f"{symbol} is there twice")
        elif symbol is not None and shares is not None:
            positions[symbol] = shares
    mistakes.refuse()
    return positions


def _parse(value: Any) -> float:
    return parse_number_cell(value, -MAX_SHARES_HELD, MAX_SHARES_HELD)
