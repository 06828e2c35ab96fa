from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from alphaloom.ledger import Ledger, Run

from . import postgres
from .postgres import Cluster

KINDS = ["file"] if postgres.lacking() else ["file", "postgres"]
"""Every law of the ledger holds in both; `test_postgres` says why there is no server where there is none."""


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    yield from postgres.cluster()


@pytest.fixture(params=KINDS)
def ledger(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Ledger]:
    address = request.getfixturevalue("cluster").database() if request.param == "postgres" else ""
    yield from opened(tmp_path / "workspace", address)


@pytest.fixture
def filed(tmp_path: Path) -> Iterator[Ledger]:
    yield from opened(tmp_path / "workspace")


def opened(workspace: Path, address: str = "") -> Iterator[Ledger]:
    with Ledger.open(workspace, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC), address=address) as ledger:
        ledger.runs.start(Run("one", {"seed": 1}, 1, "data", "2026-01-02"))
        yield ledger
