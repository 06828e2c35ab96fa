"""A person's seed library: scored before anything is thought of, so that the first formulas already have parents."""

from __future__ import annotations

from ...factors import FactorError, parse
from ..memory import archive
from ..memory.refs import Mark
from ..own.own import Seed
from ..protocols import Json, SearchContext
from . import factor, idea

__all__ = ["SEEDS_PER_STEP", "score_seeds"]

SEEDS_PER_STEP = 20
"""Seeds that one super-step scores; between two the search can be halted."""
SEED_ROUND = "r00"
MAX_HYPOTHESIS_FIELDS = 20


async def score_seeds(desk: SearchContext, start: int) -> list[Mark]:
    """Score some seeds from a position on and return the marks of those that the server took."""
    memory = await idea.recall(desk, SEED_ROUND)
    spoken = idea.language(desk, memory)
    marks: list[Mark] = []
    for place, seed in list(enumerate(desk.own.seeds))[start : start + SEEDS_PER_STEP]:
        branch = f"{SEED_ROUND}/h{place:04d}"
        desk.journal.record("hypothesis", branch, _hypothesis(desk, branch, seed, spoken))
        item = {"key": f"{branch}/s0/c0/a0", "text": seed.text, "rationale": seed.statement, "intent": "explore"}
        scored = await factor.score_formula(desk, branch, item)
        marks += archive.place_in_niches(desk, branch, [{**scored, "key": item["key"]}])
    return marks


def _hypothesis(desk: SearchContext, branch: str, seed: Seed, spoken: Json) -> Json:
    """Return what a seed claims: that it works as it is written, over the horizon that is scored, on what it reads."""
    return {
        "id": branch,
        "mechanism": seed.mechanism,
        "statement": seed.statement,
        "who_is_on_the_other_side": "",
        "why_it_persists": "",
        "direction": seed.direction,
        "horizon_days": desk.horizon_days,
        "fields": _fields(seed.text, spoken)[:MAX_HYPOTHESIS_FIELDS],
        "regime": "any",
        "refuted_by": "its own figures",
        "source": "seed library",
    }


def _fields(text: str, spoken: Json) -> list[str]:
    """Return what a seed reads; all fields where it cannot be read, which the server then says."""
    try:
        return sorted(parse(text, fields=tuple(spoken["fields"]), groups=tuple(spoken["groups"])).fields)
    except FactorError:
        return list(spoken["fields"])
