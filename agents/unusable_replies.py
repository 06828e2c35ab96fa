"""Where no model gives a reply that can be used: when a search of which nothing was tested rests, and what is told of the others.

One question without a usable reply costs its branch. Where all are such, nobody was answered, so a search does not end as one
that found nothing: it stops, and what it asked is asked anew, with other seeds, when it is gone on with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .errors import NoUsableReply
from .memory.refs import round_branches
from .protocols import SearchContext
from .retry import MAX_FAILURE_REASON_CHARS

__all__ = ["QUESTION_WORDS", "count_rests", "describe_unusable_replies", "is_fruitless"]

MIN_FRUITLESS_ROUNDS = 2
"""Rounds after which a search rests of which nothing was ever drafted; the last round is the last chance, too."""
QUESTION_WORDS = {
    "agents.ideas": "hypotheses of {}",
    "agents.drafts": "formulas for {}",
    "agents.critique": "a critique of {}",
}
"""The kinds of event that a question leaves, and what each asked for."""
MAX_LOST_SHOWN = 3


def is_fruitless(desk: SearchContext, round_number: int) -> bool:
    """Tell whether nothing was drafted in any round before, of anybody, and there was patience enough."""
    if desk.own.seeds or round_number < min(desk.config.rounds, MIN_FRUITLESS_ROUNDS):
        return False
    earlier = (branch for number in range(1, round_number) for branch in round_branches(desk.journal, number, "h"))
    return not any((desk.journal.read("drafts", f"{branch}/s0/a0") or {}).get("items") for branch in earlier)


def count_rests(desk: SearchContext, key: str) -> int:
    """Return how often the search rested since no reply to a question could be used."""
    number, found = 1, 0
    while (kept := desk.journal.read("failure", f"{key}/{number}")) is not None:
        found += kept.get("error") == NoUsableReply.__name__
        number += 1
    return found


def describe_unusable_replies(events: Iterable[tuple[str, str, Mapping[str, Any]]]) -> list[str]:
    """Return what a person is to know of questions without a usable reply, from what agents wrote: kind, key, body."""
    asked = [(kind, key, body) for kind, key, body in events if kind in QUESTION_WORDS]
    lost = [(kind, key, body) for kind, key, body in asked if body.get("failed") and not body.get("given_up")]
    if not lost:
        return []
    named = [QUESTION_WORDS[kind].format(key) for kind, key, _ in lost[:MAX_LOST_SHOWN]]
    more = [f"{len(lost) - MAX_LOST_SHOWN} more"] if len(lost) > MAX_LOST_SHOWN else []
    first = " ".join(str(lost[0][2]["failed"])[:MAX_FAILURE_REASON_CHARS].splitlines()[0].split()).rstrip(":")
    return [f"{len(lost)} of {len(asked)} questions had no usable reply ({', '.join([*named, *more])}): {first}"]
