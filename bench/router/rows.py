"""The rows of the replay: whoever puts prompts in order of hardness, and ways that are one point each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from alphaloom.router.config import LearningSettings, Tier
from alphaloom.router.policy.decision import RoutingDecision
from alphaloom.router.policy.learning import Learner, TierOutcome, Way as Path
from bench.router.curve import Way, cascade, tier
from bench.router.law import FRONTIER, LOCAL, Law, Numbers, Table

__all__ = ["FAILURE_USD", "learned", "oracle", "oracle_of_cascade", "points"]

FAILURE_USD = 0.05
"""What a wrong reply that shows itself costs the learner beside its price: about three frontier calls."""
TIERS: tuple[Tier, Tier] = ("local", "frontier")


def oracle(table: Table) -> Numbers:
    """Return what a call loses by going to the local tier, in chance of a right reply, for each dollar that it saves.

    It knows the law, true hardness and ease included, and expected prices; not the luck of the draw.
    """
    return np.asarray(
        (table.chance[FRONTIER] - table.chance[LOCAL]) / (table.mean_cost[FRONTIER] - table.mean_cost[LOCAL])
    )


def oracle_of_cascade(table: Table, shown: float) -> Numbers:
    """Return the same of a call that goes to the local tier and, where its reply shows itself wrong, up."""
    again = (1.0 - table.chance[LOCAL]) * shown
    right = table.chance[LOCAL] + again * table.chance[FRONTIER]
    cost = table.mean_cost[LOCAL] + again * table.mean_cost[FRONTIER]
    saved = table.mean_cost[FRONTIER] - cost
    return np.asarray(np.where(saved > 0, (table.chance[FRONTIER] - right) / np.where(saved > 0, saved, 1.0), np.inf))


def points(table: Table, law: Law, decisions: Sequence[RoutingDecision], seed: int) -> Mapping[str, Way]:
    """Return the ways that are one point each; the decisions are the router's as it ships, one for each prompt."""
    local, frontier, both = tier(table, LOCAL), tier(table, FRONTIER), cascade(table, law.shown)
    small = np.array([decision.tier == "local" for decision in decisions])[table.owner]
    return {
        "always local": local,
        "always frontier": frontier,
        "always cascade": both,
        "router as shipped": _where(small, local, frontier),
        "router, then cascade": _where(small, both, frontier),
        "router, then learner": learned(table, law, decisions, seed),
    }


def _where(small: NDArray[np.bool_], cheap: Way, dear: Way) -> Way:
    return Way(np.where(small, cheap.cost, dear.cost), np.where(small, cheap.right, dear.right))


def learned(table: Table, law: Law, decisions: Sequence[RoutingDecision], seed: int) -> Way:
    """Return what becomes of all calls in one course, world after world, where the learner takes the router's word.

    Difficulty is the router's tier, the intent is what it read; bounds are the defaults. The learner hears only of
    wrong replies that show themselves.
    """
    learner = Learner(LearningSettings(), seed, failure_usd=FAILURE_USD)
    rng = np.random.default_rng(seed)
    course = np.concatenate(
        [rng.permutation(len(decisions)) * law.worlds + world for world in range(law.worlds)]
    )  # a world's calls lie `worlds` apart
    cost, right = np.zeros(len(course)), np.zeros(len(course))
    for call in course:
        said = decisions[table.owner[call]]
        cell = said.intent, "high" if said.tier == "frontier" else "low"
        for number in _tiers(learner.decide(str(call), *cell).way):
            spent, good = float(table.cost[number, call]), bool(table.success[number, call])
            seems = good or bool(table.shown[number, call] >= law.shown)
            learner.record(TierOutcome(cell[0], TIERS[number], seems, spent, cell[1]))
            cost[call] += spent
            right[call] = good
            if seems:
                break
    return Way(cost, right)


def _tiers(way: Path) -> tuple[int, ...]:
    return {"local": (LOCAL,), "frontier": (FRONTIER,), "cascade": (LOCAL, FRONTIER)}[way]
