"""Where a task begins within the policy, and whether a model of the tier above is asked where its replies do not fit.

The policy `learned` rests on the outcomes of a run's calls, which the ledger keeps.
"""

from __future__ import annotations

from ...ledger import Ledger, ModelCall, compute_digest
from ..calls.task import Task
from ..config import LearningSettings, RouterConfig, Tier
from .decision import Decider, RoutingDecision
from .eligibility import Route
from .learning import Bounds, Learner, Prior, TierOutcome, Way

RoutedDecision = tuple[RoutingDecision, Route]
"""Why a model is asked first, and which are asked in order."""
OUTCOME, WAY = "outcome", "way"
"""Kinds of event: whether a call's reply was valid, by the call's key; the way that a task took, by its own."""


class EscalationPolicy:
    """Applies a policy to decisions; see `RoutingSettings`.

    Parameters
    ----------
    config, decider
        The policy, and what finds the model above or below.
    ledger : Ledger
        Where the policy `learned` keeps what became of calls.
    """

    def __init__(self, config: RouterConfig, decider: Decider, ledger: Ledger) -> None:
        self._config, self._decider, self._ledger = config, decider, ledger
        self._learned: dict[str, Experience] = {}

    def begin(self, task: Task, decided: RoutedDecision) -> tuple[RoutedDecision, bool]:
        """Return which model is asked first, and whether one above is asked where its replies do not fit."""
        routing, (decision, route) = self._config.routing, decided
        if task.refused >= routing.most_refused and routing.policy != "direct":
            why = f"what came of it was refused {task.refused} times"
            return self._decider.move_up(decision, route, why) or decided, False
        if routing.policy != "learned" or self._config.roles.get(task.role, "auto") != "auto":
            return decided, routing.policy == "cascade"
        way = self._experience(task).choose_way(_key_of(task), decision)
        if way == "frontier":
            why = "by what became of earlier calls a frontier model gives the cheapest valid reply"
            return self._decider.move_up(decision, route, why) or decided, False
        return self._decider.move_down(decision, route, way) or decided, way == "cascade"

    def note(self, task: Task, decision: RoutingDecision, call: ModelCall, *, valid: bool) -> None:
        """Keep what became of a call, where somebody learns from it."""
        if self._config.routing.policy == "learned":
            self._experience(task).note(call.key, decision, valid=valid, usd=call.cost_usd)

    def _experience(self, task: Task) -> Experience:
        """Return what a run has learned; what it had learned before is read from the ledger."""
        if task.run not in self._learned:
            seed = self._ledger.run(task.run).seed
            self._learned[task.run] = Experience(self._ledger, task.run, seed, self._config.routing.learning)
        return self._learned[task.run]


def _key_of(task: Task) -> str:
    """Return a task's own key, whichever model answers."""
    messages = [message.record() for message in task.messages]
    return compute_digest([messages, task.schema.model_json_schema(), task.sampling()])


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

    def choose_way(self, key: str, decision: RoutingDecision) -> Way:
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
