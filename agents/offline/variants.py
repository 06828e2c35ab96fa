"""How the offline researcher takes up a mechanism again: narrower, and over another horizon, so that it says something new."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from ...factors.space import ACTIVITY, DRAWN_PRICES
from ..memory.diversity import NEAR_HORIZON_RATIO
from .mechanism import Mechanism

__all__ = ["Variant", "choose_variant"]

SKELETON_WORD = re.compile(r"\{?[a-z_]+")
HORIZON_RATIOS = (1.0, 2.0, 0.5, 4.0, 0.25, 8.0, 0.1, 0.05)
"""Horizons of later tries, as multiples of the mechanism's own: each is unlike the others by a factor of two or so."""
MAX_HORIZON_RATIO = 5
"""The longest and shortest horizon that a hypothesis may claim, as a multiple of the one that is scored."""


@dataclass(frozen=True)
class Variant:
    """One way to tell a mechanism: its words, its fields and its horizon in days."""

    statement: str
    fields: tuple[str, ...]
    horizon: int


def choose_variant(mechanism: Mechanism, fields: Sequence[str], horizon: int, tries: int) -> Variant:
    """Return how a mechanism is told after so many tries: whole at first, then by one of its readings at a time.

    Parameters
    ----------
    fields
        The mechanism's fields that the market has and the person allows.
    horizon
        Days that the desk scores.
    """
    whole = Variant(mechanism.statement, tuple(fields), _clamp_days(mechanism.horizon, horizon))
    ways = [(names, days) for days, names in product(_horizons(mechanism, horizon), _readings(mechanism, fields))]
    ways = [way for way in dict.fromkeys(ways) if way != (whole.fields, whole.horizon)]
    if tries == 0 or not ways:
        return whole
    names, days = ways[(tries - 1) % len(ways)]
    said = f"{mechanism.statement} Read here from {', '.join(names)}, over about {days} days."
    return Variant(said, names, days)


def _clamp_days(days: float, horizon: int) -> int:
    return int(min(max(round(days), -(-horizon // MAX_HORIZON_RATIO)), MAX_HORIZON_RATIO * horizon))


def _horizons(mechanism: Mechanism, horizon: int) -> list[int]:
    """Return the mechanism's own horizon and others that are clearly unlike it and each other, within what is allowed."""
    own = _clamp_days(mechanism.horizon, horizon)
    found: list[int] = []
    for days in (_clamp_days(own * rung, horizon) for rung in HORIZON_RATIOS):
        if all(max(days, other) > NEAR_HORIZON_RATIO * min(days, other) for other in found):
            found.append(days)
    return found


def _readings(mechanism: Mechanism, fields: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the sets of fields that single skeletons read, in the order of the skeletons; all fields where none is left."""
    kinds = {"{price": DRAWN_PRICES, "{activity": ACTIVITY}
    found = []
    for skeleton in mechanism.skeletons:
        words = SKELETON_WORD.findall(skeleton)
        wanted = {name for word in words for name in kinds.get(word, (word,))}
        found.append(tuple(name for name in fields if name in wanted))
    return list(dict.fromkeys(names for names in found if names)) or [tuple(fields)]
