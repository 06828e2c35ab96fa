"""A small market, a workspace of its own, and the evaluation service on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from numpy.typing import NDArray

from alphaloom.evaluation import Budget, Evaluator, PanelContext
from alphaloom.evidence import Claim, EvidenceSettings, Proposal
from alphaloom.evidence.gate.acceptance_gate import AcceptanceGate
from alphaloom.evidence.gate.verdict import Verdict
from alphaloom.evidence.originality.redundancy import REDUNDANCY_FOLDER
from alphaloom.evidence.scoring.metrics import FactorMetrics
from alphaloom.evidence.scoring.scorer import Scorer
from alphaloom.evidence.settings import WindowSettings
from alphaloom.evidence.values.computing import Computing
from alphaloom.evidence.windows import Window, fix_windows
from alphaloom.factors import Engine, parse
from alphaloom.ledger import Ledger, Run
from alphaloom.market import Panel, Plant, SyntheticConfig, simulate

KNOWN = "rank(ts_corr(delta(low, 3) / low, delta(volume, 2) / volume, 17)) - rank(ts_mad(close / open, 23))"
"""A factor that is in no published list; planted where a test asks for it."""

WIDE = WindowSettings(search=0.5, selection=0.35, min_search_days=40, min_selection_days=40, min_sealed_days=40)
SMALL = EvidenceSettings(windows=WIDE)

LABELS = ("exposures", "risk", "main_label", "_targets", "_thin_orders", "_one_day_orders")
"""What a scorer computes from the panel and the settings of labels alone."""


def clock() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


def known_values(panel: Panel) -> NDArray[Any]:
    """Return the planted signal."""
    return Engine(panel).evaluate([KNOWN])[0]


@cache
def market(seed: int = 1, *, days: int = 420, names: int = 60, planted: bool = False, nothing: bool = False) -> Panel:
    """Return a market, made once; a planted one holds `KNOWN`, strongly."""
    config = SyntheticConfig(seed=seed, days=days, names=names, nothing=nothing)
    return simulate(config, [Plant(KNOWN, known_values, 0.08)] if planted else []).panel


@cache
def scorer(panel: Panel, settings: EvidenceSettings = SMALL) -> Scorer:
    """Return the scorer of a panel, made once: its labels and exposures take the time.

    Rules that labels do not hang on share them.
    """
    asked = {"returns": settings.returns, "label_scale": settings.label_scale, "horizon_days": settings.horizon_days}
    rules = SMALL.model_copy(update=asked)
    made = Scorer(panel, settings)
    if settings != rules:
        shared = scorer(panel, rules)
        made.__dict__.update({name: getattr(shared, name) for name in LABELS})
    return made


@cache
def engine(panel: Panel) -> Engine:
    return Engine(panel)


def claim_of(text: str, direction: int = 1, **changed: Any) -> Claim:
    """Return a hypothesis that a formula keeps: its own fields, the scored horizon, the given direction."""
    said = {
        "id": f"h-{parse(text).id}",
        "mechanism": "control",
        "statement": "a formula of the tests",
        "direction": direction,
        "horizon_days": 5,
        "fields": sorted(parse(text).fields),
    }
    return Claim.from_record(said | changed)


@dataclass(frozen=True)
class Lab:
    """One run on one panel in one workspace."""

    ledger: Ledger
    evaluator: Evaluator

    @classmethod
    def open(
        cls, ledger: Ledger, run: str, panel: Panel, settings: EvidenceSettings, budget: Budget | None = None
    ) -> Lab:
        windows = fix_windows(panel, ledger, settings.windows, "small")
        bench = PanelContext(Computing(engine(panel)), scorer(panel, settings), windows, ledger)
        rules = {"evidence": settings.model_dump(mode="json")}
        config: dict[str, Any] = {"panel": panel.digest, "last_day": str(panel.dates[-1]), "rules": rules}
        config |= {"sectors": "sector" in panel.groups}
        ledger.runs.start(Run(run, config, 1, "small", clock().isoformat()))
        return cls(ledger, bench.evaluator(run, budget or Budget(evaluations=100, trials=10)))

    def direction(self, text: str) -> int:
        """Return the direction that the search window shows."""
        asked = self.evaluator
        sheet = asked.scorer.examine(asked.values(asked.read(text)), asked.windows.search)
        return -1 if sheet.rank_ic < 0 else 1

    def propose(self, text: str, key: str = "", **claim: Any) -> dict[str, Any]:
        """Propose a formula with a hypothesis that it keeps, unless told otherwise."""
        said = {"direction": self.direction(text)} | claim if "direction" not in claim else claim
        return self.evaluator.propose(Proposal(text, claim_of(text, **said), key or text))

    def scored(self, text: str, **claim: Any) -> str:
        """Propose a formula that must be scored, and return its id."""
        answer = self.propose(text, **claim)
        assert answer["ok"], answer
        return str(answer["id"])

    def judged(self, text: str, **claim: Any) -> Verdict:
        """Propose and submit one formula."""
        return self.evaluator.submissions.submit([self.scored(text, **claim)])[0]

    def trials(self) -> list[Mapping[str, Any] | None]:
        """Return the outcome of each trial on the selection window, by number."""
        key = self.evaluator.windows.key(self.evaluator.windows.selection)
        return [trial.outcome for trial in self.ledger.trials.overlapping(key)]


def steps(verdict: Verdict) -> dict[str, bool]:
    """Return which step of the gate passed."""
    return {reason.step: reason.passed for reason in verdict.reasons}


class Crash(Exception):
    """A process that dies."""


class Dying(Scorer):
    """A scorer that dies when it is to look at the selection window."""

    def score(self, values: NDArray[Any], window: Window, sign: int | None = None) -> FactorMetrics:
        if window.name == "selection":
            raise Crash
        return super().score(values, window, sign)


def dying(lab: Lab) -> Lab:
    """Return the same run with a gate that dies at its first look."""
    old = lab.evaluator
    fragile = Dying(old.panel, old.settings)
    evaluator = Evaluator(old.engine, old.scorer, old.windows, old.ledger, old.settings, old.budget, old.run)
    evaluator.submissions.__dict__["gate"] = AcceptanceGate(fragile, old.windows, old.ledger, old.settings, old.run)
    return Lab(lab.ledger, evaluator)


@cache
def sketches() -> TemporaryDirectory[str]:
    """Return the folder of sketches that all workspaces of a test session share: they are named by their data."""
    return TemporaryDirectory()


def read(path: Path) -> Ledger:
    """Open a workspace."""
    path.mkdir(parents=True, exist_ok=True)
    if not (path / REDUNDANCY_FOLDER).exists():
        (path / REDUNDANCY_FOLDER).symlink_to(sketches().name)
    return Ledger.open(path, clock=clock)
