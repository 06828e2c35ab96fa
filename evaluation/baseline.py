"""The baseline of a campaign: the published formulas that live on its search days, combined.

Living formulas are grouped by the rank correlation of their values on search days. The strongest of each group, ten at
most, are weighed by the combiner that weighs a campaign's own combination, from search days alone. The weights then
stay as they are.

Selection and sealed days are read at the close only, after the last test. The figures there are no trial: they accept
nothing, change no threshold and reach no agent.

Scores are of search days only and cost nothing of the budget. A formula that reads the level of back-adjusted prices is
scored and does not count, as a proposal that reads one is refused: such a level knows later splits and dividends.

220 formulas on 494 names and 2,518 days take 5 to 8 s of CPU, of which the values take 2 s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..evidence import Window, null_distribution
from ..evidence.gate import Weighing
from ..evidence.originality import describe_published, published_expressions, published_mechanisms, residual_ranks
from ..evidence.scoring import round_significant
from ..factors import Expression, RowOrder, order_rows, rank_rows, row_rank_correlation
from ..portfolio import CombinationPart, hold_fixed
from .closing.baseline_records import MIN_LIVING_T, Baseline, BaselineAddition, BaselineMember, PublishedFormula
from .closing.close_records import CombinerFigures
from .service import Evaluator, Values
from .submissions import MAX_SET_MEMBERS, WEIGHING_EVENT, weigh_on_search

BASELINE_EVENT: Final = "baseline"
"""Kind of the event that holds the published formulas' scores and the baseline of a run, of search days only."""
COMPARED_STEP_DAYS = 5
"""Formulas are compared on every fifth search day, as a candidate is with the library."""
FIGURES = ("rank_ic", "t", "turnover", "gross_sharpe", "net_sharpe")
MAX_CHANCE_DAYS = 300
"""Longer windows use the null distribution of this many days, whose tail is fatter: that of 1,000 takes seconds."""
REPORT_EVERY = 20
"""Formulas between two reports of progress."""

Report = Callable[[int, int], None]
"""Receives the number of formulas scored and the number to score."""


def record_baseline(evaluator: Evaluator, report: Report) -> Baseline | None:
    """Record the published formulas' scores and the baseline at the start of a run, once; None if settings say no."""
    if not evaluator.settings.published:
        return None
    recorded = read_baseline(evaluator)
    if recorded is None:
        baseline = _build(evaluator, score_published(evaluator, report))
        evaluator.ledger.events.record(evaluator.run, BASELINE_EVENT, "start", baseline.record())
        recorded = read_baseline(evaluator)
    return recorded


def read_baseline(evaluator: Evaluator) -> Baseline | None:
    """Return the recorded baseline of a run, with search figures only; None for a run that recorded none."""
    events = evaluator.ledger.events.of(evaluator.run, BASELINE_EVENT)
    return Baseline.read(events[0].body) if events else None


def describe_baseline(baseline: Baseline) -> str:
    """Return which published formulas live on the search days, in one sentence."""
    return (
        f"{describe_published(baseline.computable)}: {baseline.living} of them live on the search days "
        f"(|t| of at least 2; chance alone would give at most {baseline.by_chance or 0.0:.0f} on average)"
    )


def _build(evaluator: Evaluator, scores: Sequence[PublishedFormula]) -> Baseline:
    living = [score for score in scores if score.lives]
    baseline = Baseline(
        published=sum(1 for _ in published_expressions()),
        computable=len(scores),
        living=len(living),
        by_chance=round_significant(count_by_chance(evaluator, scores)),
        formulas=tuple(scores),
    )
    if not living:
        return baseline
    groups = group_alike(evaluator, living)
    parts = [CombinationPart(group.strongest.name, group.strongest.sign, group.values) for group in groups]
    weighing = weigh_on_search(evaluator, parts)
    held = [part for part in parts if part.factor_id in weighing.weights]
    score = _hold(held, weighing)
    members = [
        BaselineMember(
            name=group.strongest.name,
            weight=group.strongest.sign * weighing.weights[group.strongest.name],
            alike=group.alike,
        )
        for group in groups
        if group.strongest.name in weighing.weights
    ]
    weighed = {
        "members": tuple(members),
        "combiner": weighing.combiner,
        "chosen": weighing.chosen,
        "trading_rate": weighing.rate,
        "search": _measure(evaluator, score, evaluator.windows.search),
    }
    return baseline.model_copy(update=weighed)


@dataclass
class AlikeGroup:
    """Living formulas that rank the names alike: the strongest with its values `[T, N]`, and their number."""

    strongest: PublishedFormula
    values: Values
    order: RowOrder
    alike: int = 1


