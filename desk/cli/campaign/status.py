"""The command that says where a run stands, while it is worked on and afterwards."""

from __future__ import annotations

from typing import Annotated

import typer

from ...figures import DASH, count, duration, money, plural
from ..console import print_object, stdout_console
from ..options import AsJson, Workspace
from .standing import STATE_DECIDED, STATE_RUNNING, RunStanding, open_run

__all__ = ["print_standing", "status"]


def status(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's id, its folder, or latest.")] = "latest",
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Say where a run stands: its state, the funnel, the best on search, what it cost, what each agent does."""
    with open_run(run, workspace) as (ledger, row):
        standing = RunStanding.of(ledger, row, workspace)
    if as_json:
        print_object(standing.record())
    else:
        print_standing(standing)


def print_standing(standing: RunStanding) -> None:
    """Print it as lines of a name and what there is to say."""
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    console.print(Text(f"{standing.run}: {_state(standing)}", style="bold"), soft_wrap=True)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, said in _lines(standing):
        grid.add_row(f"  {label}", Text(said))
    console.print(grid)


def _state(standing: RunStanding) -> str:
    if standing.state != STATE_RUNNING:
        said = {STATE_DECIDED: "paused; everything that waited is decided"}.get(standing.state, standing.state)
        return f"{said}: {standing.ended}" if standing.ended else said
    where = f", {standing.phase}" if standing.phase else ""
    return f"{standing.state} (process {standing.process}{where})"


def _lines(standing: RunStanding) -> list[tuple[str, str]]:
    from .progress import AGENTS, best_line, funnel_line, variety_line, verdicts_line

    counts, budget = standing.counts, standing.budget
    lines = [
        ("round", f"{standing.round} of {standing.rounds}" if standing.round else DASH),
        ("hypotheses", count(counts.hypotheses) + variety_line(standing)),
        ("factors", funnel_line(counts, int(budget["evaluations"]))),
        ("verdicts", f"{plural(standing.trials, 'trial')} of {count(budget['trials'])}: {verdicts_line(counts)}"),
        ("best", best_line(standing.best)),
        ("spend", _spend(standing)),
        ("for each accepted", _cost_per_accepted(standing)),
    ]
    lines += [(agent, standing.doing[agent]) for agent in AGENTS if agent in standing.doing]
    lines += [("as of", standing.at.replace("T", " ")[:19] + " UTC")] if standing.at else []
    lines += [("awaiting approval", ", ".join(standing.waiting))] if standing.waiting else []
    return [*lines, ("next", standing.next)]


def _spend(standing: RunStanding) -> str:
    spent = standing.spent
    time = f", {duration(standing.elapsed_s)} of work" if standing.elapsed_s is not None else ""
    return f"{plural(spent.calls, 'model call')}, {count(spent.tokens)} tokens, {money(spent.usd)}{time}"


def _cost_per_accepted(standing: RunStanding) -> str:
    each = standing.per_accepted()
    if each is None:
        return DASH
    time = f", {duration(each['seconds'])}" if "seconds" in each else ""
    return f"{count(each['calls'])} calls, {count(each['tokens'])} tokens, {money(each['usd'])}{time}"
