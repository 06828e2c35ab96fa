"""Scores of factors on the search window, and their record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from ..evidence import EvidenceSettings
from ..evidence.gate import compute_complexity_price
from ..evidence.scoring import Scorer, round_significant
from ..factors import Expression
from ..ledger import Evaluation
from .panel_factors import PanelFactors
from .refusals import known_values
from .run_library import RunLibrary
from .weaknesses import name_weaknesses


@dataclass(frozen=True)
class SearchScoring:
    """Scores factors on the search window of one run; it has no budget."""

    factors: PanelFactors
    scorer: Scorer
    library: RunLibrary
    settings: EvidenceSettings

    def measure(self, expression: Expression) -> dict[str, Any]:
        """Return the sheet of a factor on search, with its fields, weaknesses and merit; nothing is recorded."""
        values, search = self.factors.values(expression), self.factors.windows.search
        sheet = self.factors.search_engine.stamped(expression, self.scorer.examine(values, search).record())
        weaknesses = name_weaknesses(sheet, values, self.scorer.exposures, search) + known_values(self.library, values)
        merit = abs(float(cast("float", sheet["t"] or 0.0))) - compute_complexity_price(
            expression, self.settings.complexity
        )
        return {
            **sheet,
            "fields": sorted(expression.fields),
            "weaknesses": weaknesses,
            "merit": round_significant(merit),
        }

    def record(self, expression: Expression, hypothesis: str) -> Evaluation:
        """Score a factor and record the evaluation; sets are scored even when the budget of evaluations is spent."""
        log = self.factors.log
        row = Evaluation(log.run, expression.id, expression.text, hypothesis, self.measure(expression))
        log.ledger.evaluations.add(row)
        log.scores.add(row)
        return row