def group_alike(evaluator: Evaluator, living: Sequence[PublishedFormula]) -> list[AlikeGroup]:
    """Return the ten groups with the strongest formulas; `living` has the largest |t| first.

    A formula joins the group to whose strongest formula it has the largest absolute rank correlation, if that is above
    `evidence.max_redundancy`; else it begins a group.
    """
    groups: list[AlikeGroup] = []
    streamed = compute_published(evaluator, [score.name for score in living])
    for score, values in zip(living, streamed, strict=True):
        cut = evaluator.windows.search.cut(values)[::COMPARED_STEP_DAYS]
        order = order_rows(np.ascontiguousarray(cut))
        correlations = [_correlate(order, group.order) for group in groups]
        nearest = int(np.argmax(correlations)) if correlations else -1
        if groups and correlations[nearest] > evaluator.settings.max_redundancy:
            groups[nearest].alike += 1
        elif len(groups) < MAX_SET_MEMBERS:
            groups.append(AlikeGroup(score, values, order))
    return groups


def _correlate(one: RowOrder, other: RowOrder) -> float:
    daily = row_rank_correlation(one, other)
    return abs(float(np.nanmean(daily))) if not np.isnan(daily).all() else 0.0


def _hold(parts: Sequence[CombinationPart], weighing: Weighing) -> Values:
    return hold_fixed(parts, [weighing.weights[part.factor_id] for part in parts], weighing.rate)


def _measure(evaluator: Evaluator, score: Values, window: Window) -> CombinerFigures:
    sheet = evaluator.scorer.score(score, window, 1)
    return CombinerFigures.read({name: round_significant(getattr(sheet, name)) for name in FIGURES})


# At the close.


def close_baseline(
    evaluator: Evaluator, traded: NDArray[np.float32] | None, *, open_sealed: bool
) -> dict[str, Any] | None:
    """Return the baseline with its figures after the last test, as JSON; None for a run without one.

    Parameters
    ----------
    evaluator
        The service of a run whose tests have ended.
    traded
        Scores `[T, N]` of what the campaign would trade; None where nothing was accepted. The combination that was
        tested first then takes its place.
    open_sealed
        Whether the sealed days were opened; they are read only then.

    Notes
    -----
    Selection days are read only if the run took a trial. Later trials on these days remove the baseline's members
    (`earlier_looks`), since people have seen how they did.
    """
    baseline = read_baseline(evaluator)
    if baseline is None or not baseline.members:
        return baseline.record() if baseline else None
    if not evaluator.meter.trials_spent():  # without a trial, nobody learns anything of the selection days
        return baseline.record()
    score = _rebuild(evaluator, baseline)
    windows = evaluator.windows
    later = [windows.selection, *([windows.sealed] if open_sealed else [])]
    closed: dict[str, Any] = {window.name: _measure(evaluator, score, window) for window in later}
    own, addition_of = (traded, "accepted") if traded is not None else _find_tested(evaluator)
    if own is not None:
        judged = (windows.search, *later)
        closed["own"] = {window.name: _measure(evaluator, own, window) for window in judged}
        closed["addition"] = {window.name: measure_addition(evaluator, own, score, window) for window in judged}
    return baseline.model_copy(update=closed | {"addition_of": addition_of}).record()


def _rebuild(evaluator: Evaluator, baseline: Baseline) -> Values:
    """Return the scores `[T, N]` of the recorded baseline."""
    names = [member.name for member in baseline.members]
    weights = [member.weight or 0.0 for member in baseline.members]
    parts = [
        CombinationPart(name, 1 if weight > 0 else -1, values)
        for name, weight, values in zip(names, weights, compute_published(evaluator, names), strict=True)
    ]
    return hold_fixed(parts, [abs(weight) for weight in weights], baseline.trading_rate or 1.0)


def _find_tested(evaluator: Evaluator) -> tuple[Values | None, str]:
    """Return the scores `[T, N]` of the combination that was tested first, and the verdict on it."""
    for row in evaluator.ledger.verdicts.of(evaluator.run):  # in the order of the tests
        weighed = evaluator.ledger.events.get(evaluator.run, WEIGHING_EVENT, row.factor_id)
        if weighed and row.metrics["trial"] is not None:
            expression = evaluator.read(evaluator.scores[row.factor_id].text)
            return evaluator.values(expression, evaluator.windows.selection), row.verdict
    return None, ""


def measure_addition(evaluator: Evaluator, own: Values, baseline: Values, window: Window) -> BaselineAddition:
    """Return what scores `[T, N]` add to the baseline's on a window: their ranks regressed on its ranks each day."""
    ranks, regressor = (rank_rows(np.ascontiguousarray(window.cut(score))) - 0.5 for score in (own, baseline))
    residual, kept = residual_ranks(ranks, [regressor])
    frame = np.full(own.shape, np.nan, np.float32)
    window.cut(frame)[:] = residual
    sheet = evaluator.scorer.score(frame, window, 1)
    figures = {"rank_ic": sheet.rank_ic, "t": sheet.t, "kept": kept}
    return BaselineAddition.read({name: round_significant(value) for name, value in figures.items()})


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
