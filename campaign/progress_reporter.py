"""What a run says of itself while it is worked on, and what the clock and people ask of it meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from ..evaluation import Evaluator, Reviews
from ..evaluation.closing import ResultsBuilder
from ..evidence import RunHalted
from ..ledger import Ledger, Run, canonical_json, count_stops, is_closing, read_json
from ..ledger.files import write_whole
from .progress import Progress, ProgressMeter

__all__ = [
    "CLOSED_BY_HAND",
    "NOW_FILE",
    "STATUS_PAUSED",
    "STATUS_RUNNING",
    "STATUS_STOPPED",
    "ProgressReporter",
    "read_last_progress",
    "refuse_undecided",
]

NOW_FILE = "now.json"
"""File of a run's folder: what the process that works on it does; the last one's word where none does."""
STATUS_RUNNING, STATUS_PAUSED, STATUS_STOPPED = "running", "paused", "stopped"
CLOSED_BY_HAND = "a person ended the search (alphaloom stop --close); such an end is not repeated to the byte"
MIN_REPORT_SECONDS = 0.25
"""Between two tellings of what agents do; what is decisive is told at once."""


def read_last_progress(folder: Path) -> Mapping[str, Any]:
    """Return what the last process that worked on a run said of itself, nothing where none did or it was cut short."""
    try:
        found = read_json(folder / NOW_FILE)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def run_paused_error(run: str, waiting: list[str]) -> RunHalted:
    """Return the word of a run that waits for a person."""
    many = "1 case waits" if len(waiting) == 1 else f"{len(waiting)} cases wait"
    return RunHalted(
        f"paused for review: {many} for approval ({', '.join(waiting)})", field="run", got=run,
        allowed=["approve", "reject", "ask"], hint=f"alphaloom review {run}, and then: alphaloom resume {run}",
        code="paused", exit_code=0,
    )  # fmt: skip


def refuse_undecided(ledger: Ledger, run: Run) -> None:
    """Say that a paused run waits, before anything is read for it, unless all is decided or it is to be closed."""
    waiting = Reviews.of(ledger, run).waiting() if run.status == STATUS_PAUSED else []
    if waiting and not is_closing(ledger, run.id):
        raise run_paused_error(run.id, waiting)


@dataclass
class ProgressReporter:
    """Tells how far a run is, and hears requests; `heard` counts the requests to stop of before this process held the run."""

    evaluator: Evaluator
    rounds: int
    show: Callable[[Progress], None]
    clock: Callable[[], datetime]
    heard: int = 0
    seconds: Callable[[], float] = time.monotonic
    doing: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Go on from what the last process said."""
        before = read_last_progress(self.folder)
        self._meter = ProgressMeter(self.evaluator, self.rounds, self.seconds, float(before.get("elapsed_s") or 0.0))
        self._round = int(before.get("round") or 0)
        self._message = ""
        self._told = float("-inf")

    @property
    def ledger(self) -> Ledger:
        """Return the ledger of the run."""
        return self.evaluator.ledger

    @property
    def folder(self) -> Path:
        """Return the run's folder."""
        return self.ledger.run_folder(self.evaluator.run)

    @property
    def reviews(self) -> Reviews:
        """Return the cases of the run."""
        return self.evaluator.reviews

    # What it says.

    def event(self, event: str, figures: Mapping[str, Any]) -> None:
        """Tell of something decisive in the search."""
        self._round = int(figures.get("round", self._round))
        self._message = f"{figures['branch']} {event}: {figures['reason']}" if "reason" in figures else event
        self.say("searching", self._message)

    def seen(self, doing: Mapping[str, str]) -> None:
        """Tell what agents do, unless something was told just now."""
        self.doing = dict(doing)
        if self.seconds() - self._told >= MIN_REPORT_SECONDS:
            self.say("searching", self._message)

    def say(self, phase: str, message: str = "") -> None:
        """Show the progress, and leave it where other processes find it."""
        self.show(self.note(phase, message))

    def note(self, phase: str, message: str = "") -> Progress:
        """Leave the progress where other processes find it."""
        self._told = self.seconds()
        progress = self._meter.read(phase, self._round, message, self.doing)
        record = asdict(progress) | {"at": self.clock().isoformat()}
        write_whole(self.folder / NOW_FILE, canonical_json(record).encode())
        return progress

    # What it hears.

    def halted(self) -> bool:
        """Tell whether the run is to rest between two steps: somebody asked it to stop, or factors wait for a person."""
        if count_stops(self.ledger, self.evaluator.run) > self.heard:
            return True
        return bool(self.reviews.waiting()) and not is_closing(self.ledger, self.evaluator.run)

    def ended(self) -> str:
        """Name what ends the search from outside: a request to close, or the clock; nothing else."""
        if is_closing(self.ledger, self.evaluator.run):
            return CLOSED_BY_HAND
        limit = self.evaluator.budget.wall_s
        if limit is None or self._meter.worked() < limit:
            return ""
        return f"budget.wall_s: {limit:g} s of work are used up; such an end is not repeated to the byte"

    def rest(self) -> RunHalted:
        """Note why the run rests, and return the word for it; what waits is written down for whoever decides."""
        run, waiting = self.evaluator.run, self.reviews.waiting()
        if waiting and not is_closing(self.ledger, run):
            dossier = ResultsBuilder(self.evaluator)
            for name in waiting:
                self.reviews.keep_file(name, dossier.case(name))
            self.say(STATUS_PAUSED)
            self.ledger.finish_run(run, STATUS_PAUSED)
            return run_paused_error(run, waiting)
        self.say(STATUS_STOPPED)
        self.ledger.finish_run(run, STATUS_STOPPED)
        return RunHalted(
            "stopped: the step under way was finished, and nothing is lost", field="run", got=run,
            hint=f"alphaloom resume {run}", code="stopped", exit_code=130,
        )  # fmt: skip
