"""A verdict with every reason for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from ...ledger import VerdictRow

Word = Literal["accepted", "watchlist", "rejected", "awaiting approval"]
"""The gate says one of the first three; what it accepts awaits approval where a campaign asks a person."""


@dataclass(frozen=True)
class Reason:
    """What one step of the gate found.

    `message` may carry numbers and is for people; `step` and `passed` are all that an agent is told of a step that
    looked at the selection window.
    """

    step: str
    passed: bool
    message: str
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"step": self.step, "passed": self.passed, "message": self.message, "numbers": dict(self.numbers)}


@dataclass(frozen=True)
class Verdict:
    """The gate's word on one factor or set."""

    factor_id: str
    word: Word
    reasons: tuple[Reason, ...]
    trial: int | None = None
    selection: Mapping[str, Any] | None = None

    @classmethod
    def restored(cls, row: VerdictRow) -> Verdict:
        """Return a verdict from its row in the ledger."""
        reasons = tuple(Reason(one["step"], one["passed"], one["message"], one["numbers"]) for one in row.reasons)
        trial, selection = row.metrics["trial"], row.metrics["selection"]
        return cls(row.factor_id, cast("Word", row.verdict), reasons, trial, selection)

    def row(self, run: str) -> VerdictRow:
        """Return the row that the ledger keeps."""
        reasons = [reason.record() for reason in self.reasons]
        return VerdictRow(run, self.factor_id, self.word, reasons, {"trial": self.trial, "selection": self.selection})

    def for_agents(self) -> dict[str, Any]:
        """Return the verdict without any number from the selection window: steps and words only."""
        told = dict.fromkeys(_reason_for_agents(reason) for reason in self.reasons if not reason.passed)
        return {"id": self.factor_id, "verdict": self.word, "reasons": list(told)}


def _reason_for_agents(reason: Reason) -> str:
    """Say why; code that failed on selection days is told as code that was not proven there, or it could ask by failing."""
    if reason.step == "statistics" or "fault" in reason.numbers:
        return "statistics: not proven on the selection window after all looks that were taken at it"
    return f"{reason.step}: {reason.message}"
