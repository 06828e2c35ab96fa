"""Where a question is asked outside a campaign."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

__all__ = ["Place"]


@dataclass(frozen=True)
class Place:
    """The campaign file whose rules hold, the data that goes before the file's, the workspace, and what runs code."""

    campaign: Path | None = None
    panel: Path | None = None
    sectors: Path | None = None
    as_of: date | None = None
    workspace: Path | None = None
    executor: str | None = None
    backend: str | None = None
