"""The Eval agent: names the weaknesses of one hypothesis' best formulas and asks for changes."""

from __future__ import annotations

from . import operators, review
from .asking import Question, answer
from .factor import HYPOTHESIS
from .marks import Mark, Work, figure
from .protocols import Desk, Json
from .schemas import Critique

TOOLS = ("evaluation.get_budget", "evaluation.list_formulas", "evaluation.submit_to_gate")

SHOWN = 3
NUMBERS = ("rank_ic", "t", "icir", "turnover", "net_sharpe", "coverage")
TABLES = ("decay", "by_year")


async def criticise(desk: Desk, work: Work) -> Json:
    """Return the critique of one branch after a step, kept in the journal."""
    key = f"{work.branch}/s{work.step}"

    async def ask() -> Json:
        more = review.prompts(desk, work.round_key)
        return await answer(desk, Question("eval", "critique", key, Critique, _context(desk, work), more))

    return await desk.once("critique", key, ask)


def measured(desk: Desk, mark: Mark) -> Json:
    """Return what was measured about one formula on the search window."""
    scored = desk.journal.read("score", mark.key) or {}
    sheet = scored.get("sheet", {})
    return {
        "id": mark.id,
        "text": scored.get("text", ""),
        **{name: figure(sheet.get(name)) for name in NUMBERS},
        **{name: {key: figure(value) for key, value in sheet.get(name, {}).items()} for name in TABLES},
        "quantile_returns": [figure(value) for value in sheet.get("quantile_returns", [])],
        "weaknesses": [{"code": w["code"], "message": w["message"]} for w in scored.get("weaknesses", [])],
    }


def _context(desk: Desk, work: Work) -> Json:
    hypothesis = desk.journal.read("hypothesis", work.branch) or {}
    number = review.number_of(work.round_key)
    learnt = operators.told(desk, number)
    record = review.shown(desk, number) | ({"operators": learnt} if learnt else {})
    return {
        "task": "critique",
        "market": {"horizon_days": desk.horizon_days},
        **({"record": record} if record else {}),
        "hypothesis": {name: hypothesis[name] for name in HYPOTHESIS},
        "factors": [measured(desk, mark) for mark in work.best[:SHOWN]],
        "request": {"step": work.step, "remaining": desk.config.steps - work.step},
    }
