"""The first record of a run: what it was asked, on which data, with which seed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from ..ledger import Ledger, Run, digest
from ..market import Panel
from .screening_seed import note_screening_seed


class Asked(Protocol):
    """What a campaign was asked."""

    @property
    def name(self) -> str:
        """A part of the run's id."""

    @property
    def seed(self) -> int:
        """The seed of every draw but that of the screens."""

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        """Return all of it as JSON."""


def begin(asked: Asked, ledger: Ledger, panel: Panel, drawn: tuple[str, datetime, int], own: Mapping[str, Any]) -> str:
    """Write a new run into the ledger and return its id.

    `drawn` are the data set, the time and the seed of screens; `own` is what the person brought along.
    """
    dataset, now, screens = drawn
    run = f"{now:%Y%m%d-%H%M%S}-{asked.name}-{digest(now.isoformat())[:4]}"
    config = {
        "settings": asked.model_dump(mode="json"),
        "own": dict(own),
        "panel": panel.digest,
        "last_day": str(panel.dates[-1]),
        "sectors": "sector" in panel.groups,
    }
    ledger.start_run(Run(run, config, asked.seed, dataset, now.isoformat()))
    note_screening_seed(ledger, run, screens)
    return run
