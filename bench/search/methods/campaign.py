"""Alphaloom itself: a whole campaign with the offline researcher, over its graph, its servers and its gate."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from alphaloom.campaign import Campaign, Settings
from alphaloom.desk.cli.evidence.null_runs import digest_code
from alphaloom.evidence.proposal import SET_PREFIX
from alphaloom.factors import MarketSettings, parse
from alphaloom.ledger import Ledger, SettingsError, compute_digest, read_settings
from alphaloom.market import Panel

from ..world import Ground
from .method import Allowance, Answer, Factor, preferred

__all__ = ["ABLATIONS", "NAME", "Alphaloom"]

NAME = "Alphaloom, offline"
SEARCH = Path(__file__).parents[3] / "examples" / "long_search.yaml"
"""The campaign file that is run: what a user has for a long search."""
ABLATIONS = {
    "without forecasts": ("agents.drafts=1", "agents.redrafts=0", "agents.unexplored=0"),
    "without the unexplored": ("agents.unexplored=0",),
    "without memory": ("agents.memory=false",),
    "without directed operators": ("agents.directed=false",),
    "without islands": ("agents.islands=1",),
    "without the archive": ("agents.archive=false",),
}
"""What a campaign is run without, as settings of its file."""


@dataclass(frozen=True)
class Alphaloom:
    """Runs a campaign in a workspace of its own; `overrides` are settings as `--set` takes them."""

    name: str = NAME
    overrides: tuple[str, ...] = ()
    fixed: bool = False

    def missing(self) -> str:
        """Say which setting this version does not have, or nothing."""
        try:
            self._settings(1, 0)
        except SettingsError as error:
            return str(error.message)
        return ""

    def state(self) -> str:
        """Return the digest of the rooms that decide a campaign, and of its settings."""
        return compute_digest([digest_code(), SEARCH.read_text(encoding="utf-8"), list(self.overrides)])[:12]

    def search(self, ground: Ground, allowance: Allowance, seed: int) -> Answer:
        """Run a campaign to its end; all that it scored is put in order by the rule that rivals are given."""
        settings = self._settings(allowance.evaluations, seed).on(handed(ground.whole))
        workspace = Path(tempfile.mkdtemp(prefix="alphaloom-campaign-"))
        try:
            record = Campaign(settings, workspace, clock=_never).run().record
            scored = list(scored_in(workspace).values())
        finally:
            shutil.rmtree(workspace, ignore_errors=True)
        more = {"trials": record["trials"], "accepted": [_accepted(entry) for entry in record["accepted"]]}
        more["scored"] = [[factor.text, factor.t] for factor in scored]
        return Answer(tuple(preferred(ground, scored)), record["evaluations"], more=more)

    def _settings(self, evaluations: int, seed: int) -> Settings:
        asked = (f"seed={seed}", f"budget.evaluations={evaluations}", *self.overrides)
        return read_settings(SEARCH, Settings, asked)


def handed(panel: Panel) -> MarketSettings:
    """Return market settings that open a panel which is there already."""

    class Handed(MarketSettings):
        """A market that was simulated or read before the clock started, as for every rival."""

        def open(self, seed: int) -> tuple[Panel, str]:
            """Return the panel."""
            return panel, "handed"

        def reveal(self, seed: int) -> None:
            """Tell nothing: what is true of this market is for the benchmark alone."""

    return Handed()


def scored_in(workspace: Path) -> dict[str, Factor]:
    """Return by id every formula that the campaign of a workspace scored on search days, sets left out."""
    with Ledger.open(workspace, clock=_never) as ledger:
        rows: Sequence[Any] = ledger.evaluations.of(ledger.runs.all()[-1].id)
    formulas = [row for row in rows if not row.hypothesis.startswith(SET_PREFIX) and not parse(row.text).code]
    return {row.factor_id: Factor(row.text, float(row.sheet["t"] or 0.0)) for row in formulas}


def _accepted(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an accepted factor or set and the direction in which search holds it."""
    return {"text": entry["text"], "sign": -1 if (entry["metrics"]["search"]["rank_ic"] or 0.0) < 0 else 1}


def _never() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)
