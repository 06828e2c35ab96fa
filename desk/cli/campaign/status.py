"""The command that reports the state of a run; `RunStanding` reads it from the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...figures import DASH, count, duration, money, percent, plural
from ..console import print_object, stdout_console
from ..options import AsJson, Workspace
from ..run_lookup import DEFAULT_WORKSPACE, locate_run

if TYPE_CHECKING:
    from ....campaign import Best, Counts, Funnel, ModelSpend
    from ....evaluation.checks import ChanceComparison, Monoculture
    from ....ledger import Ledger, Run


STATE_RUNNING, STATE_PAUSED, STATE_DECIDED, STATE_STOPPED, STATE_INTERRUPTED, STATE_DONE = (
    "running",
    "paused for review",
    "reviewed",
    "stopped",
    "interrupted",
    "done",
)


@contextmanager
def open_run(run: str, workspace: Path | None) -> Iterator[tuple[Ledger, Run]]:
    """Open the ledger that holds a campaign's run, and find it."""
    name, place = locate_run(run, workspace)
    from ....evaluation import find_campaign
    from ....ledger import Ledger

    with Ledger.open(place, clock=lambda: datetime.now(UTC)) as ledger:
        yield ledger, find_campaign(ledger, name)


@dataclass(frozen=True)
class RunStanding:
    """The state of one run for another process; `at` is the time of the last progress record.

    Figures are those of search days; of the gate there are only verdicts.
    """

    run: str
    state: str
    process: str | None
    phase: str
    round: int
    rounds: int
    mechanisms: float | None
    niches: int
    counts: Counts
    budget: Mapping[str, Any]
    trials: int
    best: Best | None
    spent: ModelSpend
    elapsed_s: float | None
    doing: Mapping[str, str]
    at: str
    waiting: tuple[str, ...]
    asks_seal: bool
    ended: str
    next: str

    @classmethod
    def of(cls, ledger: Ledger, run: Run, workspace: Path | None = None, counted: Funnel | None = None) -> RunStanding:
        """Read a run's state from its ledger, its lock and its last progress record.

        The next command names the workspace if the person had to. `counted` is what was counted of the run before.
        """
        from ....campaign import Funnel, read_last_progress
        from ....evaluation import Reviews
        from ....evaluation.closing import SealRequests
        from ....evidence.gate import PAID_EVENT

        reviews, folder = Reviews.of(ledger, run), ledger.runs.folder(run.id)
        last, funnel, settings = read_last_progress(folder), counted or Funnel(reviews), run.config["settings"]
        funnel.reviews = reviews  # what counted before did so from a ledger that is closed
        funnel.read()
        waiting, process = tuple(reviews.waiting()), ledger.runs.holder(run.id)
        asks_seal = run.status == "paused" and SealRequests(ledger, run.id).waits()
        state = state_of(run.status, process, waits=asks_seal or bool(waiting))
        return cls(
            run=run.id, state=state, process=process, phase=str(last.get("phase", "")),
            round=int(last.get("round") or 0), rounds=int(settings["agents"]["rounds"]),
            mechanisms=last.get("mechanisms"), niches=int(last.get("niches") or 0),
            counts=funnel.counts, budget={**settings["models"]["budget"], **settings["budget"]},
            trials=sum(trial.run == run.id for trial in ledger.trials.all())
            + len(ledger.events.of(run.id, PAID_EVENT)),
            best=funnel.best, spent=funnel.spent, elapsed_s=last.get("elapsed_s"), doing=last.get("doing") or {},
            at=str(last.get("at", "")), waiting=waiting, asks_seal=asks_seal,
            ended=_read_end_reason(ledger, run.id),
            next=_find_next_command(state, run.id, workspace, asks_seal=asks_seal),
        )  # fmt: skip  # a table

    def per_accepted(self) -> dict[str, float] | None:
        """Return the cost per accepted factor so far: calls, tokens, US dollars, seconds; None before the first."""
        accepted = self.counts.accepted
        if not accepted:
            return None
        spent = asdict(self.spent) | ({} if self.elapsed_s is None else {"seconds": self.elapsed_s})
        return {name: value / accepted for name, value in spent.items()}

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self) | {"per_accepted": self.per_accepted()}


def state_of(status: str, process: str | None, *, waits: bool) -> str:
    """Return a run's state from its last status, the process that holds it, and whether it waits for a person."""
    if process is not None:
        return STATE_RUNNING
    if status == "paused":
        return STATE_PAUSED if waits else STATE_DECIDED
    return {"done": STATE_DONE, "stopped": STATE_STOPPED}.get(status, STATE_INTERRUPTED)


def _find_next_command(state: str, run: str, workspace: Path | None, *, asks_seal: bool) -> str:
    """Return the command that continues from here."""
    paused = "evidence seal" if asks_seal else "review"
    after = {STATE_PAUSED: paused, STATE_RUNNING: "log", STATE_DONE: "report"}.get(state, "resume")
    return f"alphaloom {after} {run}" + (" --follow" if after == "log" else "") + workspace_option(workspace)


def workspace_option(workspace: Path | None) -> str:
    """Return the option that names a workspace; empty for the default one."""
    return f" --workspace {workspace}" if workspace else ""


def name_workspace(place: Path) -> Path | None:
    """Return a workspace as an option has to name it: None for the default one."""
    return None if place.resolve() == DEFAULT_WORKSPACE.resolve() else place


def _read_end_reason(ledger: Ledger, run: str) -> str:
    """Return the recorded budget or person that ended a finished run's search early, or an empty string."""
    from ....evaluation.closing import Results

    body = ledger.artefacts.read(run, "results.json")
    return Results.model_validate_json(body).ended or "" if body else ""


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
