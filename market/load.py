"""Load a panel from files of prices and sectors; all mistakes are reported at once, before any work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .actions import read_actions
from .beside.fundamentals import add_fundamentals, read_fundamentals, take_known_columns
from .beside.membership import read_membership_file
from .beside.symbol_changes import SymbolChanges, read_symbol_changes
from .calendar import check_sessions
from .derive import check_derivations, derive_fields
from .errors import Audit, Finding, PanelError
from .forms.folder import read_folder
from .forms.layout import TIDY, find_layout
from .forms.wide import read_wide
from .panel import Panel, compute_simple_returns, encode_labels
from .point_in_time import apply_actions
from .prices import Prices, check_cells, read_tidy
from .quality import find_data_warnings
from .quality.back_adjustment import may_be_adjusted
from .reading import AS_IT_STANDS, Reading
from .table import RawTable, Table, find_missing_columns, name_columns, read_raw_table, read_side_table, read_symbols

INDUSTRY_COLUMNS = ("industry", "sub_industry")
NO_ROW_SECTOR = "unknown"
"""Group of the symbols that the file has no row for."""


@dataclass(frozen=True)
class PanelSource:
    """Where a panel comes from.

    Attributes
    ----------
    path : Path
        Parquet or CSV, best tidy, one row per date and symbol: date, symbol, open, high, low, close, volume; other
        numeric columns become fields. Wide tables with field and symbol in the header, such as yfinance frames, are
        read too. An empty cell is missing data. Column names are read in lower case, symbols as they are spelled.
    sectors : Path, optional
        Parquet or CSV with symbol, sector and, if wanted, industry or sub_industry.
    as_of : date, optional
        No row may be later; by default the last date of the file.
    derive : Mapping[str, str]
        Fields to compute, such as `{"vwap": "typical"}`; stamped in the panel's notes.
    name : str
        The name of the data; by default the file's name without its extension.
    reading : Reading
        How the table is written, where it does not say so itself.
    members : Path, optional
        Parquet or CSV with symbol, from and to: who was in the universe. An empty `to` means until today.
    fundamentals : Path, optional
        Parquet or CSV with symbol, known, if wanted period, and figures, which enter as they were known.
    symbol_changes : Path, optional
        Parquet or CSV with date, symbol and new_symbol: what a company is called from a day on. An empty `new_symbol`
        means that the company ended.
    calendar : str
        The exchange whose sessions the days must be, as exchange-calendars calls it, such as XNYS.
    actions : Path, optional
        Parquet or CSV with date, symbol, dividend and split: prices are adjusted for those until the last day.
    volumes : str
        "quoted" (as traded that day) or "adjusted" (in shares of the last day); required with actions.
    """

    path: Path
    sectors: Path | None = None
    as_of: date | None = None
    derive: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    reading: Reading = AS_IT_STANDS
    members: Path | None = None
    fundamentals: Path | None = None
    symbol_changes: Path | None = None
    calendar: str = ""
    actions: Path | None = None
    volumes: str = ""

    def __post_init__(self) -> None:
        """Fill in the name, and turn paths given as text into paths."""
        object.__setattr__(self, "path", Path(self.path))
        object.__setattr__(self, "reading", Reading.model_validate(self.reading))  # a dict of settings is one, too
        for name in ("sectors", "members", "fundamentals", "symbol_changes", "actions"):
            path = getattr(self, name)
            object.__setattr__(self, name, None if path is None else Path(path))
        object.__setattr__(self, "name", self.name or self.path.stem)


def load_panel(source: PanelSource | Path | str) -> Panel:
    """Load a panel from files, or from one file or folder of prices, with the data warnings in its notes.

    Raises
    ------
    PanelError
        As `read_panel`.
    """
    return note_warnings(read_panel(source))


def note_warnings(panel: Panel) -> Panel:
    """Return the panel with its data warnings in its notes."""
    return replace(panel, notes=(*panel.notes, *map(str, find_data_warnings(panel))))


def read_panel(source: PanelSource | Path | str) -> Panel:
    """Read a panel from files.

    A symbol is in the universe on the days on which it has an open and a close. Nothing is repaired: values that look
    wrong and may be right are left to `find_data_warnings`.

    Raises
    ------
    PanelError
        With every finding in the files (`.findings`, one of a kind and column), or for an unknown derivation.
    """
    if not isinstance(source, PanelSource):
        source = _name_source(source)
    check_derivations(source.derive)
    if source.path.is_dir():
        audit = Audit(np.zeros(0, np.int64))
        return build_panel(read_folder(source, audit), source, audit)
    return build_table_panel(read_raw_table(source.path, source.reading, typed=True), source)


def _name_source(path: Path | str) -> PanelSource:
    """Return the source of one file or folder."""
    if not isinstance(path, Path | str):
        what = f"a panel is read from a PanelSource or a path, not from {type(path).__name__}"
        raise PanelError(what, field="source", hint="A DataFrame becomes a panel by panel_from(frame).")
    return PanelSource(Path(path))


def build_table_panel(raw: RawTable, source: PanelSource) -> Panel:
    """Build a panel from a table, however it is laid out, and the other files of the source."""
    audit = Audit(raw.row_numbers)
    return build_panel(_read_cells(raw, source, audit), source, audit)


def build_panel(prices: Prices, source: PanelSource, audit: Audit) -> Panel:
    """Build a panel from cells, the findings so far, and the other files of the source."""
    changes = read_symbol_changes(source.symbol_changes, source.reading) if source.symbol_changes else None
    if changes is not None:
        prices = changes.join(prices, audit)
    prices = check_sessions(prices, source.calendar, source.reading.closed_days, audit)
    prices = check_cells(prices, source.as_of, audit, source.reading)
    groups: dict[str, list[str]] = {}
    sector_notes: tuple[str, ...] = ()
    if source.sectors is not None:
        groups, sector_notes = read_sectors(source.sectors, prices, audit, source.reading)
    audit.refuse(f"{source.path} with {source.sectors}" if source.sectors else str(source.path))
    fields, stamps = derive_fields(prices.fields, source.derive, source.volumes)
    notes = (*stamps, *prices.notes, *sector_notes)
    panel = assemble_panel(replace(prices, fields=fields, notes=notes), groups)
    panel = _add_other_files(panel, prices, source, changes)
    renames = changes.renames if changes else ()
    panel = replace(panel, back_adjusted=may_be_adjusted(panel), calendar=source.calendar, renames=renames)
    panel = replace(panel, volumes=source.volumes)
    if source.actions is None:
        return panel
    return apply_actions(panel, read_actions(source.actions, source.reading, changes.trace if changes else None))


def _add_other_files(panel: Panel, prices: Prices, source: PanelSource, changes: SymbolChanges | None) -> Panel:
    """Return the panel with the universe of its members, and with what was known of its symbols."""
    if prices.known is not None:
        stated = take_known_columns(prices)
        notes = (*stated.notes, *panel.notes)
        panel = replace(panel, fields=add_fundamentals(panel, stated), notes=notes)
    if source.fundamentals is not None:
        stated = read_fundamentals(source.fundamentals, panel, source.reading, changes)
        notes = (*panel.notes, *(note for note in stated.notes if note not in panel.notes))
        panel = replace(panel, fields=add_fundamentals(panel, stated), notes=notes)
    if source.members is not None:
        membership = read_membership_file(source.members, source.reading)
        membership = membership if changes is None else membership.follow(changes)
        notes = (*panel.notes, *membership.describe(panel, source.members.name))
        panel = replace(panel, universe=membership.restrict(panel), notes=notes)
    return panel


def _read_cells(raw: RawTable, source: PanelSource, audit: Audit) -> Prices:
    """Read the cells of a table by its layout."""
    layout = find_layout(raw, source.reading)
    if layout.kind != TIDY:
        return read_wide(raw, layout, source, audit)
    return read_tidy(name_columns(raw, source.reading), audit, source.derive)


def assemble_panel(prices: Prices, groups: Mapping[str, list[str]]) -> Panel:
    """Build the panel `[T, N]` from the rows of a file; each array is allocated once and handed over."""
    first = int(prices.days.min())
    is_day = np.zeros(int(prices.days.max()) - first + 1, dtype=np.bool_)
    is_day[prices.days - first] = True
    row = np.cumsum(is_day) - 1
    shape = (int(is_day.sum()), len(prices.symbols))
    cell = row[prices.days - first] * shape[1] + prices.codes
    in_place = len(cell) == shape[0] * shape[1] and bool((np.diff(cell, prepend=-1) == 1).all())
    spread = _shape_rows if in_place else _spread_rows
    fields = {name: spread(values, cell, shape) for name, values in prices.fields.items()}
    fields["returns"] = compute_simple_returns(fields["close"])
    universe = np.isfinite(fields["open"]) & np.isfinite(fields["close"])
    if prices.member is not None:
        universe &= _spread_rows(prices.member.astype(np.float64), cell, shape) == 1.0
    coded = {name: encode_labels(labels) for name, labels in groups.items()}
    for values in (*fields.values(), universe):
        values.setflags(write=False)
    return Panel(
        dates=(np.flatnonzero(is_day) + first).astype("datetime64[D]"),
        symbols=prices.symbols,
        fields=fields,
        universe=universe,
        groups={name: codes for name, (codes, _) in coded.items()},
        group_labels={name: labels for name, (_, labels) in coded.items()},
        notes=prices.notes,
    )


def _shape_rows(values: NDArray[np.float64], cell: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.float64]:
    """Return the values as an array `[T, N]`, where each row has its cell and stands in order: nothing is copied."""
    values.setflags(write=False)  # the panel copies what can still be written to
    return values.reshape(shape)


def _spread_rows(values: NDArray[np.float64], cell: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.float64]:
    """Return the values as an array `[T, N]`, NaN where there is no row."""
    out = np.full(shape, np.nan)
    np.put(out, cell, values)
    return out


def read_sectors(
    path: Path, prices: Prices, audit: Audit, reading: Reading
) -> tuple[dict[str, list[str]], tuple[str, ...]]:
    """Return the labels of every grouping, in the order of the prices' symbols, and notes.

    An empty cell means no group. Symbols without a row form a group of their own; a file without any of the symbols is
    refused.
    """
    table = read_side_table(path, reading)
    sector_audit = Audit(table.row_numbers)
    sector_audit.add(*table.clashes, *find_missing_columns(table, ("symbol", "sector")))
    sector_audit.add_broken(table.broken)
    labels: dict[str, list[str]] = {}
    notes: list[str] = []
    if table.rows and "symbol" in table.columns:
        rows = read_symbol_rows(table, sector_audit)
        notes += _note_missing_rows(path, prices, rows, sector_audit)
        labels = {name: read_labels(table, column, prices, rows) for name, column in find_groupings(table).items()}
    audit.add(*(Finding(f.row, f"{path.name} {f.column}".strip(), f.message) for f in sector_audit.findings))
    notes += [
        f"{name}: {blank} of {len(words)} names have none"
        for name, words in labels.items()
        if (blank := sum(not word for word in words))
    ]
    return labels, tuple(notes)


def find_groupings(table: Table) -> dict[str, str]:
    """Return the column of each grouping that the file has."""
    columns = {"sector": "sector"} if "sector" in table.columns else {}
    industry = [name for name in INDUSTRY_COLUMNS if name in table.columns]
    return columns | ({"industry": industry[0]} if industry else {})


def read_symbol_rows(table: Table, audit: Audit) -> dict[str, int]:
    """Return the first row of each symbol; a symbol with two rows is a finding."""
    codes, words = read_symbols(table, "symbol", audit)
    _, first = np.unique(codes[codes >= 0], return_index=True)
    rows = dict(zip(words, np.flatnonzero(codes >= 0)[first].tolist(), strict=True))
    repeated = np.array(
        [row for row, code in enumerate(codes.tolist()) if code >= 0 and rows[words[code]] != row], np.intp
    )
    audit.add_rows("symbol", repeated, lambda row: f"{words[codes[row]]!r} is there twice")
    return rows


def _note_missing_rows(path: Path, prices: Prices, rows: dict[str, int], audit: Audit) -> list[str]:
    """Return a note on the symbols without a row; if no symbol has one, that is a finding."""
    absent = [symbol for symbol in prices.symbols if symbol not in rows]
    if rows and absent and len(absent) == len(prices.symbols):
        message = (
            f"none of the prices' {len(absent)} symbols has a row here, such as {absent[0]!r}; "
            f"it begins with {next(iter(rows))!r}"
        )
        audit.add(Finding(0, "symbol", message))
    if not absent:
        return []
    share = f"{len(absent)} of {len(prices.symbols)} symbols ({100 * len(absent) / len(prices.symbols):.1f} %)"
    return [f"{path.name}: no row for {share}: they form a group of their own, '{NO_ROW_SECTOR}'"]


def read_labels(table: Table, column: str, prices: Prices, rows: dict[str, int]) -> list[str]:
    """Return the label of every symbol of the prices: empty where the cell is, "unknown" without a row."""
    words = [str(word).strip() if word is not None else "" for word in table.columns[column].to_pylist()]
    return [words[rows[symbol]] if symbol in rows else NO_ROW_SECTOR for symbol in prices.symbols]
