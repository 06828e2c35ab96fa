"""Options that say how a table is to be read, and the files that stand beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import DeskError
from ..console import mask_unprintable
from ..options import check_file_exists

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ....market import Reading

MembersFile = Annotated[
    Path | None,
    typer.Option(
        "--members",
        metavar="FILE",
        callback=check_file_exists,
        help="Who was in the universe, Parquet or CSV: symbol, from, to.",
    ),
]
FundamentalsFile = Annotated[
    Path | None,
    typer.Option(
        "--fundamentals",
        metavar="FILE",
        callback=check_file_exists,
        help="Figures as they became known, Parquet or CSV: symbol, known, if wanted period, and columns.",
    ),
]
SymbolChangesFile = Annotated[
    Path | None,
    typer.Option(
        "--symbol-changes",
        metavar="FILE",
        callback=check_file_exists,
        help="What a company is called from a day on, Parquet or CSV: date, symbol, new_symbol (empty: it ended).",
    ),
]
CalendarOption = Annotated[
    str,
    typer.Option(
        "--calendar",
        metavar="CODE",
        help="The exchange whose sessions the days must be, e.g. XNYS (the package exchange-calendars).",
    ),
]
ReadSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="KEY=VALUE",
        help="How the table is written, as under market: read:, e.g. dates=day_first or columns.symbol=Name. "
        "Repeatable.",
    ),
]


def parse_reading(settings: Sequence[str] | None) -> Reading:
    """Return the settings of the reader.

    Raises
    ------
    DeskError
        One holds a character that cannot be seen.
    SettingsError
        With every mistake in them.
    """
    for setting in settings or ():
        if (shown := mask_unprintable(setting)) != setting:
            raise DeskError("the setting has a character that cannot be seen", field="--read", got=shown)
    from ....ledger import read_settings
    from ....market import Reading

    return read_settings(None, Reading, settings or ())


def gather_tables(files: Mapping[str, Path | None], calendar: str, read: Sequence[str] | None) -> dict[str, Any]:
    """Return the settings of `market` that options state; what no option states is left to the campaign file."""
    tables: dict[str, Any] = {name: path.absolute() for name, path in files.items() if path is not None}
    if calendar:
        tables["calendar"] = calendar
    return tables | ({"read": parse_reading(read)} if read else {})
