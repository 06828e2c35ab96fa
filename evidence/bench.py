"""The bench: a panel, its engine, its windows and its labels, made once and shared by every question asked of it."""

from __future__ import annotations

from dataclasses import dataclass

from ..factors import Engine
from ..ledger import Ledger
from ..market import Panel
from .errors import TooFewDays
from .evaluator import Budget, Evaluator
from .score import Scorer
from .settings import EvidenceSettings
from .windows import Windows, fix_windows


@dataclass(frozen=True)
class Bench:
    """What evaluates factors of one panel in one workspace."""

    engine: Engine
    scorer: Scorer
    windows: Windows
    ledger: Ledger

    @classmethod
    def set_up(cls, panel: Panel, ledger: Ledger, settings: EvidenceSettings, dataset: str) -> Bench:
        """Fix the windows of a panel in a workspace and return the bench.

        Raises
        ------
        TooFewDays, BoundaryConflict
            As `fix_windows`; also when selection is too short for the errors of a mean at this horizon.
        """
        windows = fix_windows(panel, ledger, settings.windows, dataset)
        scorer = Scorer(panel, settings)
        _refuse_unprovable(windows.selection.days, settings.horizon_days, scorer.lag)
        return cls(Engine(panel), scorer, windows, ledger)

    def evaluator(self, run: str, budget: Budget) -> Evaluator:
        """Return the evaluation service of one run."""
        return Evaluator(self.engine, self.scorer, self.windows, self.ledger, self.scorer.settings, budget, run)


def _refuse_unprovable(days: int, horizon: int, lag: int) -> None:
    """Refuse a selection window whose labelled days are no more than the lag of their standard errors."""
    least = horizon + 2 + lag
    if days < least:
        raise TooFewDays(
            f"The selection window has {days} days; at a horizon of {horizon} days it proves nothing.",
            field="evidence.horizon_days",
            got=horizon,
            allowed=f"a horizon whose selection window has at least {least} days",
            hint="Lower evidence.horizon_days, or give a longer panel.",
        )
