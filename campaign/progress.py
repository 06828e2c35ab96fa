"""The progress of a run, for a person who watches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..evaluation import BudgetMeter, Reviews
from ..search import count_niches, effective_number_of_round
from .funnel import Best, Counts, Funnel, ModelSpend


@dataclass(frozen=True)
class Progress:
    """The progress at one moment; none of it is written to a result, and none comes from days after search.

    `mechanisms` is the effective number of mechanisms of the current round, `niches` the number of filled cells of
    mechanism, horizon and turnover. `elapsed_s` counts the work of all processes of the run; `remaining_s`
    extrapolates the evaluations. `doing` describes by agent the current or last action.
    """

    phase: str
    round: int = 0
    rounds: int = 0
    counts: Counts = field(default_factory=Counts)
    evaluations_budget: int = 0
    trials: int = 0
    spent: ModelSpend = field(default_factory=ModelSpend)
    best: Best | None = None
    doing: Mapping[str, str] = field(default_factory=dict)
    mechanisms: float | None = None
    niches: int = 0
    message: str = ""
    elapsed_s: float = 0.0
    remaining_s: float | None = None

    @property
    def usd_per_accepted(self) -> float | None:
        """US dollars spent per accepted factor so far; None before the first."""
        return self.spent.usd / self.counts.accepted if self.counts.accepted else None


@dataclass(frozen=True)
class ProgressMeter:
    """Read a run's progress; `seconds` is a monotonic clock, `worked_s` the time of earlier processes of the run."""

    meter: BudgetMeter
    reviews: Reviews
    rounds: int
    seconds: Callable[[], float]
    worked_s: float = 0.0
    start: float = field(init=False)
    first: int = field(init=False)
    funnel: Funnel = field(init=False)

    def __post_init__(self) -> None:
        """Record the start of this process."""
        object.__setattr__(self, "start", self.seconds())
        object.__setattr__(self, "first", len(self.meter.log.scores))
        object.__setattr__(self, "funnel", Funnel(self.reviews))

    def worked(self) -> float:
        """Return the seconds that this and all earlier processes have worked on the run."""
        return self.worked_s + self.seconds() - self.start

    def read(
        self, phase: str, at_round: int = 0, message: str = "", doing: Mapping[str, str] | None = None
    ) -> Progress:
        """Return the progress now."""
        log, funnel = self.meter.log, self.funnel.read()
        elapsed = self.seconds() - self.start
        return Progress(
            phase=phase,
            round=at_round,
            rounds=self.rounds,
            counts=funnel.counts,
            evaluations_budget=self.meter.budget.evaluations,
            trials=self.meter.trials_spent(),
            spent=funnel.spent,
            best=funnel.best,
            doing=dict(doing or {}),
            mechanisms=effective_number_of_round(log.ledger, log.run, at_round),
            niches=count_niches(log.ledger, log.run),
            message=message,
            elapsed_s=self.worked_s + elapsed,
            remaining_s=self._extrapolate(elapsed),
        )

    def _extrapolate(self, elapsed: float) -> float | None:
        done = len(self.meter.log.scores) - self.first
        return elapsed / done * self.meter.evaluations_left() if done >= 5 else None
