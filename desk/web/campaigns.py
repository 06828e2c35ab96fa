"""The pages on campaigns: all of a workspace, one with its factors while it runs and after, its models, its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import HTMLResponse, Response

from ..errors import DeskError
from ..facts.model_spend import describe_spend, sum_spend
from ..facts.standing import RunStanding, name_workspace, state_of
from ..report.report import REPORT_FILE, render_run
from ..report.sections.run_notes import read_run_notes
from . import control
from .access import REPORT_POLICY
from .live import LiveRequest, stream_page
from .pages import PageRequest, render

if TYPE_CHECKING:
    from ...campaign import Funnel
    from ...ledger import Evaluation, Ledger, Run

RUNS_A_PAGE: Final = 50
FACTORS_A_PAGE: Final = 100
MAX_READINGS: Final = 8
"""Runs whose factors are kept in memory."""
UNDECIDED: Final = "scored"
"""Standing of a factor that was scored on search days and has no verdict."""


@dataclass(frozen=True)
class RunLine:
    """One campaign in the list."""

    id: str
    state: str
    started_at: str
    waiting: int
    verdicts: dict[str, int]


@dataclass(frozen=True)
class RunList:
    """A page of the campaigns of a workspace, the newest first, and those that have no run yet."""

    starting: list[control.LaunchPage]
    runs: list[RunLine]
    total: int
    number: int
    pages: int


def load_runs(view: PageRequest) -> RunList:
    """Return one page of the list of campaigns."""
    starting = control.list_launches(view.ledger)
    runs = [run for run in view.ledger.runs.all() if is_campaign(run)][::-1]
    number, pages = find_page(view, len(runs), RUNS_A_PAGE)
    shown = runs[(number - 1) * RUNS_A_PAGE : number * RUNS_A_PAGE]
    return RunList(starting, [_read_line(view.ledger, run) for run in shown], len(runs), number, pages)


def is_campaign(run: Run) -> bool:
    """Return whether a run of the ledger is a campaign: not a book, nor a record of remarks."""
    return "settings" in run.config


def find_page(view: PageRequest, total: int, size: int) -> tuple[int, int]:
    """Return the number of the requested page and of all pages; a number that is none is the first."""
    pages = max(1, -(-total // size))
    asked = view.query.get("page", "1")
    return (min(max(int(asked), 1), pages) if asked.isdecimal() and len(asked) < 9 else 1), pages


def _read_line(ledger: Ledger, run: Run) -> RunLine:
    from ...evaluation import Reviews
    from ...evaluation.closing import SealRequests

    reviews = Reviews.of(ledger, run)
    waiting = len(reviews.waiting()) + (run.status == "paused" and SealRequests(ledger, run.id).waits())
    verdicts = Counter(reviews.word(row) for row in ledger.verdicts.of(run.id))
    state = state_of(run.status, ledger.runs.holder(run.id), waits=waiting > 0)
    return RunLine(run.id, state, run.started_at, waiting, dict(sorted(verdicts.items())))


@dataclass(frozen=True)
class ScoredFactor:
    """One factor of a campaign; t and RankIC are those of search days."""

    id: str
    text: str
    hypothesis: str
    mechanism: str
    standing: str
    t: float | None
    rank_ic: float | None
    reason: str


@dataclass(frozen=True)
class DecidedCase:
    """A case on which a decision stands: its formula, and who decided what and why."""

    id: str
    text: str
    sentence: str


@dataclass(frozen=True)
class RunPage:
    """One campaign: where it stands, what may be done about its process, and its factors by what was asked for.

    `decided` has the cases on which a decision stands.
    """

    id: str
    standing: dict[str, Any]
    control: control.RunControl
    has_report: bool
    decided: list[DecidedCase]
    factors: list[ScoredFactor]
    matches: int
    total: int
    words: str
    chosen: str
    facets: dict[str, int]
    number: int
    pages: int


def load_run(view: PageRequest) -> RunPage:
    """Return one campaign, with the factors whose formula, hypothesis or reason holds the words of the query."""
    from ...evaluation import find_campaign

    run = find_campaign(view.ledger, view.path["run"])
    standing, lines = RunReading.of(view.ledger.workspace, run.id).read(view.ledger, run)
    words, chosen = view.query.get("q", "").strip().casefold(), view.query.get("verdict", "")
    found = [one for one in lines if all(word in _describe(one) for word in words.split())]
    facets = Counter(one.standing for one in found)
    found = [one for one in found if chosen in ("", one.standing)]
    number, pages = find_page(view, len(found), FACTORS_A_PAGE)
    return RunPage(
        id=run.id,
        standing=standing.record() | {"process_phase": control.read_phase(view.ledger, run.id)},
        control=control.RunControl.of(view.ledger, run, standing.state),
        has_report=(view.ledger.runs.folder(run.id) / REPORT_FILE).exists(),
        decided=_list_decided(view.ledger, run),
        factors=found[(number - 1) * FACTORS_A_PAGE : number * FACTORS_A_PAGE],
        matches=len(found),
        total=len(lines),
        words=view.query.get("q", "").strip(),
        chosen=chosen,
        facets=dict(sorted(facets.items())),
        number=number,
        pages=pages,
    )


def _list_decided(ledger: Ledger, run: Run) -> list[DecidedCase]:
    """Return the decided cases of a run with what people wrote."""
    from ...evaluation import Reviews

    reviews = Reviews.of(ledger, run)
    rows = reviews.cases() if reviews.required else {}
    decisions = [one for one in reviews.decisions() if one.factor_id in rows]
    return [DecidedCase(one.factor_id, rows[one.factor_id].canonical, one.sentence) for one in decisions]


def _describe(line: ScoredFactor) -> str:
    return f"{line.id} {line.text} {line.hypothesis} {line.mechanism} {line.reason}".casefold()


class RunReading:
    """What was read of a run so far: its counts and scores. Each reading adds the new rows.

    It is a cache: a run of ten thousand factors takes half a second to read whole.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._counted: Funnel | None = None
        self._scores: list[Evaluation] = []
        self._place = 0

    @classmethod
    def of(cls, workspace: Path, run: str) -> RunReading:
        """Return the reading of a run; that of the run which was read longest ago is dropped."""
        with _readings_lock:
            place = (workspace, run)
            reading = _readings.pop(place, None) or cls()
            _readings[place] = reading
            while len(_readings) > MAX_READINGS:
                _readings.pop(next(iter(_readings)))
        return reading

    def read(self, ledger: Ledger, run: Run) -> tuple[RunStanding, list[ScoredFactor]]:
        """Return where a run stands, and its factors: decided ones first, then by the size of t on search."""
        with self._lock:
            standing = self._read_standing(ledger, run)
            for place, score in ledger.evaluations.since(run.id, self._place):
                kept = {name: score.sheet.get(name) for name in ("t", "rank_ic")}
                self._scores.append(replace(score, sheet=kept))
                self._place = place
            return standing, list_factors(ledger, run, self._scores)

    def read_standing(self, ledger: Ledger, run: Run) -> dict[str, Any]:
        """Return where a run stands."""
        with self._lock:
            return self._read_standing(ledger, run).record()

    def _read_standing(self, ledger: Ledger, run: Run) -> RunStanding:
        from ...campaign import Funnel
        from ...evaluation import Reviews

        self._counted = self._counted or Funnel(Reviews.of(ledger, run))
        return RunStanding.of(ledger, run, name_workspace(ledger.workspace), self._counted)


