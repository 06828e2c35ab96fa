"""Campaigns on null markets, one for each seed; results are stored, so that an interrupted control can continue."""

from __future__ import annotations

import gc
import hashlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from ....agents import Models
from ....campaign import Campaign, Clock, Settings
from ....evaluation import Budget, CampaignResult, PanelContext
from ....evaluation.checks import MAX_RANDOM_FORMULAS, NullRun, top_up
from ....factors.space import PlantSettings
from ....ledger import Ledger, compute_digest, read_json, write_json
from ....ledger.database import hold_lock
from ....ledger.files import check_given, make_folder
from ....market import Nulling

DECIDING_ROOMS = (
    "agents", "campaign", "evaluation", "evidence", "factors", "ledger", "library", "market", "mcp_servers", "news",
    "portfolio", "router", "search",
)  # fmt: skip  # a table
"""The rooms whose code determines the result of a campaign."""
OPEN_THRESHOLDS = {"min_search_t": 0.0, "rounds": 20}
"""Agents send all that they have: the control tests the gate, so nothing may be held back before it."""


@cache
def digest_code() -> str:
    """Return the digest of all files in the deciding rooms: results of an older gate say nothing about this one."""
    root = Path(__file__).parents[3]
    files = sorted(
        path for room in DECIDING_ROOMS for path in (root / room).rglob("*") if path.suffix not in {"", ".pyc"}
    )
    state = hashlib.sha256()
    for path in files:
        state.update(f"{path.relative_to(root)}:".encode() + hashlib.sha256(path.read_bytes()).digest())
    return state.hexdigest()


@dataclass(frozen=True)
class AnswerFolder:
    """A folder with one answer for each name, written whole; an existing answer is not computed again."""

    folder: Path

    def path(self, name: str) -> Path:
        """Return the file of an answer."""
        return self.folder / f"{name}.json"

    def answer(self, name: str, make: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """Return the answer with this name; compute and store it if it is missing."""
        if not self.path(name).is_file():
            write_json(self.path(name), dict(make()))
        content: dict[str, Any] = read_json(self.path(name))
        return content


@dataclass(frozen=True)
class NullRuns:
    """Campaigns with the same settings and the seeds 0, 1, 2 ...; `settings` describe a null market.

    The folder of a control is named after a digest of its settings, of the bytes of its files and of the code, so that
    neither another question nor a changed gate finds the old answers.
    """

    settings: Settings
    folder: Path
    clock: Clock = field(default=lambda: datetime.now(UTC))

    @property
    def place(self) -> Path:
        """The folder of this control."""
        market = self.settings.market
        paths = [path for path in (market.panel, market.sectors, market.actions) if path]
        for path in paths:
            check_given(path)
        files = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
        settings = self.settings.model_dump(mode="json")
        return self.folder / compute_digest([settings, files, digest_code()])[:12]

    def outcomes(self, seeds: int) -> Iterator[NullRun]:
        """Yield the outcome of each seed in order; known ones are read, and an interrupted one continues.

        Raises
        ------
        RunLocked
            Another process works on the same control.
        """
        place = self.place
        make_folder(place)
        with hold_lock(place / "lock", "of this control"):
            answers = AnswerFolder(place)
            for seed in range(seeds):
                yield NullRun(**answers.answer(_name_seed(seed), lambda seed=seed: asdict(self._run_seed(seed, place))))  # type: ignore[misc]

    def known(self, seeds: int) -> int:
        """Return the number of seeds whose outcome is stored."""
        answers = AnswerFolder(self.place)
        return sum(1 for seed in range(seeds) if answers.path(_name_seed(seed)).is_file())

    def _run_seed(self, seed: int, place: Path) -> NullRun:
        """Run or resume one campaign; its workspace is kept only if something was accepted, for inspection."""
        began = time.monotonic()
        workspace = place / _name_seed(seed)
        settings = self.settings.model_copy(update={"seed": seed})
        outcome = self._spend_trials(settings, workspace)
        if not outcome.accepted:
            shutil.rmtree(workspace, ignore_errors=True)
        gc.collect()  # panels and engines of past seeds are in reference cycles, which are otherwise freed too late
        return NullRun(**{**asdict(outcome), "seconds": round(time.monotonic() - began, 1)})

    def _spend_trials(self, settings: Settings, workspace: Path) -> NullRun:
        """Run the search, then spend the remaining trials."""
        result = self._run_search(settings, workspace)
        results, level = result.results, settings.evidence.level
        if results.trials >= settings.budget.trials:
            return NullRun(settings.seed, results.evaluations, results.trials, len(results.accepted), level)
        more = settings.budget.model_copy(update={"evaluations": settings.budget.evaluations + MAX_RANDOM_FORMULAS})
        panel, dataset = settings.market.open(settings.seed)
        with Ledger.open(workspace, clock=self.clock) as ledger:
            evaluator = PanelContext.set_up(panel, ledger, settings.evidence, dataset).evaluator(result.run, more)
            top_up(evaluator, settings.seed)
            return NullRun.of(settings.seed, evaluator)

    def _run_search(self, settings: Settings, workspace: Path) -> CampaignResult:
        """Return the result of a campaign: started, resumed, or read if it is done."""
        with Ledger.open(workspace, clock=self.clock) as ledger:
            runs = ledger.runs.all()
        if runs:
            return Campaign.resume(runs[-1].id, workspace=workspace)
        return Campaign(settings, workspace, clock=self.clock).run()


def make_synthetic_settings(base: Settings, days: int, names: int, budget: Budget) -> Settings:
    """Return the settings of a campaign on a null synthetic market."""
    synthetic = base.market.synthetic.model_copy(update={"nothing": True, "days": days, "names": names})
    changes = {"panel": None, "sectors": None, "nulled": None, "synthetic": synthetic, "plants": PlantSettings(count=0)}
    return _make_control_settings(base, budget).on(base.market.model_copy(update=changes))


def make_panel_settings(base: Settings, nulling: Nulling, budget: Budget) -> Settings:
    """Return the settings of a campaign on the base's own panel with its returns made null."""
    return _make_control_settings(base, budget).on(base.market.model_copy(update={"nulled": nulling}))


def _make_control_settings(base: Settings, budget: Budget) -> Settings:
    """Return settings with the offline researcher in which the gate is used as often as the budget allows."""
    changed = {
        "name": "control",
        "agents": base.agents.model_copy(update=OPEN_THRESHOLDS),
        "models": Models(),
        "budget": budget,
        "evidence": base.evidence.model_copy(update={"open_sealed": False, "prior_trials": 0}),
    }
    return base.model_copy(update=changed)


def _name_seed(seed: int) -> str:
    return f"seed-{seed:04d}"
