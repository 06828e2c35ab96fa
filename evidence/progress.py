"""How far a run has got, counted from its ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from .evaluator import Evaluator
from .variety import of_round


@dataclass(frozen=True)
class Progress:
    """One moment of a campaign, for a person who watches; nothing here is written to a result.

    `mechanisms` is the effective number of mechanisms of the round under way. Seconds are those of this process: a resumed run begins at zero. `remaining_s` extrapolates the evaluations.
    """

    phase: str
    round: int = 0
    rounds: int = 0
    hypotheses: int = 0
    attempts: int = 0
    evaluations: int = 0
    evaluations_budget: int = 0
    trials: int = 0
    accepted: int = 0
    watched: int = 0
    rejected: int = 0
    usd: float = 0.0
    best_search_t: float | None = None
    mechanisms: float | None = None
    message: str = ""
    elapsed_s: float = 0.0
    remaining_s: float | None = None


@dataclass(frozen=True)
class Meter:
    """Reads a run's progress; `seconds` is a monotonic clock and `usd` tells what models have cost."""

    evaluator: Evaluator
    rounds: int
    seconds: Callable[[], float]
    usd: Callable[[], float]
    start: float = field(init=False)
    first: int = field(init=False)

    def __post_init__(self) -> None:
        """Note where this process begins."""
        object.__setattr__(self, "start", self.seconds())
        object.__setattr__(self, "first", len(self.evaluator.rows))

    def read(self, phase: str, at_round: int = 0, message: str = "") -> Progress:
        """Return the progress now."""
        evaluator = self.evaluator
        words = Counter(row.verdict for row in evaluator.ledger.verdicts(evaluator.run))
        tried = evaluator.tried.refresh()
        elapsed = self.seconds() - self.start
        return Progress(
            phase=phase,
            round=at_round,
            rounds=self.rounds,
            hypotheses=len(tried.hypotheses),
            attempts=tried.attempts,
            evaluations=evaluator.evaluations_spent(),
            evaluations_budget=evaluator.budget.evaluations,
            trials=evaluator.trials_spent(),
            accepted=words["accepted"],
            watched=words["watchlist"],
            rejected=words["rejected"],
            usd=self.usd(),
            best_search_t=evaluator.rows.best_t,
            mechanisms=of_round(evaluator.ledger, evaluator.run, at_round),
            message=message,
            elapsed_s=elapsed,
            remaining_s=self._remaining(elapsed),
        )

    def _remaining(self, elapsed: float) -> float | None:
        done = len(self.evaluator.rows) - self.first
        return elapsed / done * self.evaluator.evaluations_left() if done >= 5 else None
