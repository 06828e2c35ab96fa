"""Where a run stands: what works on it, how far it is, what waits, and what may be done next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..run_lookup import locate_run

if TYPE_CHECKING:
    from ....campaign import Best, Counts, ModelSpend
    from ....ledger import Ledger, Run

__all__ = ["RunStanding", "open_run", "state_of", "workspace_option"]

STATE_RUNNING, STATE_PAUSED, STATE_DECIDED, STATE_STOPPED, STATE_INTERRUPTED, STATE_DONE = (
    "running", "paused for review", "reviewed", "stopped", "interrupted", "done",
)  # fmt: skip


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
    """One run as another process sees it; `at` is when the process that works on it said last what it does.

    Figures are those of search days; what came before the gate is told by its word alone.
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
    ended: str
    next: str

    @classmethod
    def of(cls, ledger: Ledger, run: Run, workspace: Path | None = None) -> RunStanding:
        """Read where a run stands from its ledger, its lock and what its last process said.

        A workspace that had to be named is named in the command that goes on, too.
        """
        from ....campaign import Funnel, read_last_progress
        from ....evaluation import Reviews
        from ....evidence.gate import PAID_EVENT

        reviews, folder = Reviews.of(ledger, run), ledger.run_folder(run.id)
        said, funnel, settings = read_last_progress(folder), Funnel(reviews).read(), run.config["settings"]
        waiting, process = tuple(reviews.waiting()), ledger.holder(run.id)
        state = state_of(run.status, process, waiting)
        return cls(
            run=run.id, state=state, process=process, phase=str(said.get("phase", "")),
            round=int(said.get("round") or 0), rounds=int(settings["agents"]["rounds"]),
            mechanisms=said.get("mechanisms"), niches=int(said.get("niches") or 0),
            counts=funnel.counts, budget={**settings["models"]["budget"], **settings["budget"]},
            trials=sum(trial.run == run.id for trial in ledger.trials()) + len(ledger.events(run.id, PAID_EVENT)),
            best=funnel.best, spent=funnel.spent, elapsed_s=said.get("elapsed_s"), doing=said.get("doing") or {},
            at=str(said.get("at", "")), waiting=waiting, ended=_read_end_reason(ledger, run.id), next=_next_command(state, run.id, workspace),
        )  # fmt: skip

    def per_accepted(self) -> dict[str, float] | None:
        """Return what each accepted factor has cost so far: calls, tokens, US dollars, seconds; None before the first."""
        accepted = self.counts.accepted
        if not accepted:
            return None
        spent = asdict(self.spent) | ({} if self.elapsed_s is None else {"seconds": self.elapsed_s})
        return {name: value / accepted for name, value in spent.items()}

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self) | {"per_accepted": self.per_accepted()}


def state_of(status: str, process: str | None, waiting: tuple[str, ...]) -> str:
    """Return the word for a run from its last status, who holds it, and what waits."""
    if process is not None:
        return STATE_RUNNING
    if status == "paused":
        return STATE_PAUSED if waiting else STATE_DECIDED
    return {"done": STATE_DONE, "stopped": STATE_STOPPED}.get(status, STATE_INTERRUPTED)


def _next_command(state: str, run: str, workspace: Path | None) -> str:
    """Return the command that goes on from here."""
    after = {STATE_PAUSED: "review", STATE_RUNNING: "log", STATE_DONE: "report"}.get(state, "resume")
    return f"alphaloom {after} {run}" + (" --follow" if after == "log" else "") + workspace_option(workspace)


def workspace_option(workspace: Path | None) -> str:
    """Return what a command must say of a workspace that had to be named; nothing of the usual one."""
    return f" --workspace {workspace}" if workspace else ""


def _read_end_reason(ledger: Ledger, run: str) -> str:
    """Return which budget or person ended a run's search early, if it is over and one did, as it was recorded."""
    from ....evaluation.closing import Results

    body = ledger.recorded(run, "results.json")
    return Results.model_validate_json(body).ended or "" if body else ""
