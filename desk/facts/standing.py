"""Where a run stands, read from the ledger, its lock and its last progress record."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...ledger import cut_member

if TYPE_CHECKING:
    from ...campaign import Best, Counts, Funnel, ModelSpend
    from ...ledger import Ledger, Run

DEFAULT_WORKSPACE = Path(".alphaloom")
STATE_RUNNING, STATE_PAUSED, STATE_DECIDED, STATE_STOPPED, STATE_INTERRUPTED, STATE_DONE = (
    "running",
    "paused for review",
    "reviewed",
    "stopped",
    "interrupted",
    "done",
)


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
        from ...campaign import Funnel, read_last_progress
        from ...evaluation import Reviews
        from ...evaluation.closing import SealRequests
        from ...evidence.gate import PAID_EVENT

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
    return f" --workspace {shlex.quote(str(workspace))}" if workspace else ""


def name_workspace(place: Path) -> Path | None:
    """Return a workspace as an option has to name it: None for the default one."""
    return None if place.resolve() == DEFAULT_WORKSPACE.resolve() else place


def _read_end_reason(ledger: Ledger, run: str) -> str:
    """Return the recorded budget or person that ended a finished run's search early, or an empty string."""
    body = ledger.artefacts.read(run, "results.json")
    return str(cut_member(body, "ended") or "") if body else ""
