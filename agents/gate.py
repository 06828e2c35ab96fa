"""The desk's choice of what goes to the gate: few factors, by search evidence, each unlike the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .critic import TOOLS
from .idea import language
from .marks import Mark
from .protocols import Desk, Json
from .structure import overlap

ALIKE = 0.7
"""Share of common structure from which two formulas are one idea to the gate."""

TURNS = 5
"""How often one gate may choose again after refusals that cost no trial."""

Alike = Callable[[Mark, Mark], bool]
"""Tells whether two scored formulas say nearly the same."""


@dataclass(frozen=True)
class Purse:
    """What a gate may spend: trials now, down to a floor of trials left; the bar for |t|; whether this is the close."""

    trials: int
    floor: int
    bar: float
    closing: bool


async def budget(desk: Desk, key: str) -> Json:
    """Return what is left to spend, as it stood when first asked under this key."""
    box = desk.tools.held_by("eval", TOOLS)
    return await desk.once("budget", key, lambda: box.call("evaluation.budget", {}))


def choose(marks: Sequence[Mark], taken: Sequence[Mark], limit: int, alike: Alike) -> list[Mark]:
    """Return up to `limit` marks in the order given, skipping what is like one taken or chosen."""
    chosen: list[Mark] = []
    for mark in marks:
        if len(chosen) >= limit:
            break
        if not any(mark.id == other.id or alike(mark, other) for other in (*taken, *chosen)):
            chosen.append(mark)
    return chosen


def members(marks: Sequence[Mark], limit: int, alike: Alike) -> list[Mark]:
    """Return the members of a set: the best of each hypothesis, each unlike the others."""
    best: dict[str, Mark] = {}
    for mark in marks:
        best.setdefault(mark.branch, mark)
    return choose(list(best.values()), (), limit, alike)


async def submit(desk: Desk, chosen: Sequence[Mark], key: str) -> Json:
    """Return the gate's verdicts on single factors; each is a trial."""
    if not chosen:
        return {"verdicts": []}
    box = desk.tools.held_by("eval", TOOLS)
    arguments = {"ids": [mark.id for mark in chosen], "key": key}
    return await desk.once("submission", key, lambda: box.call("evaluation.submit_to_gate", arguments))


async def submit_set(desk: Desk, chosen: Sequence[Mark], key: str) -> Json:
    """Return the gate's verdict on one set: equal weights, signs as search has them; one trial."""
    box = desk.tools.held_by("eval", TOOLS)
    arguments = {"members": [mark.id for mark in chosen], "key": key}
    return await desk.once("submission", key, lambda: box.call("evaluation.submit_set", arguments))


async def spend(desk: Desk, marks: Sequence[Mark], sent: Sequence[Mark], purse: Purse, key: str) -> list[Mark]:
    """Send the best to the gate and return what was sent singly; what was refused without a look frees its trial.

    At the close the best single factor goes first and the set second: the levels that the stream of trials leaves
    fall with every look, so the strongest claims must be made first.
    """
    alike = likeness(desk)
    strong = [mark for mark in marks if abs(mark.t) >= purse.bar]
    worthy = [mark for mark in strong if mark.t * direction(desk, mark) > 0]
    group = members(strong, desk.config.set_size, alike) if purse.closing else []
    now: list[Mark] = []
    if len(group) >= 2 and purse.trials > 0:
        now += choose(worthy, sent, min(1, purse.trials - 1), alike)
        await submit(desk, now, f"{key}/first")
        await submit_set(desk, group, f"{key}/set")
    for turn in range(TURNS):
        free = int((await budget(desk, f"{key}/t{turn}"))["trials_left"]) - purse.floor
        chosen = choose(worthy, [*sent, *now], free, alike)
        if not chosen:
            break
        await submit(desk, chosen, f"{key}/t{turn}")
        now += chosen
    return now


def direction(desk: Desk, mark: Mark) -> int:
    """Return the direction that a formula's hypothesis claims; the gate refuses what shows the other."""
    return int((desk.journal.read("hypothesis", mark.branch) or {}).get("direction", 1))


def likeness(desk: Desk) -> Alike:
    """Return the test that two scored formulas share most of their structure, windows aside."""

    def text(mark: Mark) -> str:
        return str((desk.journal.read("score", mark.key) or {}).get("text", ""))

    spoken = language(desk.journal.read("recall", "r01") or {})
    fields, groups = tuple(spoken["fields"]), tuple(spoken["groups"])
    return lambda one, other: overlap(text(one), text(other), fields, groups) >= ALIKE
