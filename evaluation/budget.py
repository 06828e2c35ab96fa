"""The budget of a search, apart from the cost of its models."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ..ledger import Ledger

__all__ = ["Budget", "RefusedRuns"]

RAN_EVENT = "ran"
"""Kind of the events that hold the refusals of code that ran."""


class Budget(BaseModel):
    """What a campaign may spend on evidence, ideas and time; calls, tokens and money are the models' own budget."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    evaluations: int = Field(default=240, ge=1, description="factors scored on the search window")
    trials: int = Field(default=10, ge=0, description="looks at the selection window")
    hypotheses: int | None = Field(
        default=None, ge=1, description="hypotheses proposed; none: as many as rounds ask for"
    )
    wall_s: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="seconds of work, over all processes of the run; such an end is not repeated to the byte",
    )


class RefusedRuns:
    """Refusals of code that ran, by the key of their attempt: each costs an evaluation, as a score does.

    Code can pass data of the panel on in the text of an error, so a refusal is charged too. A repeated attempt returns
    the recorded refusal and runs nothing.
    """

    def __init__(self, ledger: Ledger, run: str) -> None:
        self._ledger, self._run = ledger, run
        self._refusals = {event.key: event.body for event in ledger.events.of(run, RAN_EVENT)}

    def __len__(self) -> int:
        """Return the number of refusals."""
        return len(self._refusals)

    def told(self, key: str) -> dict[str, Any] | None:
        """Return the refusal of an attempt whose code ran; None if there is none."""
        return self._refusals.get(key)

    def add(self, key: str, answer: dict[str, Any]) -> dict[str, Any]:
        """Record a refusal, and return it."""
        self._ledger.events.record(self._run, RAN_EVENT, key, answer)
        self._refusals[key] = answer
        return answer
