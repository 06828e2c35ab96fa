"""Mechanisms for data-mined candidates: stated by the Idea agent before the tests, each with a refuter.

The evaluation server tests each refuter on search days. What is refuted, or has no mechanism, stays data-mined. A
campaign with surveys has fixed its list of tests before, from search alone, and an answer changes no place in it. One
without surveys wants reasons only: what stays data-mined leaves its list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..questions import Question, ask_model
from ..records import Mark, describe_language, read_attempt, read_mark_hypothesis, read_memory
from ..schemas import Mechanisms
from ..search_context import Json, SearchContext
from .factor_agent import FACTOR_AGENT_TOOLS

MECHANISM_PAGE = "mechanism"
"""The prompt page that explains the task."""
MAX_CANDIDATES_ASKED = 12
"""Candidates of one question: a reply about more would be long, and a lost one would cost them all."""
STATED_KEYS = (
    "mechanism", "statement", "who_is_on_the_other_side", "why_it_persists", "direction", "horizon_days", "fields",
    "refuted_by",
)  # fmt: skip  # a table


def is_mined(search: SearchContext, mark: Mark) -> bool:
    """Return whether a scored formula came without a mechanism, or no longer measures its own."""
    return read_mark_hypothesis(search.journal, mark).either_way


async def state_mechanisms(search: SearchContext, marks: Iterable[Mark], key: str) -> set[str]:
    """Ask for a mechanism of each data-mined candidate; return the ids of those whose refuter did not explain them."""
    mined = [mark for mark in marks if is_mined(search, mark)]
    standing = set[str]()
    for number, start in enumerate(range(0, len(mined), MAX_CANDIDATES_ASKED)):
        batch = mined[start : start + MAX_CANDIDATES_ASKED]
        reply = await _ask_agent(search, batch, f"{key}/m{number}")
        ids = {mark.id for mark in batch}
        rows = {row["id"]: row for row in reply.get("mechanisms", []) if row["id"] in ids}
        for mark in batch:
            if mark.id in rows and await _state(search, mark, rows[mark.id]):
                standing.add(mark.id)
    if mined:
        search.progress("mechanisms", {"data_mined": len(mined), "stated": len(standing)})
    return standing


async def _ask_agent(search: SearchContext, marks: Sequence[Mark], key: str) -> Json:
    """Return the Idea agent's reply about some candidates, stored in the journal."""

    async def ask() -> Json:
        context = _build_context(search, marks, key)
        question = Question("idea", "mechanisms", key, Mechanisms, context, (MECHANISM_PAGE,), items=len(marks))
        return await ask_model(search, question)

    return await search.record_once("mechanisms", key, ask)


def _build_context(search: SearchContext, marks: Sequence[Mark], key: str) -> Json:
    memory = read_memory(search.journal, "r01")
    steer = search.steer.record()
    return {
        "market": {"horizon_days": search.horizon_days, "fields": memory.described_fields},
        "language": describe_language(search.journal, memory),
        **({"steer": steer} if steer else {}),
        "candidates": [_describe_candidate(search, mark) for mark in marks],
        "request": {"count": len(marks)},
        "task": "mechanism",
    }


def _describe_candidate(search: SearchContext, mark: Mark) -> Json:
    attempt = read_attempt(search.journal, mark.key)
    sheet = attempt.sheet
    figures = {"rank_ic": sheet.rank_ic, "t": sheet.t_stat, "turnover": sheet.turnover, "decay": dict(sheet.decay)}
    return {"id": mark.id, "text": attempt.text, **figures}


async def _state(search: SearchContext, mark: Mark, row: Json) -> bool:
    """Hand one statement to the evaluation server, once; return whether it stands."""
    hypothesis = {"id": mark.id, **{name: row[name] for name in STATED_KEYS}}
    text = read_attempt(search.journal, mark.key).text
    key = f"{mark.key}/mechanism"
    arguments = {"text": text, "hypothesis": hypothesis, "key": key, "refuter": row["refuter"]}
    box = search.tools.select("factor", FACTOR_AGENT_TOOLS)
    answer = await search.record_once("stated", mark.id, lambda: box.call("evaluation.score_factor", arguments))
    return bool(answer.get("stands"))
