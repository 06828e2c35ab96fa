"""Formulas computed and scored on search days alone, for a person who asks what would change.

The bench has a copy of the panel that ends with the search window, and no ledger. So it can neither read a later day
nor record an attempt, whatever it is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...evidence import EvidenceError, EvidenceSettings, Window
from ...evidence.originality import measure_beside, rank_correlation
from ...evidence.scoring import Profiler, Scorer, round_significant
from ...evidence.stress import Rehearsal, Stretch
from ...evidence.values import Computing
from ...factors import Engine, Expression, explain, parse
from ...factors.similarity import KnownFormula, compare_formulas
from ...market import Panel, adjust_forwards, keep_members
from ...search import SearchConstraints

Values = NDArray[np.float32]
SECTOR = "sector"
MAX_MEASURED_KEPT = 8
"""Sheets that a bench keeps with their values."""


@dataclass(frozen=True)
class SearchQuestion:
    """How a factor is measured.

    Attributes
    ----------
    cost_factor
        What all costs are multiplied by.
    horizon_days
        Days from entry to exit, 1 to 20; None: the run's own.
    sector_neutral
        Whether each day's ranks are taken less the mean of their sector.
    stretch
        Code of the only stretch of days that counts; empty: all search days.
    """

    cost_factor: float = 1.0
    horizon_days: int | None = None
    sector_neutral: bool = False
    stretch: str = ""


@dataclass(frozen=True)
class SearchBench:
    """Scores formulas on the search window of one run, by its own settings or by others; nothing is recorded.

    It keeps labels and sheets of earlier questions, so one thread uses it at a time.
    """

    scorer: Scorer
    engine: Computing
    window: Window
    mandate: SearchConstraints

    @classmethod
    def cut(cls, panel: Panel, window: Window, settings: EvidenceSettings, mandate: SearchConstraints) -> SearchBench:
        """Return the bench of a panel, of which every day after the search window is dropped first."""
        shown = panel.rows(0, window.stop)
        # Copies: a view would keep the later days in memory.
        fields = {name: values.copy() for name, values in shown.fields.items()}
        shown = replace(shown, dates=shown.dates.copy(), universe=shown.universe.copy(), fields=fields)
        engine = Computing(Engine(adjust_forwards(shown, window.stop)))
        return cls(Scorer(shown, settings), engine, window, mandate)

    @cached_property
    def stretches(self) -> Sequence[Stretch]:
        """Return the historical stretches of the search days that stress tests use."""
        shown = self.scorer.panel.rows(self.window.start, self.window.stop)
        return Rehearsal(keep_members(shown), self.scorer.settings).stretches

    @property
    def has_sectors(self) -> bool:
        """Tell whether ranks can be compared within sectors."""
        return SECTOR in self.scorer.panel.groups

    def read(self, text: str) -> Expression:
        """Parse a formula of the fields that the run may read.

        Raises
        ------
        ParseError
            It has mistakes.
        EvidenceError
            It is Python code, which only the sandbox computes.
        """
        expression = parse(text, fields=self.mandate.names(self.scorer.panel.fields))
        if expression.code:
            raise EvidenceError(
                "Python code is not computed here.",
                field="formula",
                allowed="a formula",
                hint="alphaloom factor score FILE.py scores it in the sandbox, on search days too.",
            )
        return expression

    def values(self, expression: Expression, question: SearchQuestion) -> Values:
        """Return a factor's values `[T, N]` on the days up to the end of search, NaN missing."""
        if question.sector_neutral:
            expression = self.read(f"group_demean(rank({expression.text}), {SECTOR})")
        return self.engine.evaluate([expression])[0]

    def measure(self, text: str, question: SearchQuestion) -> dict[str, Any]:
        """Return the sheet of a formula as JSON, as `Evaluator.score` does without warnings of other rooms.

        Warnings about the data stay out unless they are stamps of its kind: they may come from later days.
        """
        return dict(self._measure(text, question)[0])

    def _measure(self, text: str, question: SearchQuestion) -> tuple[dict[str, Any], Values]:
        """Return a sheet with the values behind it; those of the last questions are kept, since A seldom changes."""
        asked = (text, question)
        if asked not in self._measured:
            while len(self._measured) >= MAX_MEASURED_KEPT:
                del self._measured[next(iter(self._measured))]
            self._measured[asked] = self._compute(self.read(text), question)
        return self._measured[asked]

    @cached_property
    def _measured(self) -> dict[tuple[str, SearchQuestion], tuple[dict[str, Any], Values]]:
        return {}

    def _compute(self, expression: Expression, question: SearchQuestion) -> tuple[dict[str, Any], Values]:
        scorer, window = self._find_scorer(question), self._find_window(question.stretch)
        values = self.values(expression, question)
        sheet = scorer.score(values, window).record()
        stamps = self.scorer.panel.stamps
        warnings = [row for row in _list(sheet["warnings"]) if row["code"] != "data" or row["message"] in stamps]
        profile = Profiler(scorer, window).profile(values) if not question.stretch else {}
        words = {"id": expression.id, "text": expression.text, "explained": explain(expression), "warnings": warnings}
        return {**sheet, **profile, **words, "daily": scorer.record_daily_rank_ic(values, window)}, values

    def compare(self, texts: tuple[str, str], questions: tuple[SearchQuestion, SearchQuestion]) -> dict[str, Any]:
        """Return two sheets, `a` and `b`, and how alike their values rank the symbols; the JSON of `FactorComparison`.

        What each adds to the other is measured only where both are held over the same days for the same time.
        """
        measured = [self._measure(text, question) for text, question in zip(texts, questions, strict=True)]
        sheets, values = [dict(sheet) for sheet, _ in measured], [values for _, values in measured]
        window = self._find_window(questions[1].stretch)
        correlation = rank_correlation(values[0], values[1], window)
        if _is_same_test(*questions) and not np.array_equal(values[0], values[1], equal_nan=True):
            scorer = self._find_scorer(questions[0])
            for sheet, own, other in zip(sheets, values, reversed(values), strict=True):
                beside = measure_beside(own, other, scorer, window).record()
                sheet["beside"] = {name: beside[name] for name in ("rank_ic", "t", "kept")}
        likeness = compare_formulas(self.read(texts[0]), KnownFormula.of("b", self.read(texts[1]), ""))
        return {
            "a": sheets[0],
            "b": sheets[1],
            "costs": self.scorer.settings.costs.model_dump(mode="json"),
            "rank_correlation": round_significant(correlation),
            "shared": {"ratio": round_significant(likeness.ratio), "part": likeness.shared, "exact": likeness.exact},
        }

    def _find_scorer(self, question: SearchQuestion) -> Scorer:
        """Return the scorer of a horizon and costs; labels of a horizon are kept for the next question."""
        own = self.scorer.settings
        horizon = question.horizon_days or own.horizon_days
        if horizon not in self._scorers:
            self._scorers[horizon] = self.scorer.changed(horizon_days=horizon)
        factor, costs = question.cost_factor, own.costs
        charged = {name: value * factor for name, value in costs.model_dump().items()}
        return self._scorers[horizon].changed(costs=costs.model_copy(update=charged))

    @cached_property
    def _scorers(self) -> dict[int, Scorer]:
        return {self.scorer.settings.horizon_days: self.scorer}

    def _find_window(self, code: str) -> Window:
        if not code:
            return self.window
        found = next((stretch for stretch in self.stretches if stretch.code == code), None)
        if found is None:
            allowed = [stretch.code for stretch in self.stretches]
            raise EvidenceError("There is no such stretch of days.", field="span", got=code[:64], allowed=allowed)
        start, stop = self.window.start + found.start, self.window.start + found.stop
        days = self.scorer.panel.dates
        return Window(self.window.name, start, stop, str(days[start]), str(days[stop - 1]))


def _list(rows: object) -> list[dict[str, Any]]:
    return list(rows) if isinstance(rows, list) else []


def _is_same_test(one: SearchQuestion, other: SearchQuestion) -> bool:
    """Tell whether two questions are about the same days and horizon."""
    return (one.horizon_days, one.stretch) == (other.horizon_days, other.stretch)
