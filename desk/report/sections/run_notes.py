"""What the record knows of a run and its results do not hold: its name, and its authors' words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ....ledger import Ledger

IDEA_EVENT = "agents.hypothesis"


@dataclass(frozen=True)
class RunNotes:
    """The campaign's name, and the Idea agent's record of each hypothesis by id; empty outside a workspace."""

    name: str = ""
    ideas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read_run_notes(ledger: Ledger, run: str) -> RunNotes:
    """Return the notes of a campaign from its record."""
    name = ledger.runs.find(run).config.get("settings", {}).get("name") or ""
    return RunNotes(str(name), {event.key: event.body for event in ledger.events.of(run, IDEA_EVENT)})