_readings: dict[tuple[Path, str], RunReading] = {}
_readings_lock = Lock()


def list_factors(ledger: Ledger, run: Run, scores: Sequence[Evaluation]) -> list[ScoredFactor]:
    """Return scored factors with where they stand, tested ones first, then by the size of t on search."""
    from ...evaluation import AWAITING, Reviews

    reviews = Reviews.of(ledger, run)
    verdicts = {row.factor_id: row for row in ledger.verdicts.of(run.id)}
    stated = {event.key: event.body for event in ledger.events.of(run.id, "agents.hypothesis")}
    rows = []
    for score in scores:
        verdict, idea = verdicts.get(score.factor_id), stated.get(score.hypothesis, {})
        standing = reviews.word(verdict) if verdict else UNDECIDED
        reasons = reviews.reasons(verdict) if verdict and standing != AWAITING else []
        failed = next((reason for reason in reasons if reason["passed"] is False), None)
        rows.append(
            ScoredFactor(
                score.factor_id,
                score.text,
                str(idea.get("statement", "")),
                str(idea.get("mechanism", "")).replace("_", " "),
                standing,
                score.sheet.get("t"),
                score.sheet.get("rank_ic"),
                f"{failed['step']}: {failed['message']}" if failed else "",
            )
        )
    return sorted(rows, key=lambda one: (one.standing == UNDECIDED, -abs(one.t or 0.0), one.id))


