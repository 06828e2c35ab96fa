"""A record and a halt file for each test that sends orders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from alphaloom.execution import HaltSwitch
from alphaloom.ledger import Ledger

from .sessions import open_ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path) as record:
        yield record


@pytest.fixture
def switch(tmp_path: Path, ledger: Ledger) -> Iterator[HaltSwitch]:
    with HaltSwitch(tmp_path) as one:
        yield one
