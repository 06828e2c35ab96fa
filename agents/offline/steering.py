"""A person's wishes as the offline researcher reads them: which mechanisms match, and which are excluded.

It matches words only: a goal is searched for in the texts of the mechanisms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from ...factors.describe import find_mention, find_stems, score_relevance
from .mechanisms import Mechanism, load_mechanisms
from .prompt_context import Context, Json

__all__ = ["Steering", "describe_unmatched", "read_steering"]

GOAL_TRIES = 3.0
"""Additional hypotheses of the best match before a mechanism without any match is taken."""
FOCUS_TRIES = 39.0
"""The same for a mechanism that the person names as the focus."""
MATCHED_WORD_WEIGHT = 0.5
"""Factor by which a word of the goal loses weight after each chosen mechanism that contains it."""
GOAL_T_BONUS = 2.0
"""Bonus of a full match to the |t| of a formula when follow-ups are chosen."""
GRADES = re.compile(r"\b(?:low|high|long|short|large|small|more|less)(?:er|est)?\b", re.IGNORECASE)
"""Words of degree, not of subject; in a goal they would match every mechanism that has a low in its name."""
HORIZON_WORDS = ((2, "daily"), (8, "weekly"), (40, "monthly"), (250, "quarterly"))
"""Usual names of a horizon of at most so many days."""


def _join_texts(mechanism: Mechanism) -> str:
    """Return a mechanism's texts and the name of its horizon, for the search."""
    rhythm = next((word for days, word in HORIZON_WORDS if mechanism.horizon <= days), "")
    texts = (mechanism.id, mechanism.statement, mechanism.regime, mechanism.other_side, mechanism.persists, rhythm)
    return " ".join(texts)


@lru_cache(maxsize=64)
def _match_goal(goal: str) -> Mapping[str, float]:
    """Return by mechanism how well it matches a goal: 1 for the best, 0 without a common word.

    A goal has several sides. Mechanisms are chosen one after the other, and a word loses weight each time a chosen
    mechanism contains it; otherwise a subject with many mechanisms, such as sectors, would hide the rest.
    """
    mechanisms = load_mechanisms()
    documents = [_join_texts(mechanism) for mechanism in mechanisms]
    words = {stem: word for word in re.split(r"\W+", GRADES.sub(" ", goal)) for stem in find_stems(word)}
    relevance = {stem: score_relevance(words[stem], documents) for stem in sorted(words)}
    weights = dict.fromkeys(relevance, 1.0)
    remaining, matches = list(range(len(mechanisms))), dict.fromkeys((mechanism.id for mechanism in mechanisms), 0.0)
    first = 0.0
    while remaining:
        scores = {place: sum(weights[stem] * relevance[stem][place] for stem in relevance) for place in remaining}
        best = max(remaining, key=lambda place: (scores[place], -place))
        if scores[best] <= 0.0:
            break
        first = first or scores[best]
        matches[mechanisms[best].id] = scores[best] / first
        weights = {
            stem: weight * (MATCHED_WORD_WEIGHT if relevance[stem][best] else 1.0) for stem, weight in weights.items()
        }
        remaining.remove(best)
    return matches


@dataclass(frozen=True)
class Steering:
    """A person's words, as the context of a prompt quotes them."""

    goal: str = ""
    avoid: tuple[str, ...] = ()
    focus: tuple[str, ...] = ()

    @property
    def wanted(self) -> bool:
        """Whether the person asks for anything known; otherwise mechanisms are taken in turn."""
        return bool(self.focus) or any(_match_goal(self.goal).values())

    def allows(self, mechanism: Mechanism) -> bool:
        """Return whether a mechanism does not touch what is to be avoided."""
        return self.permits(mechanism.id, mechanism.statement)

    def permits(self, name: str, statement: str = "") -> bool:
        """Return whether neither a mechanism's name nor a statement mentions what is to be avoided."""
        return not find_mention((name, statement), self.avoid)

    def turn(self, mechanism: Mechanism, tries: int) -> float:
        """Return a mechanism's place in the queue after so many tries, the lowest first; matches come sooner."""
        focused = bool(find_mention((mechanism.id, mechanism.statement), self.focus))
        liked = FOCUS_TRIES if focused else GOAL_TRIES * _match_goal(self.goal)[mechanism.id]
        return (tries + 1) / (1.0 + liked)

    def allure(self, name: str) -> float:
        """Return the goal's bonus for a formula of a mechanism; 0 for an unknown name."""
        return GOAL_T_BONUS * _match_goal(self.goal).get(name, 0.0)


def read_steering(context: Context) -> Steering:
    """Return the settings under `steer` in a prompt's context; empty ones if there are none."""
    settings = context.part("steer")
    return Steering(
        str(settings.get("goal", "")), _read_words(settings.get("avoid")), _read_words(settings.get("focus"))
    )


def _read_words(value: Any) -> tuple[str, ...]:
    return tuple(str(word) for word in value) if isinstance(value, list) else ()


def describe_unmatched(steer: Json) -> list[str]:
    """Return messages for a person about the parts of `{goal, avoid, focus}` that match no known mechanism."""
    goal = str(steer.get("goal", ""))
    messages = []
    if goal and not any(_match_goal(goal).values()):
        messages.append(
            f"steer.goal: no mechanism that the offline researcher knows matches {goal!r}; "
            "it proposes in its usual order"
        )
    for name in ("avoid", "focus"):
        idle = [entry for entry in steer.get(name, ()) if not _is_known(entry)]
        if idle:
            message = f"steer.{name}: no mechanism that the offline researcher knows speaks of {_quote_entries(idle)}"
            near = [close for entry in idle for close in get_close_matches(entry.lower(), sorted(_list_names()), n=1)]
            messages.append(message + (f"; did you mean {_quote_entries(near)}?" if near else ""))
    return messages


def _list_names() -> set[str]:
    """Return the mechanisms' names in plain words, and each word of them."""
    plain = {mechanism.id.replace("_", " ") for mechanism in load_mechanisms()}
    return plain | {word for name in plain for word in name.split()}


def _is_known(entry: str) -> bool:
    return any(find_mention((mechanism.id, mechanism.statement), (entry,)) for mechanism in load_mechanisms())


def _quote_entries(entries: Sequence[str]) -> str:
    return ", ".join(repr(entry) for entry in entries)
