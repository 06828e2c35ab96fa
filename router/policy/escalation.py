"""The tier at which a task begins, and whether it may move up to the next tier when its replies do not fit.

The policy `learned` uses the outcomes of a run's calls, which the ledger keeps.
"""

from __future__ import annotations

from dataclasses import asdict

from ...ledger import Ledger, ModelCall, compute_digest
from ..calls.task import Task, describe_schema
from ..config import RouterConfig
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
        self._learners: dict[str, Learner] = {}

    def begin(self, task: Task, decided: RoutedDecision) -> tuple[RoutedDecision, bool]:
        """Return where a task begins, and whether it may move up when its replies do not fit."""
        routing, (decision, route) = self._config.routing, decided
        if task.refused >= routing.most_refused and routing.policy != "direct":
            why = f"what came of it was refused {task.refused} times"
            return self._decider.move_up(decision, route, why) or decided, False
        if routing.policy != "learned" or self._config.roles.get(task.role, "auto") != "auto":
            return decided, routing.policy != "direct"
        way = self._choose_way(task, decision)
        if way == "frontier":
            why = "by what became of earlier calls a frontier model gives the cheapest valid reply"
            return self._decider.move_up(decision, route, why) or decided, False
        return self._decider.move_down(decision, route, way) or decided, way == "cascade" or task.check is not None

    def note(self, task: Task, decision: RoutingDecision, call: ModelCall, *, valid: bool) -> None:
        """Record the outcome of a call and learn from it, if the policy is `learned`; each counts once."""
        if self._config.routing.policy != "learned" or self._ledger.events.get(task.run, OUTCOME, call.key) is not None:
            return
        outcome = TierOutcome(decision.intent, decision.tier, valid, call.cost_usd, decision.difficulty)
        learner = self._load_learner(task.run)
        self._ledger.events.record(task.run, OUTCOME, call.key, asdict(outcome))
        learner.record(outcome)

    def _choose_way(self, task: Task, decision: RoutingDecision) -> Way:
        """Return the way of a task: the recorded one, else the one with the cheapest expected valid reply.

        It is recorded, so that a resumed run asks no other model for a reply that was paid for.
        """
        key = _compute_key(task)
        event = self._ledger.events.get(task.run, WAY, key)
        if event is not None:
            way: Way = event.body["way"]
            return way
        chosen = self._load_learner(task.run).decide(key, decision.intent, decision.difficulty)
        self._ledger.events.record(task.run, WAY, key, {"way": chosen.way, "why": chosen.why})
        return chosen.way

    def _load_learner(self, run: str) -> Learner:
        """Return a run's learner; a resumed run rebuilds it from the outcomes in the ledger.

        A run learns only from itself, so that its results do not depend on other runs of the workspace.
        """
        if run not in self._learners:
            events = [entry.record for entry in self._ledger.events.entries(run) if entry.record.kind == OUTCOME]
            outcomes = [TierOutcome(**event.body) for event in events]
            seed = self._ledger.runs.find(run).seed
            self._learners[run] = Learner(self._config.routing.learning, seed, outcomes)
        return self._learners[run]


def _compute_key(task: Task) -> str:
    """Return a task's key, which does not depend on the model."""
    messages = [message.record() for message in task.messages]
    return compute_digest([messages, describe_schema(task.schema), task.sampling()])
