"""The way to a reply within the policy: where a task begins, and whether a model above is asked where its replies do not fit."""

from __future__ import annotations

from ...ledger import Ledger, ModelCall, compute_digest
from ..calls.task import Task
from ..config import RouterConfig
from .decision import RoutingDecision
from .decision_rule import Decider
from .eligibility import Route
from .experience import Experience

RoutedDecision = tuple[RoutingDecision, Route]
"""Why a model is asked first, and which are asked in order."""


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
            return self._decider.above(decision, route, why) or decided, False
        if routing.policy != "learned" or self._config.roles.get(task.role, "auto") != "auto":
            return decided, routing.policy == "cascade"
        way = self._experience(task).way(_key_of(task), decision)
        if way == "frontier":
            why = "by what became of earlier calls a frontier model gives the cheapest valid reply"
            return self._decider.above(decision, route, why) or decided, False
        return self._decider.below(decision, route, way) or decided, way == "cascade"

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
