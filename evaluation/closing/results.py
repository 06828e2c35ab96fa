"""Records of `results.json`, `curves.json` and a case, and the result that scripts receive.

A part that a run did not reach, or that a run of an older version did not record, is None or empty. Units are those of
`factor_records`; days are YYYY-MM-DD.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ...ledger import Ledger, Run, UnknownRun, cut_member
from .baseline_records import Baseline
from .close_records import (
    BookResult,
    CombinationSummary,
    DecisionLine,
    SealedExam,
    SignalSummary,
    SpendSummary,
    StressTable,
)
from .factor_records import CostRates, DailyRankIC, FactorEntry, Figure, Note, PlantedTruth, ResultsPart
from .search_records import (
    AppliedSettings,
    AttemptCounts,
    BetClusters,
    CandidateReasons,
    CrossValidationTest,
    LeaderForecast,
    OperatorRow,
    OverfittingTest,
    OwnParts,
    PanelSummary,
    SearchVariety,
    SelectionPower,
    SteerSummary,
    StreamRules,
    SuperiorityTest,
    WindowPlan,
)

if TYPE_CHECKING:
    from pandas import DataFrame

VERDICTS = ("accepted", "proven", "watchlist", "rejected", "members", "untested")
WINDOW_FIGURES = ("days", "rank_ic", "t", "turnover", "gross_sharpe", "net_sharpe")
FIGURE_COLUMNS = (
    *(f"sealed_{name}" for name in ("days", "rank_ic", "t", "p_value", "net_sharpe")),
    *(f"search_{name}" for name in WINDOW_FIGURES),
    *(f"selection_{name}" for name in (*WINDOW_FIGURES, "p_value", "level")),
)
"""Columns of `CampaignResult.to_frame` with a figure: the window and the name of the figure."""
ResultEntry = dict[str, Any]
"""One factor or set as JSON: id, form, text, hypothesis, reasons and metrics on search and selection."""


class Results(ResultsPart):
    """All of `results.json`, which has no clock, no path, and no id of the run.

    Attributes
    ----------
    ended
        Reason why the search ended early; None if it did not.
    accepted, proven, watchlist, rejected
        Factors and sets by verdict, each sorted by id; `proven` holds those that are proven and not tradable alone.
    members
        Factors of accepted combinations, which had no trial of their own.
    evaluations, trials
        Factors scored on search days; tests on selection days.
    reasons
        How many of the scored factors had a mechanism.
    prior_trials
        Tests of the same days before this run, declared ones included.
    looks_reused
        Verdicts that rest on the test of an earlier run.
    hypotheses
        Different hypotheses of the scored factors.
    baseline
        The published formulas and their combination; None in older runs, and where settings leave them out.
    power, power_before
        Power of the next trial, at the close and before the first score.
    truth
        On a synthetic market, what is true of each accepted factor and member; None on prices of a file.
    reviews
        Decisions of people; None where the campaign asks nobody.
    report
        Name of the report's file.
    """

    format: int | None = None
    researcher: str | None = None
    seed: int | None = None
    data: PanelSummary = PanelSummary()
    windows: WindowPlan = WindowPlan()
    settings: AppliedSettings | None = None
    steer: SteerSummary = SteerSummary()
    own: OwnParts = OwnParts()
    ended: str | None = None
    accepted: tuple[FactorEntry, ...] = ()
    proven: tuple[FactorEntry, ...] = ()
    watchlist: tuple[FactorEntry, ...] = ()
    rejected: tuple[FactorEntry, ...] = ()
    members: tuple[FactorEntry, ...] = ()
    untested: tuple[FactorEntry, ...] = ()
    attempts: AttemptCounts = AttemptCounts()
    reasons: CandidateReasons | None = None
    evaluations: int = 0
    trials: int = 0
    prior_trials: int = 0
    looks_reused: int = 0
    hypotheses: int = 0
    leaders: tuple[LeaderForecast, ...] = ()
    diversity: SearchVariety = SearchVariety()
    operators: tuple[OperatorRow, ...] = ()
    power: SelectionPower | None = None
    power_before: SelectionPower | None = None
    stream_rules: StreamRules | None = None
    overfitting: OverfittingTest | None = None
    superior: SuperiorityTest | None = None
    cross_validation: CrossValidationTest | None = None
    clusters: BetClusters | None = None
    combination: CombinationSummary | None = None
    baseline: Baseline | None = None
    sealed: SealedExam | None = None
    book: BookResult | None = None
    stress: StressTable | None = None
    truth: tuple[PlantedTruth, ...] | None = None
    signals: SignalSummary | None = None
    spend: SpendSummary = SpendSummary()
    reviews: tuple[DecisionLine, ...] | None = None
    warnings: tuple[Note, ...] = ()
    report: str | None = None

    @property
    def entries(self) -> Iterator[FactorEntry]:
        """Yield every factor and combination: accepted, proven, watched, rejected, members, untested."""
        tested = (*self.accepted, *self.proven, *self.watchlist, *self.rejected)
        yield from (*tested, *self.members, *self.untested)


# Curves, and cases for a person.


class DailyRankICByWindow(ResultsPart):
    """A factor's daily series on search and on selection days."""

    search: DailyRankIC = DailyRankIC()
    selection: DailyRankIC = DailyRankIC()


