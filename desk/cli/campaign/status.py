"""The command that reports the state of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...facts.standing import STATE_DECIDED, STATE_RUNNING, RunStanding
from ...figures import DASH, count, duration, money, percent, plural
from ..console import print_object, stdout_console
from ..options import AsJson, Workspace
from ..run_lookup import locate_run

if TYPE_CHECKING:
    from ....evaluation.checks import ChanceComparison, Monoculture
    from ....ledger import Ledger, Run


@contextmanager
def open_run(run: str, workspace: Path | None) -> Iterator[tuple[Ledger, Run]]:
    """Open the ledger that holds a campaign's run, and find it."""
    name, place = locate_run(run, workspace)
    from ....evaluation import find_campaign
    from ....ledger import Ledger

    with Ledger.open(place, clock=lambda: datetime.now(UTC)) as ledger:
        yield ledger, find_campaign(ledger, name)


def status(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's id, its folder, or latest.")] = "latest",
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Say where a run stands: its state, the funnel, the best on search, what it cost, what each agent does."""
    with open_run(run, workspace) as (ledger, row):
        from ....evaluation.checks import read_monoculture  # heavy, and a run that is not there needs none of it

        standing = RunStanding.of(ledger, row, workspace)
        likeness = read_monoculture(ledger, row)
    if as_json:
        print_object({**standing.record(), "monoculture": likeness.record()})
    else:
        print_standing(standing, likeness)


def print_standing(standing: RunStanding, likeness: Monoculture | None = None) -> None:
    """Print it as labelled lines, with how alike what was found is where that was computed."""
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    console.print(Text(f"{standing.run}: {_describe_state(standing)}", style="bold"), soft_wrap=True)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    *lines, last = _list_lines(standing)
    for label, text in [*lines, *(_list_likeness(likeness) if likeness else []), last]:
        grid.add_row(f"  {label}", Text(text))
    console.print(grid)


def _list_likeness(found: Monoculture) -> list[tuple[str, str]]:
    """Return how alike hypotheses, their authors, tested factors and models are, each beside chance."""
    lines = []
    if found.mechanisms:
        lines.append(("mechanisms", _describe_likeness(found.mechanisms, "even draws", "fewer than chance")))
    if found.few_rounds:
        rounds = ", ".join(map(str, found.few_rounds))
        lines.append(("widened", f"fewer than three effective mechanisms in round {rounds}: the next took unused ones"))
    if found.authors:
        lines.append(("authors agree", _describe_likeness(found.authors, "permuted", "no difference is seen")))
    lines += [(one.figure, _describe_likeness(one, "unrelated", "alike")) for one in found.factors]
    if found.concentration is not None:
        shares = ", ".join(f"{name} {percent(share, 0)}" for name, share in found.models.items())
        lines.append(("models", f"{shares} (concentration {found.concentration:.2f}; 1 is one model)"))
    if found.judged_by_author and len(found.models) > 1:
        lines.append(("judges", f"{', '.join(found.judged_by_author)} also judged what it wrote"))
    return lines


def _describe_likeness(one: ChanceComparison, chance: str, verdict: str) -> str:
    beside = f"{one.observed:.2f} in {one.count}; {chance} {one.null:.2f}, in 5 % below {one.limit:.2f}"
    return f"{beside}: {verdict}" if one.alike else beside


def _describe_state(standing: RunStanding) -> str:
    if standing.state != STATE_RUNNING:
        words = {STATE_DECIDED: "paused; everything that waited is decided"}.get(standing.state, standing.state)
        return f"{words}: {standing.ended}" if standing.ended else words
    where = f", {standing.phase}" if standing.phase else ""
    return f"{standing.state} (process {standing.process}{where})"


def _list_lines(standing: RunStanding) -> list[tuple[str, str]]:
    from .progress import AGENTS, best_line, funnel_line, variety_line, verdicts_line

    counts, budget = standing.counts, standing.budget
    lines = [
        ("round", f"{standing.round} of {standing.rounds}" if standing.round else DASH),
        ("hypotheses", count(counts.hypotheses) + variety_line(standing)),
        ("factors", funnel_line(counts, int(budget["evaluations"]))),
        ("verdicts", f"{plural(standing.trials, 'trial')} of {count(budget['trials'])}: {verdicts_line(counts)}"),
        ("best", best_line(standing.best)),
        ("spend", _describe_spend(standing)),
        ("for each accepted", _describe_cost(standing)),
    ]
    lines += [(agent, standing.doing[agent]) for agent in AGENTS if agent in standing.doing]
    lines += [("as of", standing.at.replace("T", " ")[:19] + " UTC")] if standing.at else []
    lines += [("awaiting approval", ", ".join(standing.waiting))] if standing.waiting else []
    lines += [("awaiting a decision", "whether its sealed (hold-out) days are opened")] if standing.asks_seal else []
    return [*lines, ("next", standing.next)]


def _describe_spend(standing: RunStanding) -> str:
    spent = standing.spent
    time = f", {duration(standing.elapsed_s)} of work" if standing.elapsed_s is not None else ""
    return f"{plural(spent.calls, 'model call')}, {count(spent.tokens)} tokens, {money(spent.usd)}{time}"


def _describe_cost(standing: RunStanding) -> str:
    costs = standing.per_accepted()
    if costs is None:
        return DASH
    time = f", {duration(costs['seconds'])}" if "seconds" in costs else ""
    return f"{count(costs['calls'])} calls, {count(costs['tokens'])} tokens, {money(costs['usd'])}{time}"
