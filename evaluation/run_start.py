"""The first record of a run: what it was asked, on which data, with which seed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from ..evidence import EvidenceSettings, OtherStream, RunArchive, Windows
from ..evidence.code import note_screening_seed
from ..ledger import Ledger, Run, compute_digest
from ..market import Panel


class RunRequest(Protocol):
    """What a campaign was asked."""

    @property
    def name(self) -> str:
        """A part of the run's id."""

    @property
    def seed(self) -> int:
        """The seed of every draw but that of the screens."""

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        """Return all of it as JSON."""


def begin_run(
    asked: RunRequest, ledger: Ledger, panel: Panel, drawn: tuple[str, datetime, int], own: Mapping[str, Any]
) -> str:
    """Write a new run into the ledger and return its id.

    `drawn` are the data set, the time and the seed of screens; `own` is what the person brought along.
    """
    dataset, now, screens = drawn
    run = f"{now:%Y%m%d-%H%M%S}-{asked.name}-{compute_digest(now.isoformat())[:4]}"
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


def refuse_other_stream(ledger: Ledger, windows: Windows, settings: EvidenceSettings) -> None:
    """Refuse a level, or a watchlist's, that is not the one of the trials on this data: their error rate is shared.

    Raises
    ------
    OtherStream
        Earlier trials on this selection window, or on its returns, were judged by another `level` or `watch_p`.
    """
    for run in dict.fromkeys(trial.run for trial in ledger.overlapping_trials(windows.key(windows.selection))):
        rules = RunArchive(ledger, ledger.run(run)).rules
        for name in ("level", "watch_p") if rules else ():
            own, earlier = getattr(settings, name), getattr(rules, name)
            if own != earlier:
                raise OtherStream(
                    f"Earlier trials on this data were judged with {name} {earlier}; one stream of trials has one.",
                    field=f"evidence.{name}", got=own, allowed=earlier,
                    hint=f"Set evidence.{name} to {earlier}, or name another --workspace for other data.",
                )  # fmt: skip
