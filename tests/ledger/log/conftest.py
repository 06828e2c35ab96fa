"""A signed workspace that tests copy, and a shell on its database."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from alphaloom.ledger import Event, Ledger, Run
from alphaloom.ledger.log import KeyFolder, verify_workspace

from ..test_store import fill

DAY = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture(scope="session")
def desk_keys(tmp_path_factory: pytest.TempPathFactory) -> KeyFolder:
    return KeyFolder(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory, desk_keys: KeyFolder) -> Path:
    """A workspace with a row or more of every table, signed in four checkpoints, and moved: a copy takes it over."""
    workspace = tmp_path_factory.mktemp("pristine") / "workspace"
    begin(workspace, desk_keys)
    for number in (1, 2):
        go_on(workspace, desk_keys, DAY + timedelta(minutes=number), f"later{number}")
    assert verify_workspace(workspace, desk_keys).findings == ()
    return workspace.rename(workspace.with_name("moved"))


@pytest.fixture
def workspace(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "workspace"))


@pytest.fixture
def keys(desk_keys: KeyFolder, tmp_path: Path) -> KeyFolder:
    """A copy of the desk's keys, which a test may lose or use."""
    return KeyFolder(Path(shutil.copytree(desk_keys.folder, tmp_path / "keys")))


def begin(workspace: Path, keys: KeyFolder, seed: int = 1) -> None:
    with Ledger.open(workspace, clock=lambda: DAY, keys=keys, draw_salt=random.Random(seed).randbytes) as ledger:
        ledger.runs.start(Run("one", {"seed": 1}, 1, "data", "2026-01-02"))
        fill(ledger)


def go_on(workspace: Path, keys: KeyFolder, at: datetime, name: str) -> None:
    """Add three events and their checkpoint."""
    with Ledger.open(workspace, clock=lambda: at, keys=keys, draw_salt=random.Random(name).randbytes) as ledger:
        for place in range(3):
            ledger.events.add(Event("one", "note", f"{name} {place}", {"n": place}))


def shell(workspace: Path, *statements: str) -> None:
    """Run statements on the database, as somebody with the file can, without its guards; each must change something."""
    with closing(sqlite3.connect(workspace / "ledger.sqlite")) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            assert connection.execute(statement).rowcount != 0, statement
        for _, sql in guards:
            with suppress(sqlite3.OperationalError):  # of a table that is gone
                connection.execute(sql)
        connection.commit()
