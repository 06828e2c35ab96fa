"""The tier at which a task begins, and whether it may move up to the next tier when its replies do not fit.

The policy `learned` uses the outcomes of a run's calls, which the ledger keeps.
"""

from __future__ import annotations

from ...ledger import Ledger, ModelCall, compute_digest
from ..calls.task import Task, describe_schema
from ..config import LearningSettings, RouterConfig, Tier
from .decision import Decider, RoutingDecision
from .eligibility import Route
from .learning import Learner, TierOutcome, Way

RoutedDecision = tuple[RoutingDecision, Route]
"""A decision, and the models in the order in which they are asked."""
OUTCOME, WAY = "outcome", "way"
"""Kinds of event: whether a call's reply was valid, by the call's key; the way that a task took, by the task's key."""


class EscalationPolicy:
    """Applies a policy to decisions; see `RoutingSettings`.

    Parameters
    ----------
    config : RouterConfig
        The policy.
    decider : Decider
        Finds the model of the tier above or below.
    ledger : Ledger
        Keeps the outcomes of calls for the policy `learned`.
    """

    def __init__(self, config: RouterConfig, decider: Decider, ledger: Ledger) -> None:
        self._config, self._decider, self._ledger = config, decider, ledger
        self._learned: dict[str, Experience] = {}

    def begin(self, task: Task, decided: RoutedDecision) -> tuple[RoutedDecision, bool]:
        """Return where a task begins, and whether it may move up when its replies do not fit."""
        routing, (decision, route) = self._config.routing, decided
        if task.refused >= routing.most_refused and routing.policy != "direct":
            why = f"what came of it was refused {task.refused} times"
            return self._decider.move_up(decision, route, why) or decided, False
        if routing.policy != "learned" or self._config.roles.get(task.role, "auto") != "auto":
            return decided, routing.policy != "direct"
        way = self._load_experience(task).choose_way(_compute_key(task), decision)
        if way == "frontier":
            why = "by what became of earlier calls a frontier model gives the cheapest valid reply"
            return self._decider.move_up(decision, route, why) or decided, False
        return self._decider.move_down(decision, route, way) or decided, way == "cascade"

    def note(self, task: Task, decision: RoutingDecision, call: ModelCall, *, valid: bool) -> None:
        """Record the outcome of a call, if the policy is `learned`."""
        if self._config.routing.policy == "learned":
            self._load_experience(task).note(call.key, decision, valid=valid, usd=call.cost_usd)

    def _load_experience(self, task: Task) -> Experience:
        """Return a run's experience; earlier outcomes are read from the ledger."""
        if task.run not in self._learned:
            seed = self._ledger.runs.find(task.run).seed
            self._learned[task.run] = Experience(self._ledger, task.run, seed, self._config.routing.learning)
        return self._learned[task.run]


def _compute_key(task: Task) -> str:
    """Return a task's key, which does not depend on the model."""
    messages = [message.record() for message in task.messages]
    return compute_digest([messages, describe_schema(task.schema), task.sampling()])


class Experience:
    """One run's outcomes: each is recorded once, and a resumed run rebuilds its learner from them.

    A run learns only from itself, so that its results do not depend on other runs of the workspace. The way of a task
    is recorded too: a resumed run asks no other model for a reply that was paid for.

    Parameters
    ----------
    ledger : Ledger
        The record of outcomes, and the authority on them.
    run : str
        The run's id.
    seed : int
        Seed of the draws.
    settings : LearningSettings
        The limits of learning.
    """

    def __init__(self, ledger: Ledger, run: str, seed: int, settings: LearningSettings) -> None:
        self._ledger, self._run = ledger, run
        events = [entry.record for entry in ledger.events.entries(run) if entry.record.kind == OUTCOME]
        outcomes = [TierOutcome(**event.body) for event in events]
        self._learner = Learner(settings, seed, outcomes)

    def choose_way(self, key: str, decision: RoutingDecision) -> Way:
        """Return the way of a task: the recorded one, else the one with the cheapest expected valid reply."""
        event = self._ledger.events.get(self._run, WAY, key)
        if event is not None:
            way: Way = event.body["way"]
            return way
        chosen = self._learner.decide(key, decision.intent, decision.difficulty)
        self._ledger.events.record(self._run, WAY, key, {"way": chosen.way, "why": chosen.why})
        return chosen.way

    def note(self, key: str, decision: RoutingDecision, *, valid: bool, usd: float) -> None:
        """Record the outcome of one call, and learn from it; a recorded one is not counted again."""
        if self._ledger.events.get(self._run, OUTCOME, key) is not None:
            return
        body = {
            "intent": decision.intent,
            "tier": decision.tier,
            "success": valid,
            "cost_usd": usd,
            "difficulty": decision.difficulty,
        }
        self._ledger.events.record(self._run, OUTCOME, key, body)
        tier: Tier = decision.tier
        self._learner.record(TierOutcome(decision.intent, tier, valid, usd, decision.difficulty))
