"""What the offline researcher makes of a person's words: which mechanisms match them, and which are left out.

It matches words, nothing more: a goal is searched for in what the list of mechanisms says of itself.
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
"""Further hypotheses of the mechanism that matches best before one that does not match at all is taken."""
FOCUS_TRIES = 39.0
"""The same for a mechanism that the person names as the focus."""
MATCHED_WORD_WEIGHT = 0.5
"""What a word of the goal still counts for after each mechanism that speaks of it."""
GOAL_T_BONUS = 2.0
"""What a full match adds to the |t| of a formula when follow-ups are chosen."""
GRADES = re.compile(r"\b(?:low|high|long|short|large|small|more|less)(?:er|est)?\b", re.IGNORECASE)
"""Words that say how much, not of what; in a goal they would match every mechanism that has a low in its name."""
HORIZON_WORDS = ((2, "daily"), (8, "weekly"), (40, "monthly"), (250, "quarterly"))
"""What people call a horizon of at most so many days."""


def _document(mechanism: Mechanism) -> str:
    """Return what a mechanism says of itself, and what people call its horizon."""
    rhythm = next((word for most, word in HORIZON_WORDS if mechanism.horizon <= most), "")
    said = (mechanism.id, mechanism.statement, mechanism.regime, mechanism.other_side, mechanism.persists, rhythm)
    return " ".join(said)


@lru_cache(maxsize=64)
def _match_goal(goal: str) -> Mapping[str, float]:
    """Return by mechanism how well it serves a goal: 1 for the best, 0 where no word is shared.

    A goal has several sides. Mechanisms are taken one after the other, and a word counts for less each time that one
    taken before speaks of it: else whatever has many mechanisms, such as sectors, would hide the rest.
    """
    known = load_mechanisms()
    documents = [_document(each) for each in known]
    words = {stem: word for word in re.split(r"\W+", GRADES.sub(" ", goal)) for stem in find_stems(word)}
    asked = {stem: score_relevance(words[stem], documents) for stem in sorted(words)}
    weights = dict.fromkeys(asked, 1.0)
    left, found = list(range(len(known))), dict.fromkeys((each.id for each in known), 0.0)
    first = 0.0
    while left:
        worth = {place: sum(weights[stem] * asked[stem][place] for stem in asked) for place in left}
        best = max(left, key=lambda place: (worth[place], -place))
        if worth[best] <= 0.0:
            break
        first = first or worth[best]
        found[known[best].id] = worth[best] / first
        weights = {
            stem: weight * (MATCHED_WORD_WEIGHT if asked[stem][best] else 1.0) for stem, weight in weights.items()
        }
        left.remove(best)
    return found


@dataclass(frozen=True)
class Steering:
    """A person's words, as the context of a prompt quotes them."""

    goal: str = ""
    avoid: tuple[str, ...] = ()
    focus: tuple[str, ...] = ()

    @property
    def wanted(self) -> bool:
        """Tell whether anything known is asked for, so that mechanisms are not simply taken in turn."""
        return bool(self.focus) or any(_match_goal(self.goal).values())

    def allows(self, mechanism: Mechanism) -> bool:
        """Tell whether a mechanism is not among what is to be avoided."""
        return self.permits(mechanism.id, mechanism.statement)

    def permits(self, name: str, statement: str = "") -> bool:
        """Tell whether neither a mechanism's name nor a statement speaks of what is to be avoided."""
        return not find_mention((name, statement), self.avoid)

    def turn(self, mechanism: Mechanism, tries: int) -> float:
        """Return when a mechanism's turn is after so many tries, the lowest first: what matches comes sooner and again."""
        named = bool(find_mention((mechanism.id, mechanism.statement), self.focus))
        liked = FOCUS_TRIES if named else GOAL_TRIES * _match_goal(self.goal)[mechanism.id]
        return (tries + 1) / (1.0 + liked)

    def allure(self, name: str) -> float:
        """Return what the goal adds to the worth of a formula of a mechanism, 0 for an unknown name."""
        return GOAL_T_BONUS * _match_goal(self.goal).get(name, 0.0)


def read_steering(context: Context) -> Steering:
    """Return what a prompt's context says under `steer`; nothing where it says nothing."""
    said = context.part("steer")
    return Steering(str(said.get("goal", "")), _words(said.get("avoid")), _words(said.get("focus")))


def _words(listed: Any) -> tuple[str, ...]:
    return tuple(str(each) for each in listed) if isinstance(listed, list) else ()


def describe_unmatched(steer: Json) -> list[str]:
    """Return, in words for a person, what of `{goal, avoid, focus}` meets no mechanism that is known here."""
    goal = str(steer.get("goal", ""))
    found = []
    if goal and not any(_match_goal(goal).values()):
        found.append(
            f"steer.goal: no mechanism that the offline researcher knows matches {goal!r}; it proposes in its usual order"
        )
    for name in ("avoid", "focus"):
        idle = [each for each in steer.get(name, ()) if not _is_known(each)]
        if idle:
            said = f"steer.{name}: no mechanism that the offline researcher knows speaks of {_quote_entries(idle)}"
            near = [each for entry in idle for each in get_close_matches(entry.lower(), sorted(_names()), n=1)]
            found.append(said + (f"; did you mean {_quote_entries(near)}?" if near else ""))
    return found


def _names() -> set[str]:
    """Return what mechanisms are called, in plain words, and the words of it."""
    plain = {each.id.replace("_", " ") for each in load_mechanisms()}
    return plain | {word for name in plain for word in name.split()}


def _is_known(entry: str) -> bool:
    return any(find_mention((each.id, each.statement), (entry,)) for each in load_mechanisms())


def _quote_entries(entries: Sequence[str]) -> str:
    return ", ".join(repr(each) for each in entries)
