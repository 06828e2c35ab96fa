"""The whole way: accepted, decayed on new days, told to the next campaign, and a successor proposed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from alphaloom import Campaign
from alphaloom.agents.offline.mechanisms import find_mechanism
from alphaloom.evidence import EvidenceSettings
from alphaloom.evidence.settings import LibrarySettings
from alphaloom.factors import PlantSettings
from alphaloom.factors.space.planted import draw_plants
from alphaloom.ledger import Ledger
from alphaloom.library.entries import list_entries
from alphaloom.library.watch import LibraryWatch
from alphaloom.market import Panel, SyntheticConfig, simulate

from . import markets

pytestmark = pytest.mark.integration

CUT, ALL = 700, 1000
RULES = LibrarySettings(flag_days=126, flag_p=0.2, retire_e=0.0)


def fading() -> Panel:
    """Simulate a market in which much is planted, and all of it ends with the first days."""
    plants = draw_plants(3, PlantSettings(count=12, rank_ic=(0.08, 0.08), fading=0.0, dying=0.0))
    return simulate(SyntheticConfig(seed=3, days=ALL, names=120), [replace(p, end=CUT / ALL) for p in plants]).panel


def clock() -> datetime:
    return datetime(2199, 7, 9, 11, 13, 17, tzinfo=UTC)


def campaign(folder: Path, name: str, panel: Path, *, seed: int) -> Campaign:
    path = folder / f"{name}.yaml"
    path.write_text(f"name: {name}\nseed: {seed}\n")
    brief = [*markets.BRIEF, "agents.rounds=2", "budget.evaluations=30", "agents.set_size=0"]
    made = Campaign.from_yaml(path, panel=panel, workspace=folder / "workspace", overrides=brief)
    return replace(made, clock=clock)


def test_a_decaying_factor_is_told_to_the_next_campaign_which_proposes_a_successor(tmp_path: Path) -> None:
    whole = fading()
    panel = markets.write(markets.tidy(whole.rows(0, CUT)), tmp_path / "prices.parquet")
    accepted = campaign(tmp_path, "first", panel, seed=5).run().record["accepted"]
    singles = [entry for entry in accepted if entry["hypothesis"]["mechanism"] != "set"]
    assert singles

    with Ledger.open(tmp_path / "workspace", clock=clock) as ledger:
        longer = markets.write(markets.tidy(whole), tmp_path / "longer.parquet")
        later, dataset = campaign(tmp_path, "watch", longer, seed=5).settings.market.open(5)
        LibraryWatch(ledger, later, dataset, EvidenceSettings(library=RULES)).run()
        decaying = {entry.factor_id for entry in list_entries(ledger) if entry.status == "decaying"}
        assert decaying

    second = campaign(tmp_path, "second", panel, seed=6).run()
    with Ledger.open(tmp_path / "workspace", clock=clock) as ledger:
        claims = [event.body for event in ledger.events.of(second.run, "claim")]
        (noted,) = ledger.events.of(second.run, "decaying")
    told = {row["id"]: row for row in noted.body}
    assert set(told) == decaying
    heirs = {claim["succeeds"] for claim in claims if claim.get("succeeds")}
    known = {name for name, row in told.items() if find_mechanism(row["mechanism"])}
    assert known
    assert heirs
    assert heirs <= known
    statement = next(claim["statement"] for claim in claims if claim.get("succeeds"))
    assert any(name in statement for name in heirs)
