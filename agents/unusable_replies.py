"""Where no model gives a reply that can be used: when a search of which nothing was tested rests, and what is told of the others.

One question without a usable reply costs its branch. Where all are such, nobody was answered, so a search does not end as one
that found nothing: it stops, and what it asked is asked anew, with other seeds, when it is gone on with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .errors import NoUsableReply
from .memory.refs import branches
from .protocols import Desk
from .retry import LONGEST_REASON

__all__ = ["ASKED", "asked_before", "fruitless", "unusable_replies"]

PATIENCE = 2
"""Rounds after which a search rests of which nothing was ever drafted; the last round is the last chance, too."""
ASKED = {"agents.ideas": "hypotheses of {}", "agents.drafts": "formulas for {}", "agents.critique": "a critique of {}"}
"""The kinds of event that a question leaves, and what each asked for."""
SHOWN = 3


def fruitless(desk: Desk, round_number: int) -> bool:
    """Tell whether nothing was drafted in any round before, of anybody, and there was patience enough."""
    if desk.own.seeds or round_number < min(desk.config.rounds, PATIENCE):
        return False
    earlier = (branch for number in range(1, round_number) for branch in branches(desk.journal, number, "h"))
    return not any((desk.journal.read("drafts", f"{branch}/s0/a0") or {}).get("items") for branch in earlier)


def asked_before(desk: Desk, key: str) -> int:
    """Return how often the search rested since no reply to a question could be used."""
    number, found = 1, 0
    while (kept := desk.journal.read("failure", f"{key}/{number}")) is not None:
        found += kept.get("error") == NoUsableReply.__name__
        number += 1
    return found


def unusable_replies(events: Iterable[tuple[str, str, Mapping[str, Any]]]) -> list[str]:
    """Return what a person is to know of questions without a usable reply, from what agents wrote: kind, key, body."""
    asked = [(kind, key, body) for kind, key, body in events if kind in ASKED]
    lost = [(kind, key, body) for kind, key, body in asked if body.get("failed") and not body.get("given_up")]
    if not lost:
        return []
    named = [ASKED[kind].format(key) for kind, key, _ in lost[:SHOWN]]
    more = [f"{len(lost) - SHOWN} more"] if len(lost) > SHOWN else []
    first = " ".join(str(lost[0][2]["failed"])[:LONGEST_REASON].splitlines()[0].split()).rstrip(":")
    return [f"{len(lost)} of {len(asked)} questions had no usable reply ({', '.join([*named, *more])}): {first}"]
