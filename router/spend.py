"""What a run's model calls cost, by role and by model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from ..ledger import ModelCall


@dataclass(frozen=True)
class Bill:
    """Calls, tokens and their price in US dollars."""

    calls: int
    tokens_in: int
    tokens_out: int
    usd: float


@dataclass(frozen=True)
class Spend(Bill):
    """A run's bill. A reply that another run paid for is priced here too: equal runs have equal bills."""

    by_role: dict[str, Bill] = field(default_factory=dict)
    by_model: dict[str, Bill] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return the bill as JSON."""
        return asdict(self)


def sum_calls(calls: Iterable[ModelCall]) -> Bill:
    """Return the bill of some calls; the sum does not depend on their order."""
    listed = list(calls)
    return Bill(
        len(listed),
        sum(call.tokens_in for call in listed),
        sum(call.tokens_out for call in listed),
        math.fsum(call.cost_usd for call in listed),
    )


def sum_run(calls: Iterable[ModelCall]) -> Spend:
    """Return the bill of a run."""
    listed = list(calls)
    by_role = _bill_by(listed, lambda call: call.role)
    by_model = _bill_by(listed, lambda call: call.model)
    return Spend(**asdict(sum_calls(listed)), by_role=by_role, by_model=by_model)


def _bill_by(calls: list[ModelCall], label: Callable[[ModelCall], str]) -> dict[str, Bill]:
    return {
        name: sum_calls(call for call in calls if label(call) == name)
        for name in sorted({label(call) for call in calls})
    }
