"""The command that shows two factors side by side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ...formula_views import summarise_formula
from ...report.comparison import build_comparison_page, describe_pair, list_sheet_rows, list_together
from ...report.factor_page import list_warnings, refuse_foreign_file, render_page, write_factor_page
from ..console import print_object, print_plain, stdout_console
from ..formula_source import read_formula_source
from ..options import (
    AsJson,
    AsOf,
    CampaignFile,
    DataOptions,
    DialectOption,
    HtmlFile,
    PanelFile,
    SectorsFile,
    Workspace,
    data_line,
)

FACTOR_HELP = "A formula in quotes; FILE.py, a Python factor; or the id of a factor in the library, or its start."


def compare(
    first: Annotated[str, typer.Argument(metavar="A", help=FACTOR_HELP)],
    second: Annotated[str, typer.Argument(metavar="B", help="As A.")],
    campaign: CampaignFile = None,
    panel: PanelFile = None,
    sectors: SectorsFile = None,
    as_of: AsOf = None,
    workspace: Workspace = None,
    dialect: DialectOption = "alphaloom",
    html: HtmlFile = None,
    as_json: AsJson = False,
) -> None:
    """Score two factors on the same search days, and say what each adds to the other."""
    words = read_formula_source(first), read_formula_source(second)
    if html:
        refuse_foreign_file(html)
    from ..evaluator import compare_factors

    place = DataOptions(campaign, panel, sectors, as_of.date() if as_of else None, workspace)
    record = compare_factors(words, place, dialect=dialect)
    page = {"page": str(_write_page(html, record))} if html else {}
    if as_json:
        print_object({**record, **page})
        return
    _print_comparison(record)
    if page:
        print_plain("The page:")
        print_plain(page["page"])


def _write_page(target: Path, record: Mapping[str, Any]) -> Path:
    return write_factor_page(target, render_page("comparison.html.j2", build_comparison_page(record)))


def _print_comparison(record: Mapping[str, Any]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from ....evaluation.closing import FactorComparison

    pair, console = FactorComparison.read(record), stdout_console()
    style = "yellow" if record["data"]["synthetic"] else "dim"
    console.print(Text(data_line(record["data"]), style=style), soft_wrap=True)
    console.print(Text(describe_pair(pair), style="bold"), soft_wrap=True)
    together = Table.grid(padding=(0, 2))
    for label, text in list_together(pair):
        together.add_row(Text(label, style="dim"), Text(text))
    console.print(together)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("")
    for letter, sheet in (("A", pair.a), ("B", pair.b)):
        table.add_column(Text(f"{letter}: {summarise_formula(sheet.text)}"), overflow="fold", ratio=1)
    for label, *texts in list_sheet_rows(pair):
        table.add_row(Text(label, style="dim"), *map(Text, texts))
    console.print(table)
    for letter, sheet in (("A", pair.a), ("B", pair.b)):
        for warning in list_warnings(sheet)[0]:
            console.print(Text(f"warning, {letter}: {warning}", style="yellow"))
