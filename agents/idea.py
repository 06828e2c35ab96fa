"""The Idea agent: recalls what was tried and proposes hypotheses."""

from __future__ import annotations

from collections.abc import Sequence

from . import review
from .asking import Question, answer
from .protocols import Desk, Json
from .schemas import Ideas

TOOLS = ("factors.recall", "market.search_fields")

SHOWN = 30
SHOWN_HYPOTHESES = 100
"""Past factors and hypotheses that the Idea agent reads; more would push out what matters."""


async def recall(desk: Desk, round_key: str) -> Json:
    """Return the desk's memory as it stood when the round began; kept, so that a restart reads the same."""
    box = desk.tools.held_by("idea", TOOLS)

    async def read() -> Json:
        past = await box.call("factors.recall", {"limit": desk.config.recall_limit})
        known = await box.call("market.search_fields", {"query": ""})
        return {**past, "described": known.get("fields", [])}

    return await desk.once("recall", round_key, read)


def names(listed: Sequence[object]) -> list[str]:
    """Return names from a list of names or of objects with a name."""
    return [item if isinstance(item, str) else str(item["name"]) for item in listed if isinstance(item, (str, dict))]


def language(memory: Json) -> Json:
    """Return what every prompt says of the language: its operators, and the fields and groups of this market."""
    return {
        "operators": [_operator(item) for item in memory.get("operators", [])],
        "fields": names(memory.get("fields", [])),
        "groups": names(memory.get("groups", [])),
    }


def _operator(item: object) -> object:
    """Return an operator as its signature and first sentence; its whole page would fill the prompt."""
    if not isinstance(item, dict):
        return item
    lines = [line for line in str(item.get("doc", "")).splitlines() if line]
    return f"{item.get('signature', item.get('name', ''))}: {lines[1] if len(lines) > 1 else ''}"


async def propose(desk: Desk, round_number: int, count: int) -> tuple[list[str], str]:
    """Return the keys of the round's new hypotheses, each kept in the journal, and why the budget ended, if it did."""
    key = f"r{round_number:02d}"
    memory = await recall(desk, key)
    if count <= 0:  # a round that only takes up what a person sent back
        return [], ""
    context = _context(desk, memory, round_number, count)

    async def ask() -> Json:
        return await answer(desk, Question("idea", "hypotheses", key, Ideas, context, review.prompts(desk, key)))

    reply = await desk.once("ideas", key, ask)
    kept = []
    for index, hypothesis in enumerate(reply.get("hypotheses", [])[:count]):
        branch = f"{key}/h{index:02d}"
        desk.journal.record("hypothesis", branch, {"id": branch, **hypothesis})
        kept.append(branch)
    return kept, reply.get("ended", "")


def _context(desk: Desk, memory: Json, round_number: int, count: int) -> Json:
    return {
        "task": "idea",
        "market": {"horizon_days": desk.horizon_days, "fields": memory.get("described") or memory.get("fields", [])},
        "language": language(memory),
        "record": {
            "factors": memory.get("factors", [])[:SHOWN],
            "hypotheses": memory.get("hypotheses", [])[-SHOWN_HYPOTHESES:],
            "library": memory.get("library", []),
            **review.shown(desk, round_number),
        },
        "request": {"count": count, "round": round_number} | ({"python": True} if desk.config.python else {}),
    }
