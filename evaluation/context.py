"""A panel with its engine, windows and labels, made once and shared by every question asked of it; how a run begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from ..evidence import (
    EvidenceError,
    EvidenceSettings,
    RunArchive,
    Windows,
    fix_windows,
    windows_as_of,
)
from ..evidence.scoring import Scorer
from ..evidence.values import PYTHON_FOLDER, Computing, Contained, TimeSteps, note_screening_seed
from ..factors import Engine
from ..ledger import Ledger, Run, compute_digest
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
    def set_up(  # noqa: PLR0913  the two modes are named by their callers
        cls, panel: Panel, ledger: Ledger, settings: EvidenceSettings, dataset: str, *, store: bool = True,
        apart: bool = False, runner: Runner | None = None,
    ) -> PanelContext:  # fmt: skip
        """Fix the windows of a panel in a workspace and return the bench; a panel that is refused fixes nothing.

        Without `store` the windows are those that would hold, and nothing is fixed or kept. With `apart` they are those of
        `windows_as_of`, and nothing is fixed. Without a `runner` Python factors are refused.

        Raises
        ------
        EvidenceError
            As `fix_windows`; also when selection is too short for the errors of a mean at this horizon.
        EvidenceError
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
        raise EvidenceError(
            f"The selection window has {days} days; at a horizon of {horizon} days it proves nothing.",
            field="evidence.horizon_days",
            got=horizon,
            allowed=f"a horizon whose selection window has at least {least} days",
            hint="Lower evidence.horizon_days, or give a longer panel.",
            code="too_few_days",
        )


def _refuse_unscorable(names: int) -> None:
    """Refuse a panel on no day of which enough names have a label."""
    if names < MIN_NAMES:
        raise EvidenceError(
            f"At most {names} names have a return on any day of the search window; nothing can be scored.",
            field="panel",
            got=f"{names} names",
            allowed=f"at least {MIN_NAMES} names on a day",
            hint="Give more names, or a longer span if they list late.",
            code="too_few_names",
        )


class RunRequest(Protocol):
    """What a campaign was asked."""

    @property
    def name(self) -> str:
        """A part of the run's id."""

    @property
    def seed(self) -> int:
        """The seed of every draw but that of the screens."""

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        """Return all of it as JSON."""


def begin_run(
    asked: RunRequest, ledger: Ledger, panel: Panel, drawn: tuple[str, datetime, int], own: Mapping[str, Any]
) -> str:
    """Write a new run into the ledger and return its id.

    `drawn` are the data set, the time and the seed of screens; `own` is what the person brought along.
    """
    dataset, now, screens = drawn
    run = f"{now:%Y%m%d-%H%M%S}-{asked.name}-{compute_digest(now.isoformat())[:4]}"
    config = {
        "settings": asked.model_dump(mode="json"),
        "own": dict(own),
        "panel": panel.digest,
        "last_day": str(panel.dates[-1]),
        "sectors": "sector" in panel.groups,
    }
    ledger.start_run(Run(run, config, asked.seed, dataset, now.isoformat()))
    note_screening_seed(ledger, run, screens)
    return run


def refuse_other_stream(ledger: Ledger, windows: Windows, settings: EvidenceSettings) -> None:
    """Refuse a level, or a watchlist's, that is not the one of the trials on this data: their error rate is shared.

    Raises
    ------
    EvidenceError
        Earlier trials on this selection window, or on its returns, were judged by another `level` or `watch_p`.
    """
    for run in dict.fromkeys(trial.run for trial in ledger.overlapping_trials(windows.key(windows.selection))):
        rules = RunArchive(ledger, ledger.run(run)).rules
        for name in ("level", "watch_p") if rules else ():
            own, earlier = getattr(settings, name), getattr(rules, name)
            if own != earlier:
                raise EvidenceError(
                    f"Earlier trials on this data were judged with {name} {earlier}; one stream of trials has one.",
                    field=f"evidence.{name}", got=own, allowed=earlier,
                    hint=f"Set evidence.{name} to {earlier}, or name another --workspace for other data.", code="other_stream", exit_code=1,
                )  # fmt: skip
