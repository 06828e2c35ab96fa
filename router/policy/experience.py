"""What became of a run's calls, kept in the ledger, and the way to a reply that was learned from it."""

from __future__ import annotations

from ...ledger import Ledger
from ..config import LearningSettings, Tier
from .decision import RoutingDecision
from .learning import Bounds, Learner, Prior, TierOutcome, Way

OUTCOME, WAY = "outcome", "way"
"""Kinds of event: whether a call's reply was valid, by the call's key; the way that a task took, by its own."""


class Experience:
    """One run's outcomes: each is written down once, and what was learned is rebuilt from them when the run goes on.

    A run learns from itself alone, so that what it finds hangs on no other run of the workspace. The way that a task once took is
    kept: a run that is resumed asks no other model for what was paid.

    Parameters
    ----------
    ledger : Ledger
        The record of outcomes, and the authority on them.
    run : str
        The campaign.
    seed : int
        Of the draws.
    settings : LearningSettings
        What no outcome may change.
    """

    def __init__(self, ledger: Ledger, run: str, seed: int, settings: LearningSettings) -> None:
        self._ledger, self._run = ledger, run
        bounds = Bounds(hard=frozenset({"high"}), floor=settings.floor, try_hard_locally=settings.try_hard_locally)
        kept = [entry.record for entry in ledger.event_entries(run) if entry.record.kind == OUTCOME]
        outcomes = [TierOutcome(**event.body) for event in kept]
        self._learner = Learner(Prior(half_life=settings.half_life), bounds, seed, outcomes)

    def way(self, key: str, decision: RoutingDecision) -> Way:
        """Return the way of a task by its key: as it was taken before, else the one that promises the cheapest valid reply."""
        known = self._ledger.event(self._run, WAY, key)
        if known is not None:
            found: Way = known.body["way"]
            return found
        chosen = self._learner.decide(key, decision.intent, decision.difficulty)
        self._ledger.record_event(self._run, WAY, key, {"way": chosen.way, "why": chosen.why})
        return chosen.way

    def note(self, key: str, decision: RoutingDecision, *, valid: bool, usd: float) -> None:
        """Keep what became of one call; one that was noted before is not counted again."""
        if self._ledger.event(self._run, OUTCOME, key) is not None:
            return
        body = {
            "intent": decision.intent, "tier": decision.tier, "success": valid, "cost_usd": usd,
            "difficulty": decision.difficulty,
        }  # fmt: skip
        self._ledger.record_event(self._run, OUTCOME, key, body)
        tier: Tier = decision.tier
        self._learner.record(TierOutcome(decision.intent, tier, valid, usd, decision.difficulty))
