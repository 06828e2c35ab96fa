"""The command that says what a table of prices is, and how a campaign file reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import EXIT_MISSING
from ...figures import DASH, count, percent, plural
from ...profile import spark
from ..console import make_text, print_object, print_plain, stdout_console, tell_long_work
from ..models.router_file import ConfidentialOption, RemarkFile, RemarkSource
from ..options import AsJson, SectorsFile, Workspace, check_file_exists
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
    from ...remarks import ModelRemark

TIDY_NOTE = "table: tidy, one row for each date and symbol"
SHOWN_FIELDS = 14
SHOWN_NOTES = 6
SHOWN_WARNINGS = 6
LINE_LENGTH = 110
MAX_DATA_QUESTION_CHARS = 500
PLOT_TITLES = {"symbols": "symbols a day", "move": "median daily move", "traded": "median money traded"}


def _check_question(text: str | None) -> str | None:
    """Refuse a question that is empty or too long before the table is read."""
    if text is not None and not 0 < len(text.strip()) <= MAX_DATA_QUESTION_CHARS:
        raise typer.BadParameter(f"a question has 1 to {MAX_DATA_QUESTION_CHARS} characters")
    return text


DataQuestion = Annotated[
    str | None,
    typer.Option(
        "--ask",
        metavar="TEXT",
        callback=_check_question,
        help="A question about the table; the local model of a router.yaml answers it below.",
    ),
]


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
    ask: DataQuestion = None,
    router: RemarkFile = None,
    confidential: ConfidentialOption = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Say what a table is: its form, days, symbols, fields with units, gaps, suspicions, and the YAML that reads it.

    With --ask, a model's answer to a question stands below and is marked as a model's. The model is given the lines
    above it and no row of the table. An answer with a figure that is in none of them is withheld. The call is recorded
    and capped like every other, as a run of the workspace; without --ask no model is asked and nothing is written.
    """
    from ....market import PanelSource, find_data_warnings, read_panel, summarise_panel

    source = replace(PanelSource(file, sectors), reading=parse_reading(read))
    source = replace(source, members=members, fundamentals=fundamentals)
    source = replace(source, symbol_changes=symbol_changes, calendar=calendar)
    with tell_long_work(f"reading {file.name}"):
        panel = read_panel(source)
    summary, warnings, units = summarise_panel(panel), find_data_warnings(panel), find_units(panel)
    settings = make_settings(source)
    lines = _list_spans(file, summary, panel.notes), _list_notes(panel.notes, warnings)
    facts = [*lines[0], *_list_field_facts(summary, units), *map(" ".join, _list_ranges(summary)), *lines[1]]
    answer = _ask_model(ask, facts, RemarkSource(router, workspace, confidential)) if ask is not None else None
    if as_json:
        found = asdict(summary) | {"notes": list(panel.notes), "units": dict(units), "market": settings}
        found |= {"findings": [warning.record() for warning in warnings]}
        print_object(found | ({"answer": {"question": ask, **answer.record()}} if answer else {}))
    else:
        print_plain("\n".join(lines[0]))
        _print_fields(summary, units)
        _print_plots(summary)
        _print_notes(file, lines[1], suspicious=bool(warnings))
        _print_settings(settings, panel)
        if answer:
            print_plain(f"\na model's words, from the lines above: {answer.line()}")
    if answer and answer.unanswered:
        raise typer.Exit(EXIT_MISSING)


def _ask_model(question: str, facts: Sequence[str], source: RemarkSource) -> ModelRemark:
    """Return a model's answer to a question about the lines that are printed."""
    from ...remarks import RemarkQuestion

    (answer,) = source.require("data", [RemarkQuestion.about_data(question, facts)])
    return answer


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


def _list_spans(file: Path, summary: PanelOverview, notes: Sequence[str]) -> list[str]:
    """Return the form, the span and the universe of a table, a line each."""
    form = next((note for note in notes if note.startswith("table: ")), TIDY_NOTE).removeprefix("table: ")
    span = f"{plural(summary.days, 'day')} of {plural(summary.symbols, 'symbol')}"
    first, last = summary.members
    ends = f"{first:,} in the universe on the first day, {last:,} on the last"
    return [
        f"{file.name}: {form}",
        f"{span}, {summary.first_day} to {summary.last_day}",
        f"{ends}; {summary.listed:,} list later, {summary.vanished:,} vanish; {plural(summary.gaps, 'gap')}",
    ]


def _list_field_facts(summary: PanelOverview, units: Mapping[str, str]) -> list[str]:
    """Return the rows of the printed fields as sentences."""
    return [
        f"field {name}: unit {units[name]}, {percent(field.filled)} filled, lowest {_format_value(field.low)}, "
        f"highest {_format_value(field.high)}"
        for name, field in list(summary.fields.items())[:SHOWN_FIELDS]
    ]


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


def _list_ranges(summary: PanelOverview) -> list[tuple[str, str]]:
    """Return the title of each series over the days, with its lowest and highest value."""
    ranges = []
    for name, title in PLOT_TITLES.items():
        known = [value for value in summary.series[name] if value is not None]
        show = PLOT_FIGURES[name]
        ranges.append((title, f"{show(min(known))} to {show(max(known))}" if known else DASH))
    return ranges


def _print_plots(summary: PanelOverview) -> None:
    """Print three series over the days, each with its lowest and highest value."""
    print_plain("")
    for name, (title, span) in zip(PLOT_TITLES, _list_ranges(summary), strict=True):
        print_plain(f"{title:<22}{spark(summary.series[name])}  {span}")


def _list_notes(notes: Sequence[str], warnings: Sequence[DataWarning]) -> list[str]:
    """Return what was inferred or left out, and each suspicion, a line each."""
    notes = [note for note in notes if not note.startswith("table: ")]
    lines = [f"note: {note}" for note in notes[:SHOWN_NOTES]]
    if len(notes) > SHOWN_NOTES:
        lines.append(f"and {len(notes) - SHOWN_NOTES} more notes")
    lines += [f"suspicion: {warning.kind}: {warning.observation}" for warning in warnings[:SHOWN_WARNINGS]]
    if len(warnings) > SHOWN_WARNINGS:
        lines.append(f"and {len(warnings) - SHOWN_WARNINGS} more suspicions")
    return [line if len(line) <= LINE_LENGTH else f"{line[: LINE_LENGTH - 3]}..." for line in lines]


def _print_notes(file: Path, lines: Sequence[str], *, suspicious: bool) -> None:
    if lines:
        print_plain("\n".join(["", *lines]))
    if suspicious:
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
