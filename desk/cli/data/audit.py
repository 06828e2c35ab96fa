"""The command that looks for errors and biases in prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..console import make_text, print_object, stdout_console, tell_long_work
from ..options import AsJson, AsOf, SectorsFile, check_file_exists
from .settings import (
    CalendarOption,
    FundamentalsFile,
    MembersFile,
    ReadSettings,
    SymbolChangesFile,
    parse_reading,
)

if TYPE_CHECKING:
    from ....market import DataWarning, Panel


def audit(
    panel: Annotated[
        Path,
        typer.Argument(
            metavar="PANEL",
            callback=check_file_exists,
            help="Prices, Parquet or CSV: date, symbol, open, high, low, close, volume, or a wide table of them.",
        ),
    ],
    sectors: SectorsFile = None,
    as_of: AsOf = None,
    derive: Annotated[
        list[str] | None,
        typer.Option("--derive", metavar="FIELD=RULE", help="Derive a field, e.g. prices=adj_factor. Repeatable."),
    ] = None,
    members: MembersFile = None,
    fundamentals: FundamentalsFile = None,
    symbol_changes: SymbolChangesFile = None,
    calendar: CalendarOption = "",
    read: ReadSettings = None,
    as_json: AsJson = False,
) -> None:
    """Look for survivorship, adjusted levels, bad ticks, splits, stale prices, shifted days, bounce, copies and gaps."""  # noqa: E501 - the summary of a command's help is one line
    from ....market import PanelSource, find_data_warnings, read_panel

    rules = dict(map(_parse_rule, derive or ()))
    source = PanelSource(panel, sectors, as_of.date() if as_of else None, rules)
    source = replace(source, reading=parse_reading(read), members=members, fundamentals=fundamentals)
    source = replace(source, symbol_changes=symbol_changes, calendar=calendar)
    with tell_long_work(f"reading {panel.name}"):
        prices = read_panel(source)
    warnings = find_data_warnings(prices)
    if as_json:
        print_object(
            {
                **_describe_shape(prices),
                "notes": list(prices.notes),
                "findings": [warning.record() for warning in warnings],
            }
        )
    else:
        _print_findings(_describe_shape(prices), prices.notes, warnings)


def _parse_rule(text: str) -> tuple[str, str]:
    """Return the field and the rule of `prices=adj_factor`."""
    name, _, rule = text.partition("=")
    return name.strip(), rule.strip()


def _describe_shape(panel: Panel) -> dict[str, Any]:
    return {
        "days": panel.days,
        "names": panel.names,
        "first_day": str(panel.dates[0]),
        "last_day": str(panel.dates[-1]),
        "digest": panel.digest,
    }


def _print_findings(shape: Mapping[str, Any], notes: Sequence[str], warnings: Sequence[DataWarning]) -> None:
    from rich.table import Table
    from rich.text import Text

    from ....market import format_count

    console = stdout_console()
    span = f"{shape['days']:,} days of {shape['names']:,} names, {shape['first_day']} to {shape['last_day']}"
    console.print(Text(f"{span}: {format_count(len(warnings), 'suspicion')}; nothing was changed"))
    for note in notes:
        console.print(Text(f"note: {note}", style="dim"))
    for warning in warnings:
        console.print()
        console.print(Text(f"{warning.kind}: {warning.observation}", style="bold"))
        table = Table.grid(padding=(0, 2))
        for word, text in (("where", warning.where), ("why it matters", warning.why), ("what to do", warning.remedy)):
            if text:
                table.add_row(Text(f"  {word}", style="dim"), make_text(text))
        console.print(table)
