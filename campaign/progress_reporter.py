"""The running process' reports of its progress, and its reaction to the clock and to people's requests."""

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
"""File of a run's folder with the progress of the process that runs it, or of the last one."""
STATUS_RUNNING, STATUS_PAUSED, STATUS_STOPPED = "running", "paused", "stopped"
CLOSED_BY_HAND = "a person ended the search (alphaloom stop --close); such an end is not repeated to the byte"
MIN_REPORT_SECONDS = 0.25
"""Least time between two reports of the agents' actions; decisive events are reported at once."""


def read_last_progress(folder: Path) -> Mapping[str, Any]:
    """Return the last progress record of a run; empty if there is none or it was cut short."""
    try:
        record = read_json(folder / NOW_FILE)
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def make_pause_error(run: str, waiting: list[str]) -> RunHalted:
    """Return the error of a run that waits for a person."""
    cases = "1 case waits" if len(waiting) == 1 else f"{len(waiting)} cases wait"
    return RunHalted(
        f"paused for review: {cases} for approval ({', '.join(waiting)})",
        field="run",
        got=run,
        allowed=["approve", "reject", "ask"],
        hint=f"alphaloom review {run}, and then: alphaloom resume {run}",
        code="paused",
        exit_code=0,
    )


def refuse_undecided(ledger: Ledger, run: Run) -> None:
    """Raise `RunHalted` for a paused run before anything is read for it, unless nothing waits or it is to close."""
    waiting = Reviews.of(ledger, run).waiting() if run.status == STATUS_PAUSED else []
    if waiting and not is_closing(ledger.events, run.id):
        raise make_pause_error(run.id, waiting)


@dataclass
class ProgressReporter:
    """Report a run's progress and check for requests.

    `heard` is the number of requests to stop from before this process held the run.
    """

    evaluator: Evaluator
    rounds: int
    show: Callable[[Progress], None]
    clock: Callable[[], datetime]
    heard: int = 0
    seconds: Callable[[], float] = time.monotonic
    doing: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Continue from the last process' record."""
        before = read_last_progress(self.folder)
        worked_s = float(before.get("elapsed_s") or 0.0)
        self._meter = ProgressMeter(self.evaluator.meter, self.reviews, self.rounds, self.seconds, worked_s)
        self._round = int(before.get("round") or 0)
        self._message = ""
        self._told = float("-inf")

    @property
    def ledger(self) -> Ledger:
        """The ledger of the run."""
        return self.evaluator.ledger

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.ledger.runs.folder(self.evaluator.run)

    @property
    def reviews(self) -> Reviews:
        """The cases of the run."""
        return self.evaluator.reviews

    def event(self, event: str, figures: Mapping[str, Any]) -> None:
        """Report a decisive event of the search."""
        self._round = int(figures.get("round", self._round))
        self._message = f"{figures['branch']} {event}: {figures['reason']}" if "reason" in figures else event
        self.say("searching", self._message)

    def report_doing(self, doing: Mapping[str, str]) -> None:
        """Report the agents' actions, unless a report was just made."""
        self.doing = dict(doing)
        if self.seconds() - self._told >= MIN_REPORT_SECONDS:
            self.say("searching", self._message)

    def say(self, phase: str, message: str = "") -> None:
        """Show the progress and record it for other processes."""
        self.show(self.note(phase, message))

    def note(self, phase: str, message: str = "") -> Progress:
        """Record the progress for other processes."""
        self._told = self.seconds()
        progress = self._meter.read(phase, self._round, message, self.doing)
        record = asdict(progress) | {"at": self.clock().isoformat()}
        write_whole(self.folder / NOW_FILE, canonical_json(record).encode())
        return progress

    def is_halted(self) -> bool:
        """Return whether the run is to pause between two steps: on request, or because factors wait for a person."""
        if count_stops(self.ledger.events, self.evaluator.run) > self.heard:
            return True
        return bool(self.reviews.waiting()) and not is_closing(self.ledger.events, self.evaluator.run)

    def find_end_reason(self) -> str:
        """Return an external reason to end the search (a request to close, or the clock), or an empty string."""
        if is_closing(self.ledger.events, self.evaluator.run):
            return CLOSED_BY_HAND
        limit = self.evaluator.budget.wall_s
        if limit is None or self._meter.worked() < limit:
            return ""
        return f"budget.wall_s: {limit:g} s of work are used up; such an end is not repeated to the byte"

    def pause_run(self) -> RunHalted:
        """Record why the run pauses and return its error; the waiting cases are written for the person who decides."""
        run, waiting = self.evaluator.run, self.reviews.waiting()
        if waiting and not is_closing(self.ledger.events, run):
            builder = ResultsBuilder(self.evaluator)
            for name in waiting:
                self.reviews.keep_file(name, builder.case(name))
            self.say(STATUS_PAUSED)
            self.ledger.runs.finish(run, STATUS_PAUSED)
            return make_pause_error(run, waiting)
        self.say(STATUS_STOPPED)
        self.ledger.runs.finish(run, STATUS_STOPPED)
        return RunHalted(
            "stopped: the step under way was finished, and nothing is lost",
            field="run",
            got=run,
            hint=f"alphaloom resume {run}",
            code="stopped",
            exit_code=130,
        )
