"""Scores of factors on the search window, and their record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from ..evidence import EvidenceSettings
from ..evidence.gate import PriceLevelTest
from ..evidence.scoring import Scorer
from ..factors import Expression
from ..ledger import Evaluation
from .batches import FormulaBench, MeasuredFormula, RemoteSheets
from .panel_factors import PanelFactors
from .run_library import RunLibrary


@dataclass(frozen=True)
class SearchScoring:
    """Scores factors on the search window of one run; it has no budget.

    With `remote` the workers of a cluster compute the sheets of formulas; the sheets are the same.
    """

    factors: PanelFactors
    scorer: Scorer
    library: RunLibrary
    settings: EvidenceSettings
    remote: RemoteSheets | None = None

    @cached_property
    def bench(self) -> FormulaBench:
        """Return the function that scores formulas in this process."""
        window, published = self.factors.windows.search, self.library.published_values
        return FormulaBench(self.factors.search_engine, self.scorer, window, published, self.settings)

    def measure(self, expression: Expression) -> dict[str, Any]:
        """Return the sheet of a factor on search, with its fields, weaknesses and merit; nothing is recorded."""
        sheet = self.remote.take(expression) if self.remote else None
        if sheet is None:
            sheet = self.bench.measure(expression, self.factors.values(expression))
        return self.factors.search_engine.stamped(expression, sheet)

    def open_bench(self, dialect: str) -> Callable[[Iterator[list[str]]], Iterator[list[MeasuredFormula]]]:
        """Return the function that scores batches of formulas of a dialect, in order: here, or on the cluster."""
        if self.remote:
            return self.remote.hire(dialect=dialect).answer_each
        panel, engine = self.factors.search_engine.panel, self.factors.search_engine
        levels = PriceLevelTest(panel, self.factors.windows.search, engine)
        bench = replace(self.bench, dialect=dialect, levels=levels)
        return partial(map, bench)

    def record(self, expression: Expression, hypothesis: str) -> Evaluation:
        """Score a factor and record the evaluation; sets are scored even when the budget of evaluations is spent."""
        log = self.factors.log
        row = Evaluation(log.run, expression.id, expression.text, hypothesis, self.measure(expression))
        log.ledger.evaluations.add(row)
        log.scores.add(row)
        return row
