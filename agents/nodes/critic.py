"""The Eval agent: names the weaknesses of one hypothesis' best formulas and asks for changes."""

from __future__ import annotations

from ...factors.describe.words import numbered
from ..asking import Question, answer
from ..memory import operators
from ..memory.refs import Mark, Work, finite
from ..protocols import Desk, Json
from ..schemas import Critique
from . import review
from .factor import HYPOTHESIS

TOOLS = ("evaluation.get_budget", "evaluation.list_formulas", "evaluation.submit_to_gate")

SEEN = "criticised"
"""Under which the journal keeps what a critique saw: the next one sees it too, before what is new."""
SHOWN, MOST = 3, 12
NUMBERS = ("rank_ic", "t", "turnover", "net_sharpe", "coverage")
TABLES = ("decay", "by_year")


async def criticise(desk: Desk, work: Work) -> Json:
    """Return the critique of one branch after a step, kept in the journal."""
    key = f"{work.branch}/s{work.step}"

    async def ask() -> Json:
        more = review.prompts(desk, work.round_key)
        return await answer(desk, Question("eval", "critique", key, Critique, _context(desk, work), more))

    return await desk.once("critique", key, ask)


def measured(desk: Desk, mark: Mark) -> Json:
    """Return what was measured about one formula on the search window; RankICs in tables to four decimals, returns in basis points."""
    scored = desk.journal.read("score", mark.key) or {}
    sheet = scored.get("sheet", {})
    tables = {name: sheet.get(name, {}) for name in TABLES}
    return {
        "text": scored.get("text", ""),
        **{name: sheet.get(name) for name in NUMBERS},
        **{name: {row: _fine(rows[row], 4) for row in sorted(rows, key=int)} for name, rows in tables.items()},
        "quantile_returns_bps": [_fine(value, 1, times=10_000) for value in sheet.get("quantile_returns", [])],
        "weaknesses": [f"{weakness['code']}: {weakness['message']}" for weakness in scored.get("weaknesses", [])],
    }


def _fine(value: object, decimals: int, *, times: float = 1.0) -> float | None:
    """Return a number of a sheet by so many decimals, and None for one that is missing or not finite."""
    number = finite(value)
    return None if number is None else round(times * number, decimals) + 0.0  # no minus before nothing


def _best(desk: Desk, work: Work) -> list[Mark]:
    """Return the best after each step so far, by their keys, and keep which they are; of too many, the best now alone."""
    seen = desk.journal.read(SEEN, f"{work.branch}/s{work.step - 1}") or {"marks": []}
    best = work.best[:SHOWN]
    grown = {*(Mark(*row) for row in seen["marks"]), *best}
    marks = sorted(grown if len(grown) <= MOST else best, key=lambda mark: numbered(mark.key))
    desk.journal.record(SEEN, f"{work.branch}/s{work.step}", {"marks": [list(mark) for mark in marks]})
    return marks


def _context(desk: Desk, work: Work) -> Json:
    """Return the context; what the critique before saw comes first, since a server computes an equal beginning only once."""
    hypothesis = desk.journal.read("hypothesis", work.branch) or {}
    number = review.number_of(work.round_key)
    learnt = operators.told(desk, number)
    record = review.shown(desk, number) | ({"operators": learnt} if learnt else {})
    return {
        "market": {"horizon_days": desk.horizon_days},
        **({"record": record} if record else {}),
        "hypothesis": {name: hypothesis[name] for name in HYPOTHESIS},
        "factors": [measured(desk, mark) for mark in _best(desk, work)],
        "request": {"step": work.step, "remaining": desk.config.steps - work.step},
        "task": "critique",
    }
