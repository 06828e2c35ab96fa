"""A panel with its engine, windows and labels, set up once and shared by all its runs; and the start of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
from ..evidence.originality import values_of_published
from ..evidence.scoring import Scorer
from ..evidence.values import PYTHON_FOLDER, Computing, Contained, LazySandbox, TimeSteps, note_screening_seed
from ..factors import Engine
from ..ledger import Ledger, Run, canonical_json, compute_digest
from ..market import Panel, adjust_forwards
from ..sandbox import Runner
from ..search import SearchConstraints
from ..search.surrogate import Samples
from .batches import BenchParts, RemoteSheets
from .budget import Budget
from .manifest.software import find_software
from .service import Evaluator

MIN_NAMES = 10


@dataclass(frozen=True)
class PanelContext:
    """Engine, scorer and windows of one panel in one workspace; its runs' forecasts share `samples`."""

    engine: Computing
    scorer: Scorer
    windows: Windows
    ledger: Ledger
    samples: Samples = field(default_factory=Samples)
    remote: RemoteSheets | None = None

    @classmethod
    def set_up(  # noqa: PLR0913 - the two modes are named by their callers
        cls,
        panel: Panel,
        ledger: Ledger,
        settings: EvidenceSettings,
        dataset: str,
        *,
        store: bool = True,
        apart: bool = False,
        runner: Runner | None = None,
    ) -> PanelContext:
        """Fix the windows of a panel in a workspace and return its context; a refused panel fixes nothing.

        Without `store` the windows are those that would be fixed, and nothing is written. With `apart` they are those
        of `windows_as_of`, and nothing is fixed. Without a `runner` Python factors are refused.

        Raises
        ------
        EvidenceError
            As `fix_windows`; also if selection is too short for the standard errors at this horizon, or no day of the
            search window has enough labelled names for a rank correlation.
        """
        fixing = windows_as_of if apart else partial(fix_windows, store=False)
        windows = fixing(panel, ledger, settings.windows, dataset)
        scorer = Scorer(panel, settings)
        _refuse_unprovable(windows.selection.days, settings.horizon_days, scorer.lag)
        _refuse_unscorable(int(scorer.target(windows.search).order.counts.max()))
        if store and not apart:
            windows = fix_windows(panel, ledger, settings.windows, dataset)
        adjusted = adjust_forwards(
            panel, windows.search.stop
        )  # factors read this panel: a later split changes no earlier price
        contained = Contained(adjusted, runner, ledger.workspace / PYTHON_FOLDER if store else None) if runner else None
        return cls(Computing(Engine(adjusted), contained), scorer, windows, ledger)

    def on_cluster(self, sandbox: LazySandbox) -> PanelContext:
        """Return a context whose formulas are scored by the workers of the sandbox's cluster, if it has one."""
        if not sandbox.has_cluster:
            return self
        return replace(self, remote=RemoteSheets(lambda parts: sandbox.crew(parts.build), self._pack_bench))

    def _pack_bench(self) -> BenchParts:
        window, settings = self.windows.search, self.scorer.settings
        published = values_of_published(self.engine, window, self.ledger.workspace, settings)
        return BenchParts(self.scorer.panel, settings, window, published.pack_sketches())

    def evaluator(
        self,
        run: str,
        budget: Budget,
        *,
        python: bool = True,
        mandate: SearchConstraints | None = None,
        approve: bool = False,
        pace: TimeSteps | None = None,
    ) -> Evaluator:
        """Return the evaluation service of one run.

        `python`: it scores Python factors. `approve`: a person approves accepted factors. `pace`: the time steps at
        which a trial that runs code may end, for callers who receive the verdict at once.
        """
        limits = (mandate or SearchConstraints()).fit(self.scorer.panel)
        parts = (self.engine, self.scorer, self.windows, self.ledger, self.scorer.settings, budget, run)
        return Evaluator(*parts, python, limits, approve, self.samples, pace, self.remote)


def _refuse_unprovable(days: int, horizon: int, lag: int) -> None:
    """Refuse a selection window with no more labelled days than the lag of their standard errors."""
    min_days = horizon + 2 + lag
    if days < min_days:
        raise EvidenceError(
            f"The selection window has {days} days; at a horizon of {horizon} days it proves nothing.",
            field="evidence.horizon_days",
            got=horizon,
            allowed=f"a horizon whose selection window has at least {min_days} days",
            hint="Lower evidence.horizon_days, or give a longer panel.",
            code="too_few_days",
        )


def _refuse_unscorable(names: int) -> None:
    """Refuse a panel without a day on which enough names have a label."""
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
    """The settings of a campaign, as far as its run records them."""

    @property
    def name(self) -> str:
        """The name of the campaign, part of the run's id."""

    @property
    def seed(self) -> int:
        """The seed of every draw except those of the screens."""

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        """Return the settings as JSON."""


def begin_run(
    request: RunRequest, ledger: Ledger, panel: Panel, drawn: tuple[str, datetime, int], own: Mapping[str, Any]
) -> str:
    """Write a new run into the ledger and return its id.

    `drawn` has the data set, the time and the seed of screens; `own` has the digests of the person's own parts.
    """
    dataset, now, screens = drawn
    run = f"{now:%Y%m%d-%H%M%S}-{request.name}-{compute_digest(now.isoformat())[:4]}"
    config = {
        "settings": request.model_dump(mode="json"),
        "own": dict(own),
        "panel": panel.digest,
        "last_day": str(panel.dates[-1]),
        "days": compute_digest(spell_days(panel)),
        "software": find_software(),
        "sectors": "sector" in panel.groups,
    }
    ledger.runs.start(Run(run, config, request.seed, dataset, now.isoformat()))
    note_screening_seed(ledger, run, screens)
    return run


def spell_days(panel: Panel) -> bytes:
    """Return the days of a panel as they are stored with a run, whose settings have their digest."""
    return canonical_json([str(day) for day in panel.dates]).encode()


def refuse_other_stream(ledger: Ledger, windows: Windows, settings: EvidenceSettings) -> None:
    """Refuse another `level` or `watch_p` than that of earlier trials on this data, since they share one error rate.

    Raises
    ------
    EvidenceError
        Earlier trials on this selection window, or on its returns, were judged by another `level` or `watch_p`.
    """
    for run in dict.fromkeys(trial.run for trial in ledger.trials.overlapping(windows.key(windows.selection))):
        rules = RunArchive(ledger, ledger.runs.find(run)).rules
        for name in ("level", "watch_p") if rules else ():
            value, earlier = getattr(settings, name), getattr(rules, name)
            if value != earlier:
                raise EvidenceError(
                    f"Earlier trials on this data were judged with {name} {earlier}; one stream of trials has one.",
                    field=f"evidence.{name}",
                    got=value,
                    allowed=earlier,
                    hint=f"Set evidence.{name} to {earlier}, or name another --workspace for other data.",
                    code="other_stream",
                    exit_code=1,
                )
