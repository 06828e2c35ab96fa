"""The option that says how a table is to be read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import DeskError
from ..console import mask_unprintable
from ..options import check_file_exists

if TYPE_CHECKING:
    from collections.abc import Sequence

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
