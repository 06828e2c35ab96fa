"""The budget of a search, apart from the cost of its models, and what a run has spent of it."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from ..evidence import Windows
from ..evidence.gate import PAID_EVENT
from .score_log import RunLog


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


@dataclass(frozen=True)
class BudgetMeter:
    """Counts what a run has spent of its evaluations and trials, and what is left of them."""

    budget: Budget
    windows: Windows
    log: RunLog

    def evaluations_spent(self) -> int:
        """Count the scored single factors and the refusals of code that ran; sets are outside the budget."""
        return self.log.scores.singles + len(self.log.refused_runs)

    def evaluations_left(self) -> int:
        """Count the evaluations that the budget still allows."""
        return max(self.budget.evaluations - self.evaluations_spent(), 0)

    def trials_left(self) -> int:
        """Count the trials that the budget still allows."""
        return max(self.budget.trials - self.trials_spent(), 0)

    def trials_spent(self) -> int:
        """Count the trials that this run opened, or was charged for after another run was cut short."""
        ledger, run = self.log.ledger, self.log.run
        trials = ledger.trials.overlapping(self.windows.key(self.windows.selection))
        return sum(trial.run == run for trial in trials) + len(ledger.events.of(run, PAID_EVENT))
