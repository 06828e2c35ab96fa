"""The command that says what a table of prices is, and how a campaign file reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...figures import DASH, count, percent, plural
from ...profile import spark
from ..console import make_text, print_object, print_plain, stdout_console, tell_long_work
from ..options import AsJson, SectorsFile, check_file_exists
from .settings import (
    CalendarOption,
    FundamentalsFile,
    MembersFile,
    ReadSettings,
    SymbolChangesFile,
    parse_reading,
)

if TYPE_CHECKING:
    from ....market import DataWarning, Panel, PanelOverview, PanelSource

TIDY_NOTE = "table: tidy, one row for each date and symbol"
SHOWN_FIELDS = 14
SHOWN_NOTES = 6
SHOWN_WARNINGS = 6
LINE_LENGTH = 110
PLOT_TITLES = {"symbols": "symbols a day", "move": "median daily move", "traded": "median money traded"}


def look(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            callback=check_file_exists,
            help="Prices, Parquet or CSV, tidy or wide; or a folder of one table for each field or symbol.",
        ),
    ],
    sectors: SectorsFile = None,
    members: MembersFile = None,
    fundamentals: FundamentalsFile = None,
    symbol_changes: SymbolChangesFile = None,
    calendar: CalendarOption = "",
    read: ReadSettings = None,
    as_json: AsJson = False,
) -> None:
    """Say what a table is: its form, days, symbols, fields with units, gaps, suspicions, and the YAML that reads it."""
    from ....market import PanelSource, find_data_warnings, read_panel, summarise_panel

    source = replace(PanelSource(file, sectors), reading=parse_reading(read))
    source = replace(source, members=members, fundamentals=fundamentals)
    source = replace(source, symbol_changes=symbol_changes, calendar=calendar)
    with tell_long_work(f"reading {file.name}"):
        panel = read_panel(source)
    summary, warnings, units = summarise_panel(panel), find_data_warnings(panel), find_units(panel)
    settings = make_settings(source)
    if as_json:
        facts = asdict(summary) | {"notes": list(panel.notes), "units": dict(units), "market": settings}
        print_object(facts | {"findings": [warning.record() for warning in warnings]})
        return
    _print_summary(file, summary, panel.notes)
    _print_fields(summary, units)
    _print_plots(summary)
    _print_notes(file, panel.notes, warnings)
    _print_settings(settings, panel)


def find_units(panel: Panel) -> dict[str, str]:
    """Return the unit that formulas take each field for."""
    from ....factors import parse

    names = [name for name in panel.fields if name != "returns"]
    return {name: parse(name, fields=names).unit for name in names}


def make_settings(source: PanelSource) -> dict[str, Any]:
    """Return the section `market` of a campaign file that reads the table."""
    files = {name: getattr(source, name) for name in ("sectors", "members", "fundamentals", "symbol_changes")}
    settings: dict[str, Any] = {"panel": str(source.path)} | {name: str(path) for name, path in files.items() if path}
    if source.calendar:
        settings["calendar"] = source.calendar
    if changed := source.reading.model_dump(mode="json", exclude_defaults=True):
        settings["read"] = changed
    return settings


def _print_summary(file: Path, summary: PanelOverview, notes: Sequence[str]) -> None:
    """Print the form and the span."""
    form = next((note for note in notes if note.startswith("table: ")), TIDY_NOTE).removeprefix("table: ")
    print_plain(f"{file.name}: {form}")
    span = f"{plural(summary.days, 'day')} of {plural(summary.symbols, 'symbol')}"
    print_plain(f"{span}, {summary.first_day} to {summary.last_day}")
    first, last = summary.members
    ends = f"{first:,} in the universe on the first day, {last:,} on the last"
    print_plain(f"{ends}; {summary.listed:,} list later, {summary.vanished:,} vanish; {plural(summary.gaps, 'gap')}")


def _print_fields(summary: PanelOverview, units: Mapping[str, str]) -> None:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("field", "unit", "filled", "lowest", "highest"):
        table.add_column(name, justify="left" if name in ("field", "unit") else "right")
    for name, field in list(summary.fields.items())[:SHOWN_FIELDS]:
        cells = (name, units[name], percent(field.filled), _format_value(field.low), _format_value(field.high))
        table.add_row(*map(make_text, cells))
    print_plain("")
    stdout_console().print(table)
    if len(summary.fields) > SHOWN_FIELDS:
        print_plain(f"and {len(summary.fields) - SHOWN_FIELDS} more fields")


def _print_plots(summary: PanelOverview) -> None:
    """Print three series over the days, each with its lowest and highest value."""
    print_plain("")
    for name, title in PLOT_TITLES.items():
        values = summary.series[name]
        known = [value for value in values if value is not None]
        show = PLOT_FIGURES[name]
        span = f"{show(min(known))} to {show(max(known))}" if known else DASH
        print_plain(f"{title:<22}{spark(values)}  {span}")


def _print_notes(file: Path, notes: Sequence[str], warnings: Sequence[DataWarning]) -> None:
    """Print what was inferred or left out, and each suspicion on a line."""
    notes = [note for note in notes if not note.startswith("table: ")]
    lines = [f"note: {note}" for note in notes[:SHOWN_NOTES]]
    if len(notes) > SHOWN_NOTES:
        lines.append(f"and {len(notes) - SHOWN_NOTES} more notes")
    lines += [f"suspicion: {warning.kind}: {warning.observation}" for warning in warnings[:SHOWN_WARNINGS]]
    if len(warnings) > SHOWN_WARNINGS:
        lines.append(f"and {len(warnings) - SHOWN_WARNINGS} more suspicions")
    if lines:
        print_plain("")
    for line in lines:
        print_plain(line if len(line) <= LINE_LENGTH else f"{line[: LINE_LENGTH - 3]}...")
    if warnings:
        print_plain(f"where, why it matters and what to do: alphaloom data audit {file}")


def _print_settings(settings: Mapping[str, Any], panel: Panel) -> None:
    """Print the YAML that reads the table."""
    print_plain("")
    print_plain("market:")
    for name, value in settings.items():
        print_plain(f"  {name}: {_format_yaml(value)}")
    if any(note.startswith("adj_close: left out") for note in panel.notes):
        print_plain("  #derive: {prices: adj_close}     # adjusts all prices for dividends")
    elif "vwap" not in panel.fields:
        print_plain("  #derive: {vwap: typical}         # the table has no vwap: (high + low + close) / 3")


def _format_yaml(value: object) -> str:
    """Return a value as YAML on one line."""
    import yaml

    body = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**6, sort_keys=False)
    return body.removesuffix("...\n").strip()


def _format_value(value: float | None) -> str:
    """Return a number with four digits that count, large ones with their thousands."""
    if value is None:
        return DASH
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


PLOT_FIGURES: Mapping[str, Callable[[float], str]] = {"symbols": count, "move": percent, "traded": _format_value}
