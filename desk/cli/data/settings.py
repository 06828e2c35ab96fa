"""The option that says how a table is to be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....market import Reading

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
    SettingsError
        With every mistake in them.
    """
    from ....ledger import read_settings
    from ....market import Reading

    return read_settings(None, Reading, settings or ())
