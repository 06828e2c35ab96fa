"""Workspaces with an evaluation service on a small market."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from alphaloom.evaluation import Budget
from alphaloom.evidence import EvidenceSettings
from alphaloom.ledger import Ledger
from alphaloom.market import Panel

from .lab import SMALL, Lab, market, read


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with read(tmp_path / "workspace") as opened:
        yield opened


@pytest.fixture
def lab(ledger: Ledger) -> Callable[..., Lab]:
    """Return a maker of runs in one workspace."""

    def make(
        run: str = "run",
        *,
        panel: Panel | None = None,
        settings: EvidenceSettings = SMALL,
        budget: Budget | None = None,
        **changed: Any,
    ) -> Lab:
        asked = settings.model_copy(update=changed) if changed else settings
        return Lab.open(ledger, run, panel or market(), asked, budget)

    return make


@pytest.fixture
def planted() -> Panel:
    """Return a market in which one known factor is strong."""
    return market(1, names=120, planted=True)
