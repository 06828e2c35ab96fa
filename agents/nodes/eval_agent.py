"""The Eval agent: names weaknesses of one hypothesis' best formulas and asks for changes."""

from __future__ import annotations

from ...factors.describe import natural_sort_key
from ..memory.operator_outcomes import describe_operators
from ..questions import Question, ask_model
from ..records import Mark, Work, finite_or_none, read_attempt, read_hypothesis
from ..schemas import Critique
from ..search_context import Json, SearchContext
from . import review
from .factor_agent import HYPOTHESIS_KEYS

EVAL_AGENT_TOOLS = ("evaluation.get_budget", "evaluation.list_formulas", "evaluation.submit_to_gate")

CRITICISED_KIND = "criticised"
"""Kind under which the journal records the marks that a critique saw; the next one sees them again, before new ones."""
MAX_BEST_CRITICISED, MAX_MARKS_CRITICISED = 3, 12


async def criticise_formulas(search: SearchContext, work: Work) -> Json:
    """Return the critique of one branch after a step, stored in the journal."""
    key = f"{work.branch}/s{work.step}"

    async def ask() -> Json:
        more = review.list_review_pages(search, work.round_key)
        return await ask_model(search, Question("eval", "critique", key, Critique, _build_context(search, work), more))

    return await search.record_once("critique", key, ask)


def describe_measurement(search: SearchContext, mark: Mark) -> Json:
    """Return one formula's figures on the search window, rounded for a prompt.

    RankICs in tables have four decimals; quantile returns are in basis points with one.
    """
    attempt = read_attempt(search.journal, mark.key)
    sheet = attempt.sheet
    tables = {"decay": sheet.decay, "by_year": sheet.by_year}
    return {
        "text": attempt.text,
        "rank_ic": sheet.rank_ic,
        "t": sheet.t_stat,
        "turnover": sheet.turnover,
        "net_sharpe": sheet.net_sharpe,
        "coverage": sheet.coverage,
        **{name: {row: _round_figure(rows[row], 4) for row in sorted(rows, key=int)} for name, rows in tables.items()},
        "quantile_returns_bps": [_round_figure(value, 1, times=10_000) for value in sheet.quantile_returns],
        "weaknesses": [f"{weakness.code}: {weakness.message}" for weakness in attempt.weaknesses],
    }


def _round_figure(value: object, decimals: int, *, times: float = 1.0) -> float | None:
    """Return `times * value` rounded; None if it is missing or not finite."""
    number = finite_or_none(value)
    return None if number is None else round(times * number, decimals) + 0.0  # -0.0 becomes 0.0


def _collect_best(search: SearchContext, work: Work) -> list[Mark]:
    """Return the best of all steps so far by their keys, and record them; if there are too many, today's best alone."""
    previous = search.journal.read(CRITICISED_KIND, f"{work.branch}/s{work.step - 1}") or {"marks": []}
    best = work.best[:MAX_BEST_CRITICISED]
    grown = {*(Mark(*row) for row in previous["marks"]), *best}
    marks = sorted(grown if len(grown) <= MAX_MARKS_CRITICISED else best, key=lambda mark: natural_sort_key(mark.key))
    search.journal.record(CRITICISED_KIND, f"{work.branch}/s{work.step}", {"marks": [list(mark) for mark in marks]})
    return marks


def _build_context(search: SearchContext, work: Work) -> Json:
    """Return the context; marks of the previous critique come first, since servers cache an equal prefix."""
    hypothesis = read_hypothesis(search.journal, work.branch)
    number = review.parse_round(work.round_key)
    outcomes = describe_operators(search, number)
    record = review.read_reviews(search, number) | ({"operators": outcomes} if outcomes else {})
    return {
        "market": {"horizon_days": search.horizon_days},
        **({"record": record} if record else {}),
        "hypothesis": hypothesis.select(HYPOTHESIS_KEYS),
        "factors": [describe_measurement(search, mark) for mark in _collect_best(search, work)],
        "request": {"step": work.step, "remaining": search.config.steps - work.step},
        "task": "critique",
    }
