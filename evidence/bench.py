"""The bench: a panel, its engine, its windows and its labels, made once and shared by every question asked of it."""

from __future__ import annotations

from dataclasses import dataclass

from ..factors import Engine
from ..ledger import Ledger
from ..market import Panel
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
            As `fix_windows`.
        """
        windows = fix_windows(panel, ledger, settings.windows, dataset)
        return cls(Engine(panel), Scorer(panel, settings), windows, ledger)

    def evaluator(self, run: str, budget: Budget) -> Evaluator:
        """Return the evaluation service of one run."""
        return Evaluator(self.engine, self.scorer, self.windows, self.ledger, self.scorer.settings, budget, run)
