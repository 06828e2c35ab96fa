"""The sector of each name, from its own small file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .errors import Finding
from .files.audit import Prices
from .files.cells import read_words
from .files.findings import Audit
from .files.table import Table, missing_columns, read_table

INDUSTRY_COLUMNS = ("industry", "sub_industry")
NO_ROW_SECTOR = "unknown"
"""Group of the symbols that the file has no row for."""


def read_sectors(path: Path, prices: Prices, audit: Audit) -> tuple[dict[str, list[str]], tuple[str, ...]]:
    """Return the labels of every grouping, in the order of the prices' symbols, and notes.

    An empty cell is no group. Symbols without a row form a group of their own; if that is all of them, it is the wrong file.
    """
    table = read_table(path)
    own = Audit(table.row_numbers)
    own.add(*table.clashes, *missing_columns(table, ("symbol", "sector")))
    own.add_broken(table.broken)
    labels: dict[str, list[str]] = {}
    notes: list[str] = []
    if table.rows and "symbol" in table.columns:
        rows = symbol_rows(table, own)
        notes += _note_missing_rows(path, prices, rows, own)
        labels = {name: column_labels(table, column, prices, rows) for name, column in groupings(table).items()}
    audit.add(*(Finding(f.row, f"{path.name} {f.column}".strip(), f.message) for f in own.findings))
    notes += [
        f"{name}: {blank} of {len(words)} names have none"
        for name, words in labels.items()
        if (blank := sum(not word for word in words))
    ]
    return labels, tuple(notes)


def groupings(table: Table) -> dict[str, str]:
    """Return the column of each grouping that the file has."""
    found = {"sector": "sector"} if "sector" in table.columns else {}
    industry = [name for name in INDUSTRY_COLUMNS if name in table.columns]
    return found | ({"industry": industry[0]} if industry else {})


def symbol_rows(table: Table, audit: Audit) -> dict[str, int]:
    """Return the first row of each symbol; a symbol with two rows is a finding."""
    codes, words = read_words(table, "symbol", audit)
    _, first = np.unique(codes[codes >= 0], return_index=True)
    rows = dict(zip(words, np.flatnonzero(codes >= 0)[first].tolist(), strict=True))
    again = np.array(
        [row for row, code in enumerate(codes.tolist()) if code >= 0 and rows[words[code]] != row], np.intp
    )
    audit.add_rows("symbol", again, lambda row: f"{words[codes[row]]!r} is there twice")
    return rows


def _note_missing_rows(path: Path, prices: Prices, rows: dict[str, int], audit: Audit) -> list[str]:
    """Return a note on the symbols of the prices that have no row; none of them having one is a finding."""
    absent = [symbol for symbol in prices.symbols if symbol not in rows]
    if rows and absent and len(absent) == len(prices.symbols):
        said = f"none of the prices' {len(absent)} symbols has a row here, such as {absent[0]!r}; it begins with {next(iter(rows))!r}"
        audit.add(Finding(0, "symbol", said))
    if not absent:
        return []
    share = f"{len(absent)} of {len(prices.symbols)} symbols ({100 * len(absent) / len(prices.symbols):.1f} %)"
    return [f"{path.name}: no row for {share}: they form a group of their own, '{NO_ROW_SECTOR}'"]


def column_labels(table: Table, column: str, prices: Prices, rows: dict[str, int]) -> list[str]:
    """Return the label of every symbol of the prices, empty where its cell is, "unknown" where it has no row."""
    words = [str(word).strip() if word is not None else "" for word in table.columns[column].to_pylist()]
    return [words[rows[symbol]] if symbol in rows else NO_ROW_SECTOR for symbol in prices.symbols]