@dataclass(frozen=True)
class ModelsPage:
    """Which model answered what in a campaign: the bill of `alphaloom models spend --json`, and what it says."""

    run: str
    lines: list[tuple[str, str]]
    spend: dict[str, Any]


def load_models(view: PageRequest) -> ModelsPage:
    """Return the calls of a campaign by question and model, with their cost and that of one tier alone."""
    from ...evaluation import find_campaign

    run = find_campaign(view.ledger, view.path["run"])
    spend = sum_spend(view.ledger, run.id, "", None)
    return ModelsPage(run.id, describe_spend(spend), spend)


def load_report(view: PageRequest) -> Response:
    """Return the report of a campaign, made of its results after they were compared with their digests.

    The file report.html is not shown: no digest of it is on record, so that an edited one would look the same.

    Raises
    ------
    ChangedFile
        A file of the run is not the one whose digest the ledger recorded.
    DeskError
        The campaign has no report yet.
    """
    from ...evaluation import find_campaign

    run = find_campaign(view.ledger, view.path["run"])
    folder = view.ledger.runs.folder(run.id)
    if not (folder / REPORT_FILE).exists():
        raise DeskError(
            "This campaign has no report yet.", field="run", got=run.id, hint="It is written at the campaign's end."
        )
    view.ledger.artefacts.check(run.id)
    report = render_run(folder, read_run_notes(view.ledger, run.id))
    return HTMLResponse(report, headers={"Content-Security-Policy": REPORT_POLICY})


def stream_run(live: LiveRequest) -> Response:
    """Return a stream of the standing of a run as HTML, sent whenever it has changed."""
    return stream_page(live, _render_standing)


def stream_launch(live: LiveRequest) -> Response:
    """Return a stream of what the process of a campaign without a run says, and at last the way to the run."""
    return stream_page(live, _render_launch)


def _render_standing(live: LiveRequest) -> str:
    """Return the standing of a run as HTML; empty where there is no such run."""
    from ...evaluation import find_campaign
    from ...ledger import AlphaloomError

    try:
        with live.opened() as ledger:
            run = find_campaign(ledger, live.request.path_params["run"])
            standing = RunReading.of(live.workspace, run.id).read_standing(ledger, run)
            phase = {"process_phase": control.read_phase(ledger, run.id)}
    except AlphaloomError:
        return ""
    return render("standing.html.j2", standing | phase, None)


def _render_launch(live: LiveRequest) -> str:
    """Return what a process says as HTML; empty where the desk started no such campaign."""
    from ...ledger import AlphaloomError

    try:
        with live.opened() as ledger:
            found = control.find_launch(ledger, live.request.path_params["name"])
    except AlphaloomError:
        return ""
    return render("launch_output.html.j2", found, None)
