"""The published formulas scored on the search days of a campaign: which known effects live on its data.

Scores are of search days only and cost nothing of the budget. A formula that reads the level of back-adjusted prices is
scored and does not count, as a proposal that reads one is refused: such a level knows later splits and dividends.

220 formulas on 494 names and 2,518 days take 5 to 8 s of CPU, of which the values take 2 s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...evidence import null_distribution
from ...evidence.originality import published_expressions, published_mechanisms
from ...evidence.scoring import round_significant
from ...factors import Expression
from ..closing.baseline_records import MIN_LIVING_T, PublishedFormula
from ..service import Evaluator, Values

MAX_CHANCE_DAYS = 300
"""Longer windows use the null distribution of this many days, whose tail is fatter: that of 1,000 takes seconds."""
REPORT_EVERY = 20
"""Formulas between two reports of progress."""

Report = Callable[[int, int], None]
"""Receives the number of formulas scored and the number to score."""


@dataclass(frozen=True)
class ComputableFormula:
    """A published formula that a panel can compute."""

    name: str
    expression: Expression
    source: str


def list_computable(evaluator: Evaluator) -> list[ComputableFormula]:
    """Return the published formulas whose fields and groupings the panel has."""
    columns = {*evaluator.panel.fields, *evaluator.panel.groups}
    return [ComputableFormula(*formula) for formula in published_expressions() if formula[1].fields <= columns]


def compute_published(evaluator: Evaluator, names: Sequence[str]) -> Iterator[Values]:
    """Yield the values `[T, N]` of published formulas by name, in order."""
    expressions = {formula.name: formula.expression for formula in list_computable(evaluator)}
    return evaluator.factors.search_engine.stream(expressions[name] for name in names)


def score_published(evaluator: Evaluator, report: Report) -> list[PublishedFormula]:
    """Return every published formula that the panel can compute with its figures on search, the largest |t| first."""
    formulas = list_computable(evaluator)
    values = evaluator.factors.search_engine.stream(formula.expression for formula in formulas)
    scores: list[PublishedFormula] = []
    for formula, frame in zip(formulas, values, strict=True):
        scores.append(_score(evaluator, formula, frame))
        if len(scores) % REPORT_EVERY == 0:
            report(len(scores), len(formulas))
    return sorted(scores, key=lambda score: (-abs(score.t or 0.0), score.name))


def _score(evaluator: Evaluator, formula: ComputableFormula, values: Values) -> PublishedFormula:
    sheet = evaluator.scorer.score(values, evaluator.windows.search)
    return PublishedFormula(
        name=formula.name,
        source=formula.source,
        mechanism=published_mechanisms().get(formula.name, ""),
        text=formula.expression.shown,
        rank_ic=round_significant(sheet.rank_ic),
        t=round_significant(sheet.t),
        turnover=round_significant(sheet.turnover),
        net_sharpe=round_significant(sheet.net_sharpe),
        objection=evaluator.levels.objection(formula.expression),
    )


def count_by_chance(evaluator: Evaluator, scores: Sequence[PublishedFormula]) -> float:
    """Return how many formulas would live if none predicted anything, at most; ones with an objection are left out."""
    days = int((evaluator.scorer.target(evaluator.windows.search).order.counts > 0).sum())
    null = null_distribution(min(days, MAX_CHANCE_DAYS), evaluator.settings.horizon_days, evaluator.scorer.lag)
    return 2.0 * null.p_value(MIN_LIVING_T) * sum(not score.objection for score in scores)


def list_known_effects(scores: Sequence[PublishedFormula]) -> list[dict[str, Any]]:
    """Return for agents the strongest living formula of each mechanism, the largest |t| first; search facts only."""
    strongest: dict[str, PublishedFormula] = {}
    for score in scores:
        if score.lives and score.mechanism:
            strongest.setdefault(score.mechanism, score)
    return [
        {
            "mechanism": mechanism,
            "name": score.name,
            "text": score.text,
            "direction": score.sign,
            "t": round(score.t or 0.0, 1),
            "living": sum(other.lives for other in scores if other.mechanism == mechanism),
            "of": sum(other.mechanism == mechanism for other in scores),
        }
        for mechanism, score in strongest.items()
    ]
