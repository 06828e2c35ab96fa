"""The command that scores one factor, and the table of its stress tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...figures import DASH, any_value, describe_added_value, describe_costs, number, percent, plural
from ...profile import STRESS_GROUP_TITLES, curve_rows, describe_scenario, format_stressed_figures, profile_rows
from ...report.factor_page import build_factor_page, refuse_foreign_file, render_page, write_factor_page
from ..console import print_object, print_plain, stdout_console
from ..data.settings import (
    CalendarOption,
    FundamentalsFile,
    MembersFile,
    ReadSettings,
    SymbolChangesFile,
    gather_tables,
)
from ..formula_source import read_formula_source
from ..options import (
    AsJson,
    AsOf,
    CampaignFile,
    DataOptions,
    DialectOption,
    Executor,
    FormulaCommand,
    HtmlFile,
    PanelFile,
    SandboxBackend,
    SectorsFile,
    Workspace,
    data_line,
)
from .batch import FormulasFile, SheetsFile, refuse_beside_file, require_expression, score_file

if TYPE_CHECKING:
    from rich.table import Table

    from ....evaluation.closing import FactorSheet, FactorStress, HandVerdict, Note, StressScenario


DATA_CODE, SUSPECTED_MARK = "data", " suspected: "
"""The code of a warning about the panel, and the mark in its message."""
app = typer.Typer(no_args_is_help=True, help="Work on factors.")


@app.command(
    cls=FormulaCommand,
    short_help="Score a factor on the search window.",
)
def score(
    expression: Annotated[
        str | None,
        typer.Argument(metavar="EXPR", help="e.g. 'rank(ts_std(returns, 30)) * -1'; or FILE.py, a Python factor"),
    ] = None,
    file: FormulasFile = None,
    out: SheetsFile = None,
    campaign: CampaignFile = None,
    panel: PanelFile = None,
    sectors: SectorsFile = None,
    as_of: AsOf = None,
    members: MembersFile = None,
    fundamentals: FundamentalsFile = None,
    symbol_changes: SymbolChangesFile = None,
    calendar: CalendarOption = "",
    read: ReadSettings = None,
    workspace: Workspace = None,
    gate: Annotated[
        bool, typer.Option("--gate", help="Put it before the gate, which spends a trial for good.")
    ] = False,
    stress: Annotated[
        bool, typer.Option("--stress", help="Also put it through crashes, bad data, late fills and higher costs.")
    ] = False,
    dialect: DialectOption = "alphaloom",
    executor: Executor = None,
    sandbox_backend: SandboxBackend = None,
    html: HtmlFile = None,
    as_json: AsJson = False,
) -> None:
    """Score a factor, or a file of formulas, on the search window; days that are sealed are never read."""
    place = DataOptions(campaign, panel, sectors, as_of.date() if as_of else None, workspace, executor, sandbox_backend)
    files = {"members": members, "fundamentals": fundamentals, "symbol_changes": symbol_changes}
    place = replace(place, tables=gather_tables(files, calendar, read))
    if file is not None:
        refuse_beside_file(EXPR=expression, gate=gate, stress=stress, html=html)
        score_file(file, out, place, dialect, as_json=as_json)
        return
    code = read_formula_source(require_expression(expression, out))
    if html:
        refuse_foreign_file(html)
    from ..evaluator import score_factor

    sheet = score_factor(code, place, gate=gate, dialect=dialect, stress=stress)
    if as_json:
        page = {"page": str(_write_page(html, sheet))} if html else {}
        print_object({**sheet, **page})
        return
    _print_sheet(sheet)
    if html:  # after the sheet: a trial that was spent is shown even if the disk is full
        print_plain("The page:")
        print_plain(str(_write_page(html, sheet)))


def _write_page(target: Path, sheet: Mapping[str, Any]) -> Path:
    return write_factor_page(target, render_page("factor.html.j2", build_factor_page(sheet)))


def _print_sheet(record: Mapping[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    from ....evaluation.closing import FactorSheet, FactorStress

    sheet, console = FactorSheet.read(record), stdout_console()
    synthetic = record["data"]["synthetic"]
    console.print(Text(data_line(record["data"]), style="yellow" if synthetic else "dim"), soft_wrap=True)
    console.print(Text(sheet.text, style="bold"))
    table = Table.grid(padding=(0, 2))
    for name, value in _list_rows(sheet):
        table.add_row(Text(name, style="dim"), Text(value))
    console.print(table)
    _print_warnings(sheet.warnings)
    if stress := record.get("stress"):
        print_stress(FactorStress.read(stress), stress["rule"])


def _print_warnings(warnings: Sequence[Note]) -> None:
    """Print the warnings about the factor, then those about the data, one line each."""
    from rich.text import Text

    console = stdout_console()
    for warning in warnings:
        if warning.code != DATA_CODE:
            console.print(Text(f"warning: {warning.message}", style="yellow"))
    lines = [_shorten_warning(warning.message) for warning in warnings if warning.code == DATA_CODE]
    if lines:
        console.print(Text("the data", style="bold"))
    for line in lines:
        console.print(Text(f"- {line}"))
    if any(SUSPECTED_MARK in line for line in lines):
        console.print(Text("where, why it matters and what to do: alphaloom data audit PANEL", style="dim"))


def _shorten_warning(message: str) -> str:
    """Return a suspicion in one line, without places, reasons and remedy."""
    if SUSPECTED_MARK not in message:
        return message
    trap, _, details = message.partition(SUSPECTED_MARK)
    return f"{trap}{SUSPECTED_MARK}{details.partition('; ')[0].partition(': ')[0]}"


def _list_rows(sheet: FactorSheet) -> list[tuple[str, str]]:
    window = sheet.window
    span = f"{window.name} {window.first or DASH} to {window.last or DASH}" if window else DASH
    short = ", held short" if (sheet.rank_ic or 0.0) < 0 else ""
    return [
        ("id", sheet.id),
        ("window", span),
        ("horizon", f"{any_value(sheet.horizon_days)} days"),
        ("RankIC", number(sheet.rank_ic, 4, sign=True)),
        ("t, Newey-West", number(sheet.t, 2, sign=True)),
        ("IC", number(sheet.ic, 4, sign=True)),
        ("ICIR, of RankIC", number(sheet.icir, 2, sign=True)),
        ("turnover a day", percent(sheet.turnover)),
        (f"Sharpe after costs{short}", number(sheet.net_sharpe, 2, sign=True)),
        ("costs", describe_costs(sheet.costs)),
        *curve_rows(sheet),
        *profile_rows(sheet),
        *([("beside the library", describe_added_value(sheet.incremental))] if sheet.incremental else []),
        *(_list_verdict_rows(sheet.gate) if sheet.gate else []),
    ]


def _list_verdict_rows(gate: HandVerdict) -> list[tuple[str, str]]:
    """Return the gate's verdict with every step."""
    rows = [("verdict", gate.verdict)]
    if gate.trial is not None:
        p_value = number(gate.selection.p_value if gate.selection else None, 5)
        rows.append(("trial", f"no. {gate.trial}, p {p_value}"))
    steps = [(f"  {reason.step}", "passed" if reason.passed else "failed", reason.message) for reason in gate.reasons]
    return rows + [(label, f"{outcome}: {message}") for label, outcome, message in steps]


