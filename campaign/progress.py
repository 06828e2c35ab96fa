"""The progress of a run: for a person who watches, and as the running process reports it, which hears requests to stop.

It serves the process that runs the campaign and any other that watches it; its memory does not grow with the run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from ..evaluation import BudgetMeter, Evaluator, Reviews
from ..evaluation.closing import ResultsBuilder, SealRequests
from ..evidence import SET_PREFIX, RunHalted
from ..evidence.gate import UNTRADABLE, Word
from ..ledger import Attempt, Evaluation, Ledger, ModelCall, Run, canonical_json, count_stops, is_closing, read_json
from ..ledger.files import write_whole
from ..search import count_niches, effective_number_of_round

Since = Callable[[str, int], Iterator[tuple[int, Any]]]
"""Yields the rows of a run after a place in the order of arrival."""

UNREADABLE_STAGES = ("parse", "types", "python")
"""Stages at which a proposal is not yet a factor."""
NOW_FILE = "now.json"
"""File of a run's folder with the progress of the process that runs it, or of the last one."""
STATUS_RUNNING, STATUS_PAUSED, STATUS_STOPPED = "running", "paused", "stopped"
CLOSED_BY_HAND = "a person ended the search (alphaloom stop --close); such an end is not repeated to the byte"
PAUSED_FOR_SEAL = "paused_for_seal"
"""Code of the error of a run that waits for a decision on its sealed days."""
MIN_REPORT_SECONDS = 0.25
"""Least time between two reports of the agents' actions; decisive events are reported at once."""


@dataclass(frozen=True)
class Best:
    """The strongest single factor so far by |t| on the search window."""

    id: str
    text: str
    t: float
    rank_ic: float | None


@dataclass(frozen=True)
class ModelSpend:
    """The models' spending so far: calls, tokens in and out, US dollars."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True)
class Counts:
    """The number of formulas that reached each stage, from proposed to decided."""

    hypotheses: int = 0
    proposed: int = 0
    readable: int = 0
    scored: int = 0
    sent: int = 0
    accepted: int = 0
    watched: int = 0
    rejected: int = 0
    awaiting: int = 0
    proven: int = 0


@dataclass
class Funnel:
    """Read a run's counts; every call of `read` adds the new rows."""

    reviews: Reviews
    counts: Counts = field(default_factory=Counts)
    best: Best | None = None
    spent: ModelSpend = field(default_factory=ModelSpend)

    def __post_init__(self) -> None:
        """Begin before the first row."""
        self._seen = dict.fromkeys(("attempts", "evaluations", "calls"), 0)
        self._proposed = self._readable = self._scored = 0
        self._hypotheses: set[str] = set()
        self._usd: list[float] = []

    @property
    def ledger(self) -> Ledger:
        """The ledger of the run."""
        return self.reviews.ledger

    def read(self) -> Funnel:
        """Add the rows since the last call."""
        self._take("attempts", self.ledger.attempts.since, self._add_attempt)
        self._take("evaluations", self.ledger.evaluations.since, self._add_evaluation)
        self._take("calls", self.ledger.calls.since, self._add_call)
        words = [self.reviews.word(row) for row in self.ledger.verdicts.of(self.reviews.run)]
        outcomes: dict[str, Word] = {
            "accepted": "accepted",
            "proven": UNTRADABLE,
            "watched": "watchlist",
            "rejected": "rejected",
            "awaiting": "awaiting approval",
        }
        verdicts = {name: words.count(word) for name, word in outcomes.items()}
        self.counts = Counts(
            len(self._hypotheses), self._proposed, self._readable, self._scored, len(words), **verdicts
        )
        return self

    def _take(self, name: str, since: Since, take: Callable[[Any], None]) -> None:
        """Pass each new row of a table to `take`."""
        for place, row in since(self.reviews.run, self._seen[name]):
            take(row)
            self._seen[name] = place

    def _add_attempt(self, row: Attempt) -> None:
        self._hypotheses.add(row.hypothesis)
        self._proposed += 1
        self._readable += row.stage not in UNREADABLE_STAGES

    def _add_evaluation(self, row: Evaluation) -> None:
        if row.hypothesis.startswith(SET_PREFIX):
            return
        self._scored += 1
        t = row.sheet["t"]
        if t is not None and (self.best is None or abs(t) > abs(self.best.t)):
            self.best = Best(row.factor_id, row.text, float(t), row.sheet["rank_ic"])

    def _add_call(self, row: ModelCall) -> None:
        self._usd = [math.fsum([*self._usd, row.cost_usd])]
        spent = self.spent
        self.spent = ModelSpend(spent.calls + 1, spent.tokens + row.tokens_in + row.tokens_out, self._usd[0])


