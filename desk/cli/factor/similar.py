"""The command that finds the known formulas most similar to one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...facts.similar import ReadableNames, describe_likeness, find_nearest_formulas, index_library
from ...facts.standing import DEFAULT_WORKSPACE
from ...figures import percent
from ...formula_views import summarise_formula
from ..console import print_object, stdout_console
from ..formula_source import read_formula_source
from ..options import AsJson, DialectOption, FieldsOption, GroupsOption
from .formulas import EXIT_UNREADABLE, WrittenFormula, collect_formulas, readable_names

if TYPE_CHECKING:
    from ....evidence.originality import InvertedIndex
    from ....factors import Expression


Facts = dict[str, Any]

Library = Annotated[
    Path | None,
    typer.Option(
        "--library",
        metavar="PATH",
        help="The workspace whose library is searched, .alphaloom by default; or a file with one formula a line.",
    ),
]


def similar(
    expression: Annotated[
        str, typer.Argument(metavar="EXPR", help="e.g. 'rank(ts_std(returns, 30)) * -1'; or FILE.py, a Python factor")
    ],
    dialect: DialectOption = "alphaloom",
    library: Library = None,
    top: Annotated[int, typer.Option("--top", min=1, max=1000, help="How many formulas to show.")] = 10,
    fields: FieldsOption = None,
    groups: GroupsOption = None,
    as_json: AsJson = False,
) -> None:
    """Find the formulas of the library and in print that share the largest part with one, and say what they share."""
    from ....factors import parse
    from ....factors.describe import check_formula

    names, expression = readable_names(fields, groups), read_formula_source(expression)
    facts = check_formula(expression, dialect=dialect, **names)
    if not facts["ok"]:
        _print_mistakes(expression, facts, as_json=as_json)
        raise typer.Exit(EXIT_UNREADABLE)
    mine = parse(expression, dialect=dialect, **names)
    nearest = find_nearest_formulas(mine, top, _load_indexes(library, names))
    rows = [describe_likeness(mine, likeness) for likeness in nearest]
    if as_json:
        print_object(rows)
    else:
        _print_rows(mine, rows)


def _print_mistakes(expression: str, facts: Facts, *, as_json: bool) -> None:
    """Print the mistakes in the form of `factor check`."""
    from .formulas import print_checks

    if as_json:
        print_object(facts)
    else:
        print_checks([WrittenFormula(expression)], [facts])


def _load_indexes(library: Path | None, names: ReadableNames) -> Sequence[InvertedIndex]:
    """Return the index of a file's formulas, or those of a workspace's library."""
    if library is not None and library.is_file():
        return [_index_file(library, names)]
    from ....ledger.database import has_record

    folder = library or DEFAULT_WORKSPACE
    if not has_record(folder):
        if library is None:
            return []
        reason = "there is no ledger in it" if folder.is_dir() else "it is not there"
        raise typer.BadParameter(f"--library: {library}: {reason}; name a workspace, or a file with one formula a line")
    from datetime import UTC, datetime

    from ....ledger import Ledger

    with Ledger.open(folder, clock=lambda: datetime.now(UTC)) as ledger:
        return index_library(ledger, names)


def _index_file(file: Path, names: ReadableNames) -> InvertedIndex:
    from ....evidence.originality import MemoryIndex, draw_formula

    formulas = collect_formulas((), str(file))
    parsed = ((formula.name or formula.place(), _parse_formula(formula, names)) for formula in formulas)
    return MemoryIndex(draw_formula(name, expression, file.name) for name, expression in parsed)


def _parse_formula(formula: WrittenFormula, names: ReadableNames) -> Expression:
    """Parse one formula of a file; the error names its place."""
    from ....factors import ParseError, parse

    try:
        return parse(formula.text, fields=names["fields"], groups=names["groups"])
    except ParseError as error:
        first = error.mistakes[0]
        raise typer.BadParameter(f"--library: {formula.place(first.at)}: {first.message}. {first.hint}") from None


def _print_rows(mine: Expression, rows: Sequence[Facts]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    console.print(Text(summarise_formula(mine.text), style="bold"))
    if not rows:
        console.print("Nothing that is known shares anything with it.")
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("alike", justify="right", no_wrap=True)
    for title in ("formula", "shares", "why"):
        table.add_column(title, overflow="fold")
    for row in rows:
        cell = Text.assemble((row["id"], "bold"), (f" ({row['where']})", "dim"), f"\n{summarise_formula(row['text'])}")
        table.add_row(percent(row["ratio"]), cell, Text(row["shared"]), Text(row["why"]))
    console.print(table)
