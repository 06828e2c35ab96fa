"""What the record knows of a run and its results do not hold: its name, licence, authors, and their words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ....evaluation.manifest import RunExposure
    from ....ledger import Ledger

IDEA_EVENT = "agents.hypothesis"


@dataclass(frozen=True)
class RunNotes:
    """The campaign's name, and the Idea agent's record of each hypothesis by id; empty outside a workspace.

    `licence` is that of the data as declared; `exposure` says who wrote what, and which days a model can have read.
    """

    name: str = ""
    ideas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    licence: str = ""
    exposure: RunExposure | None = None


def read_run_notes(ledger: Ledger, run: str) -> RunNotes:
    """Return the notes of a campaign from its record."""
    from ....evaluation.manifest import describe_licence, read_exposure

    row = ledger.runs.find(run)
    name = row.config.get("settings", {}).get("name") or ""
    ideas = {event.key: event.body for event in ledger.events.of(run, IDEA_EVENT)}
    return RunNotes(str(name), ideas, describe_licence(row), read_exposure(ledger, row))