STRESS_STYLES = {"breaks": "bold red", "weakens": "yellow", "unclear": "yellow", "holds": "green", "untested": "dim"}


def print_stress(stress: FactorStress, rule: str) -> None:
    """Print one factor's stress tests: the sentence, the table, and the rule."""
    from rich.text import Text

    console = stdout_console()
    broken = [weakness.message for weakness in stress.weaknesses]
    console.print(Text("\nunder stress", style="bold"))
    for line in broken or [stress.sentence]:
        console.print(Text(line, style="red" if broken else ""))
    if all(scenario.verdict == "untested" for scenario in stress.scenarios):
        console.print(Text(_describe_untested(stress), style="dim"))
        return
    console.print(_build_table(stress.scenarios))
    console.print(Text(_write_caption(stress, rule), style="dim"))


def _describe_untested(stress: FactorStress) -> str:
    """Explain in one line why there is no table: a share of an insignificant figure means nothing."""
    figures = f"RankIC {number(stress.clean.rank_ic, 4, sign=True)}, t {number(stress.clean.t, 1, sign=True)}"
    amount = plural(len(stress.scenarios), "stress", "stresses")
    return f"{amount} left untested, nothing to break ({figures}); --json has their figures."


def _write_caption(stress: FactorStress, rule: str) -> str:
    even = stress.clean.break_even_bps or 0.0
    costs = f"Nothing is left of its book at {number(even, 1)} bp a side. " if even > 0 else ""
    return f"{costs}In the direction that the search window shows, on its days only. {rule}"


def _build_table(scenarios: Sequence[StressScenario]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("stress", overflow="fold")
    for name in ("RankIC", "against", "keeps", "net Sharpe", "against", "keeps", "values left"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    group = ""
    for scenario in scenarios:
        if scenario.group != group:
            group = scenario.group
            table.add_row(Text(STRESS_GROUP_TITLES.get(group, group), style="bold"))
        verdict = Text(scenario.verdict, style=STRESS_STYLES.get(scenario.verdict, ""))
        table.add_row(Text(f"  {describe_scenario(scenario)}"), *format_stressed_figures(scenario), verdict)
    return table
