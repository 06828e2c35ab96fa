"""A broker's list of positions, as a CSV file."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

from ...errors import DeskError

POSITION_COLUMNS = ("symbol", "shares")


def read_positions(file: Path) -> dict[str, float]:
    """Return the shares of each symbol, negative for short; every mistake of the file names its line."""
    from ....ledger.files import read_given_text

    try:
        rows = list(csv.DictReader(io.StringIO(read_given_text(file, "utf-8-sig"), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise _error(file, str(error)[:100], "CSV in UTF-8 with the columns symbol and shares") from error
    if rows and [list(rows[0]).count(name) for name in POSITION_COLUMNS] != [1, 1]:
        raise _error(file, list(rows[0]), "the columns symbol and shares")
    positions: dict[str, float] = {}
    for line, row in enumerate(rows, 2):
        shares = _parse(row["shares"])
        if shares is None or not row["symbol"] or row["symbol"] in positions:
            allowed = "a symbol, each once, and its shares such as -120"
            raise _error(file, f"line {line}: {row['symbol']!r}, {row['shares']!r}", allowed)
        positions[row["symbol"]] = shares
    return positions


def _parse(text: str | None) -> float | None:
    try:
        shares = float(text or "")
    except ValueError:
        return None
    return shares if math.isfinite(shares) else None


def _error(file: Path, got: object, allowed: str) -> DeskError:
    return DeskError(f"{file} cannot be read as positions.", field="FILE", got=got, allowed=allowed, code="positions")
