"""A paper book watches the library: what fades loses weight and leaves, however often the book is stepped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from alphaloom import Campaign
from alphaloom.campaign import DECAYING_SHARE, BookData, BookSettings, list_steps, open_book, replay_book, step_book
from alphaloom.evidence import EvidenceSettings
from alphaloom.evidence.settings import LibrarySettings
from alphaloom.factors import PlantSettings
from alphaloom.factors.space.planted import draw_plants
from alphaloom.ledger import Ledger, canonical_json
from alphaloom.market import Panel, SyntheticConfig, simulate

from . import markets

pytestmark = pytest.mark.integration

CUT, ALL = 500, 700
RULES = EvidenceSettings(library=LibrarySettings(flag_days=126, flag_p=0.4, retire_e=0.0))
LEAVING = EvidenceSettings(library=LibrarySettings(flag_days=126, flag_p=0.4, retire_e=1.2))


@pytest.fixture(scope="module")
def fading() -> Panel:
    """Simulate a market in which much is planted, and all of it ends with the first days."""
    plants = draw_plants(3, PlantSettings(count=12, rank_ic=(0.08, 0.08), fading=0.0, dying=0.0))
    ended = [replace(plant, end=CUT / ALL) for plant in plants]
    return simulate(SyntheticConfig(seed=3, days=ALL, names=80), ended).panel


@pytest.fixture(scope="module")
def campaign(fading: Panel, tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    folder = tmp_path_factory.mktemp("fading")
    file = folder / "first.yaml"
    file.write_text("name: first\nseed: 5\nmarket: {panel: prices.parquet, sectors: sectors.parquet}\n")
    markets.write(markets.tidy(fading.rows(0, CUT)), folder / "prices.parquet")
    markets.write(markets.sectors(fading), folder / "sectors.parquet")
    made = Campaign.from_yaml(file, workspace=folder / "workspace", overrides=markets.CLOSING)
    made = replace(made, clock=lambda: markets.NOON)
    assert made.run().accepted
    return made


@pytest.fixture
def ledger(campaign: Campaign, fading: Panel, tmp_path: Path) -> Iterator[Ledger]:
    workspace = Path(shutil.copytree(campaign.workspace, tmp_path / "workspace"))
    with Ledger.open(workspace, clock=lambda: markets.NOON) as record:
        yield record


def step(ledger: Ledger, name: str, panel: Panel, rules: EvidenceSettings) -> list[str]:
    """Step a book that began after the campaign's panel, and return what was told of the library."""
    open_book(ledger, name, BookSettings(), markets.NOON)
    noted: list[str] = []
    since = panel.dates[CUT].astype(object)
    data = BookData(panel, "first", since=since, rules=rules)
    step_book(ledger, name, data, lambda: markets.NOON, noted=noted.append)
    return noted


def test_what_fades_has_half_of_its_weight_from_the_close_at_which_that_is_known(ledger: Ledger, fading: Panel) -> None:
    (book,) = {run.id: run for run in ledger.runs.all()}
    noted = step(ledger, "once", fading, RULES)
    assert any("is decaying" in line for line in noted)
    steps = list_steps(ledger, "book-once")
    shares = [body["library"]["books"][book]["share"] for body in steps]
    assert sorted(set(shares)) == [DECAYING_SHARE, 1.0]
    assert shares == sorted(shares, reverse=True), "it decays once"
    assert [bool(body["library"]["decaying"]) for body in steps] == [share < 1 for share in shares]
    flagged = min(change.day for change in ledger.library.standings() if change.status == "decaying")
    assert next(body["day"] for body in steps if body["library"]["decaying"]) > flagged
    sealed = ledger.trials.boundaries()[0].sealed_end
    watched = [one.day for row in ledger.library.rows() for one in ledger.library.sightings(row.factor_id)]
    assert watched
    assert min(watched) > sealed, "no protected day was looked at"
    assert not any(parts for _, parts in replay_book(ledger, "once"))


def test_in_pieces_it_is_the_same_bytes(ledger: Ledger, campaign: Campaign, fading: Panel, tmp_path: Path) -> None:
    step(ledger, "book", fading, LEAVING)
    again = tmp_path / "again"
    shutil.copytree(campaign.workspace, again)
    with Ledger.open(again, clock=lambda: markets.NOON) as other:
        for stop in (CUT + 1, CUT + 130, CUT + 140, CUT + 141, ALL):
            step(other, "book", fading.rows(0, stop), LEAVING)
        pieces = [canonical_json(body) for body in list_steps(other, "book-book")]
    last = list_steps(ledger, "book-book")[-1]
    assert (last["library"]["books"], last["account"]["holdings"]) == ({}, {}), "what is retired has left"
    assert pieces == [canonical_json(body) for body in list_steps(ledger, "book-book")]
