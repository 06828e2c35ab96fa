"""From files to a panel: everything that is wrong is said at once, before any work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .derive import check_derivations, derive_fields
from .files.audit import Prices, audit_prices
from .files.findings import Audit
from .files.table import read_table
from .panel import Panel
from .quality import find_data_warnings
from .quality.levels import may_be_adjusted
from .sectors import read_sectors


@dataclass(frozen=True)
class PanelSource:
    """Says where a panel comes from.

    Attributes
    ----------
    path : Path
        Tidy Parquet or CSV, one row per date and symbol: date, symbol, open, high, low, close, volume; other numeric
        columns become fields. An empty cell is missing data. Column names are read in lower case.
    sectors : Path, optional
        Parquet or CSV with symbol, sector and, if wanted, industry or sub_industry.
    as_of : date, optional
        No row may be later; by default the last date of the file.
    derive : Mapping[str, str]
        Fields to compute, such as `{"vwap": "typical"}`; stamped in the panel's notes.
    name : str
        What to call the data; by default the file's name without its extension.
    """

    path: Path
    sectors: Path | None = None
    as_of: date | None = None
    derive: Mapping[str, str] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        """Fill in the name, and take paths that were given as text."""
        object.__setattr__(self, "path", Path(self.path))
        object.__setattr__(self, "sectors", None if self.sectors is None else Path(self.sectors))
        object.__setattr__(self, "name", self.name or self.path.stem)


def load_panel(source: PanelSource) -> Panel:
    """Load a panel from files, with everything in its notes that `find_data_warnings` suspects.

    Raises
    ------
    PanelError
        As `read_panel`.
    """
    panel = read_panel(source)
    return replace(panel, notes=(*panel.notes, *map(str, find_data_warnings(panel))))


def read_panel(source: PanelSource) -> Panel:
    """Read a panel from files.

    A name is in the universe on the days on which it has an open and a close; no day knows a later one. Nothing is
    repaired: what looks wrong and may be right is for `find_data_warnings` to say.

    Raises
    ------
    PanelError
        With every finding in the files (`.findings`, at most 20 of a kind and a count), or for an unknown derivation.
    """
    check_derivations(source.derive)
    table = read_table(source.path)
    audit = Audit(table.row_numbers)
    prices = audit_prices(table, source.as_of, audit)
    groups: dict[str, list[str]] = {}
    sector_notes: tuple[str, ...] = ()
    if source.sectors is not None:
        groups, sector_notes = read_sectors(source.sectors, prices, audit)
    audit.refuse(f"{source.path} with {source.sectors}" if source.sectors else str(source.path))
    fields, stamps = derive_fields(prices.fields, source.derive)
    notes = (*stamps, *prices.notes, *sector_notes)
    panel = assemble(replace(prices, fields=fields, notes=notes), groups)
    return replace(panel, back_adjusted=may_be_adjusted(panel))


def assemble(prices: Prices, groups: Mapping[str, list[str]]) -> Panel:
    """Spread the rows over days and names."""
    first = int(prices.days.min())
    seen = np.zeros(int(prices.days.max()) - first + 1, dtype=np.bool_)
    seen[prices.days - first] = True
    row = np.cumsum(seen) - 1
    shape = (int(seen.sum()), len(prices.symbols))
    cell = row[prices.days - first] * shape[1] + prices.codes
    return Panel.build(
        dates=(np.flatnonzero(seen) + first).astype("datetime64[D]"),
        symbols=prices.symbols,
        fields={name: _spread(values, cell, shape) for name, values in prices.fields.items()},
        groups=groups,
        notes=prices.notes,
    )


def _spread(values: NDArray[np.float64], cell: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.float64]:
    """Return the values as an array `[T, N]`, NaN where there is no row."""
    out = np.full(shape[0] * shape[1], np.nan)
    out[cell] = values
    return out.reshape(shape)
