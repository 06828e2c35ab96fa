"""What a decision of the risk gate was made from, so that another process can decide again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from ..ledger import JSON
from ..risk import BookState, Decision, Policy, Signal, Standing, decide
from .errors import ExecutionError


@dataclass(frozen=True)
class DecisionInputs:
    """All arguments of `risk.decide`.

    Attributes
    ----------
    signals, state, policy, now, standings
        As `risk.decide` takes them.
    """

    signals: Sequence[Signal]
    state: BookState
    policy: Policy
    now: date
    standings: Mapping[str, Standing]

    @classmethod
    def restore(cls, record: Mapping[str, Any]) -> DecisionInputs:
        """Return inputs from their record."""
        return cls(
            tuple(Signal.restore(row) for row in record["signals"]),
            BookState.restore(record["state"]),
            Policy.model_validate_json(json.dumps(record["policy"])),
            date.fromisoformat(record["now"]),
            {name: Standing.restore(row) for name, row in record["standings"].items()},
        )

    def record(self) -> dict[str, JSON]:
        """Return the inputs as a JSON-able object."""
        return {
            "signals": [signal.record() for signal in self.signals],
            "state": self.state.record(),
            "policy": self.policy.model_dump(mode="json"),
            "now": self.now.isoformat(),
            "standings": {name: one.record() for name, one in self.standings.items()},
        }

    def decide_again(self, known: str) -> Decision:
        """Decide, and refuse a decision with another id than the known one.

        Raises
        ------
        ExecutionError
            The decision has another id: a signal, the state, the policy, the day or the evidence differs.
        """
        decision = decide(self.signals, self.state, self.policy, self.now, self.standings)
        if decision.id != known:
            raise ExecutionError(
                "The decision was made again from its inputs, and is another one.",
                field="decision",
                got=decision.id,
                allowed=known,
                hint="Send the inputs with which it was made; if they are these, the two sides run different versions.",
                code="decision_differs",
                exit_code=1,
            )
        return decision
