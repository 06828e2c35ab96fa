"""Which days of the evidence a model can have read in training, and the RankIC on these days beside the others.

A day is *exposed* if it is on or before the claimed training cut-off of a model that wrote the hypothesis or the
formula, and *clean* if it is after the cut-off of all of them. It is *unknown* if one of them has no declared cut-off,
or if a part came from a person. Where no language model wrote anything, and where the days were simulated, all days are
clean. A cut-off is a claim of the vendor: nothing here can check it.

Figures are means of daily series that the record holds already. No day is looked at for them: a selection series is
that of a charged trial, a sealed one that of a recorded opening, and a forward one that of the library's watch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from ...evidence import LAG_PER_HORIZON, newey_west_t
from ...evidence.scoring import round_significant
from ...ledger import Ledger, LedgerError, Run
from ...portfolio import COMBINATION_KEY, SEALED_SERIES_EVENT
from ..closing import Results, SealedExam
from ..closing.results import read_sealed_exam
from .authors import AuthorReader, Authors, DeclaredModel

SEALED, FORWARD = "sealed", "forward"
EVIDENCE_WINDOWS: Final = ("search", "selection", SEALED, FORWARD)
EXPOSED, CLEAN, UNKNOWN_KIND = "exposed", "clean", "unknown"
DAY_KINDS: Final = (EXPOSED, CLEAN, UNKNOWN_KIND)
SIMULATED = "these days were simulated"
RULES_ONLY = (
    "no language model wrote the hypothesis or the formula: the offline researcher is a set of rules of this program, "
    "which was trained on no text"
)
EXPOSURE_RULE = (
    "A day is exposed on or before the latest claimed training cut-off of the models that wrote the hypothesis, the "
    "formula, the formulas it was changed from, or the critiques that asked for the changes; clean after it; unknown "
    "where one of them has no declared cut-off, or a person's part is among them. The label of a day ends up to the "
    "horizon later."
)
Series = Mapping[str, float]
"""Daily RankIC by ISO day, without undefined days."""


@dataclass(frozen=True)
class SplitFigure:
    """Mean RankIC over some days of a window as the factor is written, its Newey-West t, and the number of days."""

    days: int
    rank_ic: float
    t: float | None


@dataclass(frozen=True)
class WindowSplit:
    """The days of one window by kind; None where the record does not say which days they are.

    `rank_ic` has a figure for each kind that has days with a RankIC on record; empty without a recorded series.
    """

    first: str
    last: str
    exposed: int | None
    clean: int | None
    unknown: int | None
    rank_ic: Mapping[str, SplitFigure]

    @property
    def is_mixed(self) -> bool:
        """Return whether some of its days are exposed and some clean."""
        return bool(self.exposed and self.clean)


@dataclass(frozen=True)
class Cutoff:
    """The day up to which days are exposed, ISO: empty where all are clean, None where it is unknown; and why."""

    day: str | None
    why: str

    def sort(self, days: Sequence[str]) -> dict[str, list[str]]:
        """Return days by kind."""
        if self.day is None:
            return {UNKNOWN_KIND: list(days)}
        return {EXPOSED: [day for day in days if day <= self.day], CLEAN: [day for day in days if day > self.day]}


@dataclass(frozen=True)
class DaySplit:
    """The exposed and the clean days of one factor, or of a whole run, by window; and its authors."""

    authors: Authors
    cutoff: Cutoff
    windows: Mapping[str, WindowSplit]

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        windows = {name: {**asdict(one), "rank_ic": _record_figures(one.rank_ic)} for name, one in self.windows.items()}
        return {
            "models": list(self.authors.models),
            "people": list(self.authors.people),
            "authors_certain": self.authors.certain,
            "cutoff": self.cutoff.day or None,
            "why": self.cutoff.why,
            "windows": windows,
        }


@dataclass(frozen=True)
class RunExposure:
    """The exposed and the clean days of a run.

    Attributes
    ----------
    models
        The declared models by name.
    language_model
        Whether a language model answered the run's agents.
    run
        Of everybody who wrote anything, without figures.
    combination
        Of what would be traded; None without accepted factors.
    factors
        Of each accepted, proven, watched or tested factor and of the members of combinations, by id.
    """

    models: Mapping[str, DeclaredModel]
    language_model: bool
    run: DaySplit
    combination: DaySplit | None
    factors: Mapping[str, DaySplit]

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "rule": EXPOSURE_RULE,
            "run": self.run.record(),
            "combination": self.combination.record() if self.combination else None,
            "factors": {name: split.record() for name, split in sorted(self.factors.items())},
        }


def read_exposure(ledger: Ledger, run: Run) -> RunExposure | None:
    """Return the exposed and clean days of a campaign from its record; None before it has results."""
    body = ledger.artefacts.read(run.id, "results.json")
    return _ExposureReader(ledger, run, Results.read(json.loads(body))).read() if body else None


@dataclass(frozen=True)
class _ExposureReader:
    ledger: Ledger
    run: Run
    results: Results

    def read(self) -> RunExposure:
        exam = read_sealed_exam(self.ledger, self.run.id)
        shown = {
            entry.id: entry
            for word in ("accepted", "proven", "watchlist", "rejected", "members")
            for entry in getattr(self.results, word)
            if entry.trial is not None or word != "rejected"
        }
        factors = {
            name: self._split(self._authors.read(name, entry.members or ()), self._list_series(name, exam, entry.trial))
            for name, entry in shown.items()
        }
        forward = {day: float("nan") for name in shown for day in self._read_forward(name)}
        return RunExposure(
            self._authors.models,
            self._authors.has_language_model,
            self._split(self._authors.everyone, {FORWARD: forward}),
            self._split_combination(exam),
            factors,
        )

    def _split_combination(self, exam: SealedExam | None) -> DaySplit | None:
        combination = self.results.combination
        if combination is None:
            return None
        authors = self._authors.read(COMBINATION_KEY, combination.factors)
        return self._split(authors, {SEALED: self._read_sealed(COMBINATION_KEY, exam)})

    @cached_property
    def _authors(self) -> AuthorReader:
        return AuthorReader(self.ledger, self.run)

    def _split(self, authors: Authors, series: Mapping[str, Series]) -> DaySplit:
        cutoff = self._find_cutoff(authors)
        windows = {}
        for name in EVIDENCE_WINDOWS:
            found = self._split_window(name, cutoff, series.get(name, {}))
            if found is not None:
                windows[name] = found
        return DaySplit(authors, cutoff, windows)

    def _split_window(self, name: str, cutoff: Cutoff, series: Series) -> WindowSplit | None:
        days = sorted(series) if name == FORWARD else self._list_days(name)
        plan = getattr(self.results.windows, name, None)
        if name == FORWARD:
            if not days:
                return None
            first, last = days[0], days[-1]
        elif plan is None:
            return None
        else:
            first, last = plan.first, plan.last
        sorted_days = cutoff.sort(sorted(series))
        figures = {kind: figure for kind, some in sorted_days.items() if (figure := self._average(series, some))}
        return WindowSplit(first, last, *self._count(cutoff, days, plan), figures)

    def _count(self, cutoff: Cutoff, days: Sequence[str], plan: Any) -> tuple[int | None, int | None, int | None]:
        """Return the exposed, clean and unknown days; None each where the record lists no days and the cut-off cuts."""
        if days:
            by_kind = cutoff.sort(days)
            exposed, clean, unknown = (len(by_kind.get(kind, ())) for kind in DAY_KINDS)
            return exposed, clean, unknown
        if cutoff.day is None:
            return 0, 0, plan.days
        if cutoff.day < plan.first:
            return 0, plan.days, 0
        return (plan.days, 0, 0) if cutoff.day >= plan.last else (None, None, None)

    def _average(self, series: Series, days: Sequence[str]) -> SplitFigure | None:
        values = np.array([series[day] for day in days])
        values = values[np.isfinite(values)]
        if not len(values):
            return None
        measured = newey_west_t(values, LAG_PER_HORIZON * (self.results.windows.horizon_days or 1))
        return SplitFigure(measured.days, round_significant(measured.mean) or 0.0, round_significant(measured.t))

    # Who.

    def _find_cutoff(self, authors: Authors) -> Cutoff:
        if self._is_simulated:
            return Cutoff("", SIMULATED)
        models = [self._authors.models[name] for name in authors.models]
        language = [model for model in models if not model.is_rules]
        undeclared = sorted(model.name for model in language if not model.cutoff)
        if undeclared:
            settings = ", ".join(f"models.models.{name}.cutoff" for name in undeclared)
            return Cutoff(None, f"no training cut-off is declared for {', '.join(undeclared)} ({settings})")
        if authors.people:
            return Cutoff(None, f"a person may know all of these days: {', '.join(authors.people)}")
        if not language:
            return Cutoff("", RULES_ONLY)
        latest = max(language, key=lambda model: model.cutoff)
        return Cutoff(latest.cutoff, f"claimed training cut-off of {latest.name} ({latest.model}): {latest.cutoff}")

    @property
    def _is_simulated(self) -> bool:
        return not ((self.run.config.get("settings") or {}).get("market") or {}).get("panel")

    # Recorded series.

    def _list_series(self, name: str, exam: SealedExam | None, trial: int | None) -> dict[str, Series]:
        curve = self._curves.get(name) or {}
        selection = _read_series(curve.get("selection")) if trial is not None else {}
        return {
            "search": _read_series(curve.get("search")),
            "selection": selection,
            SEALED: self._read_sealed(name, exam),
            FORWARD: self._read_forward(name),
        }

    def _read_sealed(self, name: str, exam: SealedExam | None) -> Series:
        if exam is None or not exam.opened:
            return {}
        event = self.ledger.events.get(self.run.id, SEALED_SERIES_EVENT, name)
        return _read_series(event.body if event else None)

    def _read_forward(self, name: str) -> Series:
        return {
            sighting.day: float("nan") if sighting.rank_ic is None else sighting.rank_ic
            for sighting in self.ledger.library.sightings(name)
        }

    @cached_property
    def _curves(self) -> Mapping[str, Any]:
        body = self.ledger.artefacts.read(self.run.id, "curves.json")
        curves: Mapping[str, Any] = json.loads(body) if body else {}
        return curves

    def _list_days(self, window: str) -> Sequence[str]:
        """Return the days of a window; empty where the run's version did not record the days of its panel."""
        plan = getattr(self.results.windows, window, None)
        if plan is None:
            return ()
        return [day for day in self._panel_days if plan.first <= day <= plan.last]

    @cached_property
    def _panel_days(self) -> Sequence[str]:
        digest = self.run.config.get("days")
        try:
            days: Sequence[str] = json.loads(self.ledger.objects.get(digest)) if digest else ()
        except LedgerError:
            return ()
        return days


def _read_series(body: Mapping[str, Any] | None) -> Series:
    pairs = zip((body or {}).get("dates") or (), (body or {}).get("rank_ic") or (), strict=True)
    return {day: value for day, value in pairs if value is not None}


def _record_figures(figures: Mapping[str, SplitFigure]) -> dict[str, Any]:
    return {kind: asdict(figure) for kind, figure in figures.items()}
