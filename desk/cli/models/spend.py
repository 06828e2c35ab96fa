"""The command that reports the cost of model calls: of a run, a day or a tenant."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...facts.model_spend import PARTS, TIERS, describe_spend, sum_spend
from ...figures import DASH, count, money
from ..console import print_object, stderr_console, stdout_console
from ..options import AsJson, Workspace
from ..run_lookup import find_run, locate_run

if TYPE_CHECKING:
    from rich.table import Table


def spend(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="A run's id, its folder, or latest.")] = None,
    day: Annotated[
        datetime | None, typer.Option("--day", formats=["%Y-%m-%d"], help="Calls of all runs on this day, UTC.")
    ] = None,
    tenant: Annotated[
        str | None, typer.Option("--tenant", metavar="NAME", help="Calls on behalf of this name.")
    ] = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Say what model calls took, by role, intent, model and tenant, and for each accepted factor.

    Give RUN, --day, --tenant, or several: then calls that are all of it. Beside it stands what the same tokens would
    have cost at the first model of each tier that the run names: an estimate, since another model would have said
    something else. Replies that another run had paid for are priced, and told apart.
    """
    if run is None and day is None and tenant is None:
        raise typer.BadParameter("give a run, --day or --tenant", param_hint="RUN")
    name, place = locate_run(run or "latest", workspace)
    from ....ledger import Ledger

    with Ledger.open(place, clock=lambda: datetime.now(UTC)) as ledger:
        found = find_run(ledger, name).id if run is not None else None
        report = sum_spend(ledger, found, day.date().isoformat() if day else "", tenant)
    if as_json:
        print_object(report)
    else:
        _print(report)


def _print(report: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    of = [report["run"], report["day"] and f"{report['day']} (UTC)", report["tenant"] and f"tenant {report['tenant']}"]
    console.print(Text(", ".join(part_name for part_name in of if part_name), style="bold"))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in describe_spend(report):
        grid.add_row(f"  {label}", Text(text))
    console.print(grid)
    if not report["calls"]:
        stderr_console().print("No call is recorded there.")
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("by", "", "calls", "tokens in", "tokens out", "cost"):
        table.add_column(heading, justify="left" if heading in ("by", "") else "right", no_wrap=heading != "")
    for part in PARTS:
        for word, bill in report[f"by_{part}"].items():
            figures = (count(bill["calls"]), count(bill["tokens_in"]), count(bill["tokens_out"]), money(bill["usd"]))
            table.add_row(part, Text(word or DASH), *figures)
    console.print(table)
    console.print(_tabulate_questions(report["by_question"]))


def _tabulate_questions(rows: dict[str, dict[str, Any]]) -> Table:
    """Return the table of questions: where each kind went, and what it would have cost at one tier alone."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("question", "local", "frontier", "went up", "cost", "always local", "always frontier"):
        table.add_column(heading, justify="left" if heading == "question" else "right", no_wrap=heading != "question")
    for kind, row in rows.items():
        counts = (count(row["local"]), count(row["frontier"]), count(row["went_up"]))
        alone = (DASH if row["always"][tier] is None else money(row["always"][tier]) for tier in TIERS)
        table.add_row(Text(kind), *counts, money(row["usd"]), *alone)
    return table
