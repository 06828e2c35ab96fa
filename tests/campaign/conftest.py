"""What the tests of the campaign share: a market in files, a campaign file, and one campaign run to its end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from alphaloom import Campaign
from alphaloom.ledger import Ledger
from alphaloom.market import Panel, PanelSource, load_panel

from . import markets

if TYPE_CHECKING:
    from alphaloom.evaluation import CampaignResult


@dataclass(frozen=True)
class Files:
    """A campaign file beside the market that it names."""

    campaign: Path
    panel: Path
    sectors: Path


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("market")
    panel = markets.strong()
    campaign = folder / "campaign.yaml"
    campaign.write_text("name: small\nseed: 9\nmarket: {panel: prices.parquet, sectors: sectors.parquet}\n")
    return Files(
        campaign,
        markets.write(markets.tidy(panel), folder / "prices.parquet"),
        markets.write(markets.sectors(panel), folder / "sectors.parquet"),
    )


@pytest.fixture(scope="session")
def finished(files: Files, tmp_path_factory: pytest.TempPathFactory) -> CampaignResult:
    """Return the result of a campaign in which everything happens, run in the year 2199."""
    workspace = tmp_path_factory.mktemp("finished")
    ready = Campaign.from_yaml(files.campaign, workspace=workspace, overrides=markets.CLOSING)
    return replace(ready, clock=lambda: datetime(2199, 7, 9, 11, 13, 17, tzinfo=UTC)).run()


@pytest.fixture
def workspace(finished: CampaignResult, tmp_path: Path) -> Path:
    """Return a copy of the workspace of a finished campaign."""
    return Path(shutil.copytree(finished.folder.parents[1], tmp_path / "workspace"))


@pytest.fixture
def ledger(workspace: Path) -> Iterator[Ledger]:
    with Ledger.open(workspace, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)) as record:
        yield record


@pytest.fixture
def later_ledger(workspace: Path) -> Iterator[Ledger]:
    """Open the record after the campaign's last model call: a book that begins then trades approved models."""
    with Ledger.open(workspace, clock=lambda: datetime(2199, 7, 10, tzinfo=UTC)) as record:
        yield record


@pytest.fixture(scope="module")
def panel(files: Files) -> Panel:
    return load_panel(PanelSource(files.panel, files.sectors))
