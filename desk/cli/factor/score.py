"""The command that scores one factor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from ...figures import DASH, any_value, describe_added_value, number, percent
from ...profile import profile_rows
from ...rules import costs
from ..code import read_formula_source
from ..console import print_object, stdout_console
from ..data_options import DataOptions, data_line
from ..options import (
    AsJson,
    AsOf,
    CampaignFile,
    DialectOption,
    Executor,
    PanelFile,
    SandboxBackend,
    SectorsFile,
    Workspace,
)
from .formula_command import FormulaCommand
from .stress_table import print_stress

__all__ = ["app", "score"]

DATA_CODE, SUSPECTED_MARK = "data", " suspected: "
"""The code of a warning that is about the panel, whatever the factor."""
app = typer.Typer(no_args_is_help=True, help="Work on factors.")


@app.command(
    cls=FormulaCommand,
    short_help="Score a factor on the search window.",
)
def score(
    expression: Annotated[
        str, typer.Argument(metavar="EXPR", help="e.g. 'rank(ts_std(returns, 30)) * -1'; or FILE.py, a Python factor")
    ],
    campaign: CampaignFile = None,
    panel: PanelFile = None,
    sectors: SectorsFile = None,
    as_of: AsOf = None,
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
    as_json: AsJson = False,
) -> None:
    """Score a factor on the search window; days that are sealed are never read."""
    code = read_formula_source(expression)
    from ..research import score_factor

    place = DataOptions(campaign, panel, sectors, as_of.date() if as_of else None, workspace, executor, sandbox_backend)
    sheet = score_factor(code, place, gate=gate, dialect=dialect, stress=stress)
    if as_json:
        print_object(sheet)
    else:
        _print_sheet(sheet)
        if stress:
            print_stress(sheet["stress"])


def _print_sheet(sheet: Mapping[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    console.print(
        Text(data_line(sheet["data"]), style="yellow" if sheet["data"]["synthetic"] else "dim"), soft_wrap=True
    )
    console.print(Text(str(sheet.get("text", "")), style="bold"))
    table = Table.grid(padding=(0, 2))
    for name, value in _rows(sheet):
        table.add_row(Text(name, style="dim"), Text(value))
    console.print(table)
    warnings = sheet.get("warnings") or ()
    told = [warning for warning in warnings if warning.get("code") != DATA_CODE]
    for warning in told:
        console.print(Text(f"warning: {warning.get('message')}", style="yellow"))
    if len(told) < len(warnings):
        console.print(Text("the data", style="bold"))
    lines = [_shorten_warning(str(warning.get("message"))) for warning in warnings if warning.get("code") == DATA_CODE]
    for line in lines:
        console.print(Text(f"- {line}"))
    if any(SUSPECTED_MARK in line for line in lines):
        console.print(Text("where, why it matters and what to do: alphaloom market audit PANEL", style="dim"))


def _shorten_warning(message: str) -> str:
    """Return what was seen, in one line, without the places, the reasons and the remedy of a suspicion."""
    if SUSPECTED_MARK not in message:
        return message
    trap, _, rest = message.partition(SUSPECTED_MARK)
    return f"{trap}{SUSPECTED_MARK}{rest.partition('; ')[0].partition(': ')[0]}"


def _describe_direction(sheet: Mapping[str, Any]) -> str:
    """Say when the book holds the factor the other way round, as its own RankIC tells."""
    return ", held short" if (sheet.get("rank_ic") or 0.0) < 0 else ""


def _rows(sheet: Mapping[str, Any]) -> list[tuple[str, str]]:
    window = sheet.get("window")
    known = [
        ("id", str(sheet.get("id", DASH))),
        ("window", _window(window) if isinstance(window, Mapping) else any_value(window)),
        ("horizon", f"{any_value(sheet.get('horizon_days'))} days"),
        ("RankIC", number(sheet.get("rank_ic"), 4, sign=True)),
        ("t, Newey-West", number(sheet.get("t"), 2, sign=True)),
        ("IC", number(sheet.get("ic"), 4, sign=True)),
        ("ICIR, of RankIC", number(sheet.get("icir"), 2, sign=True)),
        ("turnover a day", percent(sheet.get("turnover"))),
        (f"Sharpe after costs{_describe_direction(sheet)}", number(sheet.get("net_sharpe"), 2, sign=True)),
        ("costs", costs(sheet.get("costs"))),
        *profile_rows(sheet),
    ]
    added = [("beside the library", describe_added_value(sheet["incremental"]))] if sheet.get("incremental") else []
    return [*known, *added, *_verdict(sheet)]


def _window(window: Mapping[str, Any]) -> str:
    return f"{window.get('name', '')} {window.get('first', DASH)} to {window.get('last', DASH)}".strip()


def _verdict(sheet: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what the gate said, if it was asked."""
    gate = sheet.get("gate")
    if not gate:
        return []
    selection = gate.get("selection") or {}
    said = [("verdict", str(gate.get("verdict")))]
    if gate.get("trial") is not None:
        said.append(("trial", f"no. {gate['trial']}, p {number(selection.get('p_value'), 5)}"))
    for item in gate.get("reasons") or ():
        said.append((f"  {item.get('step')}", f"{'passed' if item.get('passed') else 'failed'}: {item.get('message')}"))
    return said