class BookCurve(ResultsPart):
    """The book's equity (1 at the start) and drawdown (decimal, 0 or below) at the end of each day."""

    dates: tuple[str, ...] = ()
    equity: tuple[Figure, ...] = ()
    drawdown: tuple[Figure, ...] = ()


class Curves(ResultsPart):
    """All of `curves.json`: the daily series of each tested or accepted factor by id, and the curve of the book."""

    factors: Mapping[str, DailyRankICByWindow] = {}
    book: BookCurve | None = None

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self:
        """Return the curves; in the file, ids of factors are keys beside `book`."""
        factors = {name: curve for name, curve in record.items() if name != "book"}
        return cls.model_validate({"factors": factors, "book": record.get("book")})

    def record(self) -> dict[str, Any]:
        """Return the JSON object of the file."""
        body = super().record()
        return {**body["factors"], "book": body["book"]}


class NearFactor(ResultsPart):
    """A known formula that shares structure: its name and source, the shared share and the shared part."""

    name: str
    where: str
    ratio: Figure = None
    shared: str = ""


class ReviewCase(FactorEntry):
    """The data for a person who has to approve a factor.

    Attributes
    ----------
    boundary
        First selection day.
    texts
        Formulas of a set's members by id.
    """

    curve: DailyRankICByWindow
    boundary: str
    nearest: tuple[NearFactor, ...] = ()
    texts: Mapping[str, str] = {}
    data: PanelSummary = PanelSummary()
    costs: CostRates = CostRates()
    warnings: tuple[Note, ...] = ()