@dataclass(frozen=True)
class Progress:
    """The progress at one moment; none of it is written to a result, and none comes from days after search.

    `mechanisms` is the effective number of mechanisms of the current round, `niches` the number of filled cells of
    mechanism, horizon and turnover. `elapsed_s` counts the work of all processes of the run; `remaining_s`
    extrapolates the evaluations. `doing` describes by agent the current or last action.
    """

    phase: str
    round: int = 0
    rounds: int = 0
    counts: Counts = field(default_factory=Counts)
    evaluations_budget: int = 0
    trials: int = 0
    spent: ModelSpend = field(default_factory=ModelSpend)
    best: Best | None = None
    doing: Mapping[str, str] = field(default_factory=dict)
    mechanisms: float | None = None
    niches: int = 0
    message: str = ""
    elapsed_s: float = 0.0
    remaining_s: float | None = None

    @property
    def usd_per_accepted(self) -> float | None:
        """US dollars spent per accepted factor so far; None before the first."""
        return self.spent.usd / self.counts.accepted if self.counts.accepted else None


@dataclass(frozen=True)
class ProgressMeter:
    """Read a run's progress; `seconds` is a monotonic clock, `worked_s` the time of earlier processes of the run."""

    meter: BudgetMeter
    reviews: Reviews
    rounds: int
    seconds: Callable[[], float]
    worked_s: float = 0.0
    start: float = field(init=False)
    first: int = field(init=False)
    funnel: Funnel = field(init=False)

    def __post_init__(self) -> None:
        """Record the start of this process."""
        object.__setattr__(self, "start", self.seconds())
        object.__setattr__(self, "first", len(self.meter.log.scores))
        object.__setattr__(self, "funnel", Funnel(self.reviews))

    def worked(self) -> float:
        """Return the seconds that this and all earlier processes have worked on the run."""
        return self.worked_s + self.seconds() - self.start

    def read(
        self, phase: str, at_round: int = 0, message: str = "", doing: Mapping[str, str] | None = None
    ) -> Progress:
        """Return the progress now."""
        log, funnel = self.meter.log, self.funnel.read()
        elapsed = self.seconds() - self.start
        return Progress(
            phase=phase,
            round=at_round,
            rounds=self.rounds,
            counts=funnel.counts,
            evaluations_budget=self.meter.budget.evaluations,
            trials=self.meter.trials_spent(),
            spent=funnel.spent,
            best=funnel.best,
            doing=dict(doing or {}),
            mechanisms=effective_number_of_round(log.ledger, log.run, at_round),
            niches=count_niches(log.ledger, log.run),
            message=message,
            elapsed_s=self.worked_s + elapsed,
            remaining_s=None if phase == STATUS_PAUSED else self._extrapolate(elapsed),
        )

    def _extrapolate(self, elapsed: float) -> float | None:
        done = len(self.meter.log.scores) - self.first
        return elapsed / done * self.meter.evaluations_left() if done >= 5 else None


def read_last_progress(folder: Path) -> Mapping[str, Any]:
    """Return the last progress record of a run; empty if there is none, or one that `ProgressReporter` never writes."""
    try:
        record = read_json(folder / NOW_FILE)
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) and _is_progress(record) else {}


def _is_progress(record: Mapping[str, Any]) -> bool:
    """Return whether the parts of a progress record that others read have their kinds, and no number is NaN."""
    texts = [record.get("phase", ""), record.get("at", "")]
    texts += record["doing"].values() if isinstance(record.get("doing"), dict) else []
    whole = [record.get(name, 0) for name in ("round", "niches")]
    measured = [record[name] for name in ("mechanisms", "elapsed_s") if record.get(name) is not None]
    return (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(number, int) for number in whole)
        and all(isinstance(number, int | float) and math.isfinite(number) for number in measured)
        and isinstance(record.get("doing", {}), dict)
    )


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


def make_seal_error(run: str) -> RunHalted:
    """Return the error of a run that waits until a person agrees to open its sealed days."""
    return RunHalted(
        "paused: a person must agree before the sealed (hold-out) days are opened",
        field="run",
        got=run,
        allowed=["agree", "refuse"],
        hint=f"alphaloom evidence seal {run}, and then: alphaloom resume {run}",
        code=PAUSED_FOR_SEAL,
        exit_code=0,
    )


def refuse_undecided(ledger: Ledger, run: Run) -> None:
    """Raise `RunHalted` for a paused run before anything is read for it, unless nothing waits or it is to close."""
    if run.status != STATUS_PAUSED or is_closing(ledger.events, run.id):
        return
    if waiting := Reviews.of(ledger, run).waiting():
        raise make_pause_error(run.id, waiting)
    if SealRequests(ledger, run.id).waits():
        raise make_seal_error(run.id)


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
        return self._stop_run()

    def pause_for_seal(self) -> RunHalted:
        """Record that the run waits for a decision on its sealed days, and return its error."""
        self.say(STATUS_PAUSED)
        self.ledger.runs.finish(self.evaluator.run, STATUS_PAUSED)
        return make_seal_error(self.evaluator.run)

    def _stop_run(self) -> RunHalted:
        run = self.evaluator.run
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
