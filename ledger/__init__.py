"""The append-only record of everything a campaign tried, asked, decided and made.

`Ledger` keeps it; the records are in `ledger.records`, the errors in `ledger.errors`. `read_settings` turns a YAML
file into a checked record; it is imported when first used, because pydantic and yaml are slow to load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .digest import JSON, canonical_json, compute_digest
from .errors import AlphaloomError, LedgerConflict, LedgerError, RunLocked, SettingsError, UnknownRun, WorkspaceError
from .files.objects import read_json, write_json
from .journal import Journal
from .records import (
    Attempt,
    Boundaries,
    Evaluation,
    Event,
    LibraryRow,
    Look,
    ModelCall,
    Opening,
    Run,
    Sighting,
    StatusChange,
    Trial,
    VerdictRow,
    WindowKey,
)
from .store import Ledger

if TYPE_CHECKING:
    from .files.settings import read_settings

__all__ = [
    "JSON",
    "AlphaloomError",
    "Attempt",
    "Boundaries",
    "Evaluation",
    "Event",
    "Journal",
    "Ledger",
    "LedgerConflict",
    "LedgerError",
    "LibraryRow",
    "Look",
    "ModelCall",
    "Opening",
    "Run",
    "RunLocked",
    "SettingsError",
    "Sighting",
    "StatusChange",
    "Trial",
    "UnknownRun",
    "VerdictRow",
    "WindowKey",
    "WorkspaceError",
    "canonical_json",
    "compute_digest",
    "read_json",
    "read_settings",
    "write_json",
]


def __getattr__(name: str) -> Any:
    """Import the reader of settings when it is first used."""
    if name == "read_settings":
        from .files.settings import read_settings

        return read_settings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