@dataclass(frozen=True)
class CampaignResult:
    """A finished run: `results` as typed records, `record` as the JSON of results.json.

    `accepted`, `proven`, `watchlist`, `rejected`, `members`, `untested` and `power` are parts of the JSON. `report` is
    None where none was rendered.
    """

    run: str
    folder: Path
    record: dict[str, Any]
    report: Path | None

    @cached_property
    def results(self) -> Results:
        """Return all of results.json as typed records."""
        return Results.read(self.record)

    def _read_entries(self, verdict: str) -> list[ResultEntry]:
        entries: list[ResultEntry] = self.record[verdict]
        return entries

    @property
    def accepted(self) -> list[ResultEntry]:
        """Return the factors that passed every step of the gate."""
        return self._read_entries("accepted")

    @property
    def proven(self) -> list[ResultEntry]:
        """Return the factors that are proven and do not pay their costs alone; none in runs of before 2026-11-24."""
        return list(self.record.get("proven", ()))

    @property
    def members(self) -> list[ResultEntry]:
        """Return the factors of accepted combinations; in runs of before 2026-11-24 `untested` holds them."""
        return list(self.record.get("members", ()))

    @property
    def watchlist(self) -> list[ResultEntry]:
        """Return the promising factors that are not proven."""
        return self._read_entries("watchlist")

    @property
    def rejected(self) -> list[ResultEntry]:
        """Return the factors that the gate refused, or tested in vain."""
        return self._read_entries("rejected")

    @property
    def untested(self) -> list[ResultEntry]:
        """Return the scored factors that never went to the gate; in runs of before 2026-11-24 `rejected` holds them."""
        return list(self.record.get("untested", ()))

    def to_frame(self) -> DataFrame:
        """Return the tested factors and combinations as a pandas DataFrame, one row each.

        Returns
        -------
        pandas.DataFrame
            The index `id` holds those that were accepted, tested on selection days, or examined on sealed days: the
            accepted first, then those proven and not tradable alone, watchlist, rejected, members of accepted
            combinations, and untested. Columns: `verdict`; then by window, the sealed
            (hold-out) figures first, `sealed_days`, `sealed_rank_ic`, `sealed_t`, `sealed_p_value`,
            `sealed_net_sharpe`, `search_...` and `selection_...` with `turnover` and `gross_sharpe` too, and
            `selection_level`, the threshold of its p-value; then `trial`, `members` and `text`. Units are those of
            `factor_records`. RankIC and t are of the factor as written, Sharpe ratios in the direction held. NaN
            where there is no figure: all sealed figures are NaN where these days were not opened.
        """
        import pandas as pd

        rows = [
            _make_row(entry, verdict, self.results.sealed)
            for verdict in VERDICTS
            for entry in getattr(self.results, verdict)
        ]
        kept = [row for row in rows if row["verdict"] == "accepted" or row["trial"] or row["sealed_days"]]
        frame = pd.DataFrame(kept, columns=["id", "verdict", *FIGURE_COLUMNS, "trial", "members", "text"])
        words = dict.fromkeys(("id", "verdict", "text"), "str")
        counts = dict.fromkeys(("trial", "members"), "Int64")
        frame = frame.astype({**dict.fromkeys(FIGURE_COLUMNS, "float64"), **counts, **words})
        return frame.set_index("id")

    @property
    def combination(self) -> Path | None:
        """Return the Parquet file (date, symbol, score) of the combination, None without accepted factors."""
        combination = self.results.combination
        return self.folder / combination.file if combination else None

    @property
    def trials(self) -> int:
        """Return the number of the campaign's tests on selection days."""
        return self.results.trials

    @property
    def power(self) -> dict[str, Any]:
        """Return the power of the next trial on the selection days."""
        power: dict[str, Any] = self.record["power"]
        return power


def _make_row(entry: FactorEntry, verdict: str, exam: SealedExam | None) -> dict[str, Any]:
    """Return a row of `CampaignResult.to_frame`."""
    windows = {
        "sealed": exam.factors.get(entry.id) if exam else None,
        "search": entry.metrics.search,
        "selection": entry.metrics.selection,
    }
    columns = ((column, *column.split("_", 1)) for column in FIGURE_COLUMNS)
    figures = {column: getattr(windows[window], figure, None) for column, window, figure in columns}
    members = len(entry.members) if entry.members else 1
    named = {"id": entry.id, "verdict": verdict, "trial": entry.trial, "members": members, "text": entry.text}
    return {**named, **figures}


def find_campaign(ledger: Ledger, name: str) -> Run:
    """Return the campaign of a run id or `latest`; other runs, such as served tools, are not campaigns.

    Raises
    ------
    UnknownRun
        No campaign has that id.
    """
    campaigns = [row for row in ledger.runs.all() if "settings" in row.config]
    row = campaigns[-1] if name == "latest" and campaigns else ledger.runs.find(name)
    if "settings" not in row.config:
        what = "is no campaign: a factor was judged by hand, tools were served, or a bench was run"
        hint = "Name a campaign's run; alphaloom run starts one."
        raise UnknownRun(f"Run {row.id} {what}.", field="run", got=name, hint=hint)
    return row


def read_sealed_exam(ledger: Ledger, run: str) -> SealedExam | None:
    """Return a run's result on the sealed days, from its close or opened later; None where it has none."""
    later = ledger.artefacts.read(run, "sealed.json")
    if later:
        return SealedExam.read(json.loads(later))
    results = ledger.artefacts.read(run, "results.json")
    record = cut_member(results, "sealed") if results else None
    return SealedExam.read(record) if record else None
