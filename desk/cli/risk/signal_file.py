"""Read signals from the table that `alphaloom targets --out` writes."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..table_file import MistakeList, parse_text_cell, parse_weight_cell, read_table_file

if TYPE_CHECKING:
    from ....risk import Signal

SIGNAL_COLUMNS = ("symbol", "weight", "evidence", "valid_until")
BOUNDS = ("low", "high")
UNKNOWN_HORIZON = 1
"""Days of a signal whose file does not say them; no rule reads them."""


def read_signals(file: Path) -> list[Signal]:
    """Return the signals of a table; bounds that it lacks are the weight.

    Raises
    ------
    SettingsError
        With every mistake and its line.
    DeskError
        The file is no table, or lacks a column.
    """
    from ....risk import UNITS_PER_EQUITY, Signal

    mistakes, signals = MistakeList(file), []
    for line, row in read_table_file(file, SIGNAL_COLUMNS, "SIGNALS"):
        symbol, evidence = (mistakes.read(line, row, name, parse_text_cell) for name in ("symbol", "evidence"))
        until = mistakes.read(line, row, "valid_until", _parse_day)
        weight = mistakes.read(line, row, "weight", parse_weight_cell)
        low, high = (
            weight if row.get(name) in (None, "") else mistakes.read(line, row, name, parse_weight_cell)
            for name in BOUNDS
        )
        if None in (symbol, evidence, until, weight, low, high):
            continue
        target, lo, hi = (round(value * UNITS_PER_EQUITY) for value in (weight, low, high))
        if not lo <= target <= hi:
            mistakes.add(line, "weight", f"must lie between low {low:g} and high {high:g}, got {weight:g}")
            continue
        signals.append(Signal(symbol, target, lo, hi, UNKNOWN_HORIZON, f"read from {file.name}", evidence, until))
    mistakes.refuse()
    return signals


def _parse_day(value: Any) -> date:
    if isinstance(value, date):
        return value.date() if isinstance(value, datetime) else value
    try:
        return date.fromisoformat(value if isinstance(value, str) else "")
    except ValueError as error:
        raise ValueError("must be a day such as 2024-06-28") from error
