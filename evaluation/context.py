"""The bench: a panel, its engine, its windows and its labels, made once and shared by every question asked of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from ..evidence import EvidenceSettings, TooFewDays, TooFewNames, Windows, fix_windows, windows_as_of
from ..evidence.code import PYTHON_FOLDER, Computing, Contained, TimeSteps
from ..evidence.scoring import Scorer
from ..factors import Engine
from ..ledger import Ledger
from ..market import Panel, adjust_forwards
from ..sandbox import Runner
from ..search import SearchConstraints
from ..search.surrogate import Samples
from .budget import Budget
from .service import Evaluator

MIN_NAMES = 10


@dataclass(frozen=True)
class PanelContext:
    """What evaluates factors of one panel in one workspace; `samples` is what forecasts of its runs have in common."""

    engine: Computing
    scorer: Scorer
    windows: Windows
    ledger: Ledger
    samples: Samples = field(default_factory=Samples)

    @classmethod
    def set_up(
        cls, panel: Panel, ledger: Ledger, settings: EvidenceSettings, dataset: str, *, store: bool = True,
        apart: bool = False, runner: Runner | None = None,
    ) -> PanelContext:  # fmt: skip
        """Fix the windows of a panel in a workspace and return the bench; a panel that is refused fixes nothing.

        Without `store` the windows are those that would hold, and nothing is fixed or kept. With `apart` they are those of
        `windows_as_of`, and nothing is fixed. Without a `runner` Python factors are refused.

        Raises
        ------
        TooFewDays, BoundaryConflict
            As `fix_windows`; also when selection is too short for the errors of a mean at this horizon.
        TooFewNames
            No day of the search window has enough labelled names for a rank correlation.
        """
        fixing = windows_as_of if apart else partial(fix_windows, store=False)
        windows = fixing(panel, ledger, settings.windows, dataset)
        scorer = Scorer(panel, settings)
        _refuse_unprovable(windows.selection.days, settings.horizon_days, scorer.lag)
        _refuse_unscorable(int(scorer.target(windows.search).order.counts.max()))
        if store and not apart:
            windows = fix_windows(panel, ledger, settings.windows, dataset)
        level = adjust_forwards(panel, windows.search.stop)  # what factors read: a later split moves no earlier price
        contained = Contained(level, runner, ledger.workspace / PYTHON_FOLDER if store else None) if runner else None
        return cls(Computing(Engine(level), contained), scorer, windows, ledger)

    def evaluator(
        self, run: str, budget: Budget, *, python: bool = True, mandate: SearchConstraints | None = None, approve: bool = False,
        pace: TimeSteps | None = None,
    ) -> Evaluator:  # fmt: skip
        """Return the evaluation service of one run.

        `python`: it scores Python factors. `approve`: a person approves. `pace`: when a look at selection days that runs
        code may end; for callers who are told the verdict at once.
        """
        limits = (mandate or SearchConstraints()).fit(self.scorer.panel)
        parts = (self.engine, self.scorer, self.windows, self.ledger, self.scorer.settings, budget, run)
        return Evaluator(*parts, python, limits, approve, self.samples, pace)


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


def _refuse_unscorable(names: int) -> None:
    """Refuse a panel on no day of which enough names have a label."""
    if names < MIN_NAMES:
        raise TooFewNames(
            f"At most {names} names have a return on any day of the search window; nothing can be scored.",
            field="panel",
            got=f"{names} names",
            allowed=f"at least {MIN_NAMES} names on a day",
            hint="Give more names, or a longer span if they list late.",
        )
