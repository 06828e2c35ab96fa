"""Where a question is asked outside a campaign."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from ..figures import count

__all__ = ["DataOptions", "data_line"]


@dataclass(frozen=True)
class DataOptions:
    """The campaign file whose rules hold, the data that goes before the file's, the workspace, and what runs code."""

    campaign: Path | None = None
    panel: Path | None = None
    sectors: Path | None = None
    as_of: date | None = None
    workspace: Path | None = None
    executor: str | None = None
    backend: str | None = None


def data_line(data: Mapping[str, Any]) -> str:
    """Return in one line which prices were used; prices that nobody supplied are named as synthetic."""
    span = f"{count(data['days'])} days x {count(data['symbols'])} symbols, {data['first_day']} to {data['last_day']}"
    if data["synthetic"]:
        return f"data: SYNTHETIC market, seed {data['seed']}, {span}; for your own prices add --panel FILE"
    return f"data: {data['file']}, {span}"
