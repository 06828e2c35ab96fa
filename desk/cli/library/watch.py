"""One watch of the library on a panel, and its results."""

from __future__ import annotations

from typing import Any

from ....evidence.values import LazySandbox
from ....ledger import Ledger
from ....library import PROMOTED, Condition, FactorReading, LibraryWatch, list_entries
from ..evaluator import settings_at
from ..options import DataOptions
from .sealed import list_rows

__all__ = ["watch_library"]


def watch_library(ledger: Ledger, place: DataOptions, revised: str) -> dict[str, Any]:
    """Watch the library on a panel; return each factor's condition, the number of new days, and the changes."""
    settings = settings_at(place)
    panel, dataset = settings.market.open(settings.seed)
    with LazySandbox(settings.sandbox) as sandbox:
        readings = LibraryWatch(ledger, panel, dataset, settings.evidence, sandbox).run(revised)
    entries = {entry.factor_id: entry for entry in list_entries(ledger)}
    promoted = sum(entry.origin == PROMOTED for entry in entries.values())
    rows = []
    for reading in readings:
        entry = entries[reading.entry.factor_id]
        condition = Condition.of(entry, ledger, settings.evidence.library, promoted)
        (row,) = list_rows(ledger, [condition])
        rows.append({**row, **_describe_reading(reading), "lacking": reading.lacking or None})
    return {
        "panel": panel.digest,
        "first_day": str(panel.dates[0]),
        "last_day": str(panel.dates[-1]),
        "new_days": max((row["new_days"] for row in rows), default=0),
        "changed": sum(bool(row["changes"]) for row in rows),
        "factors": rows,
    }


def _describe_reading(reading: FactorReading) -> dict[str, Any]:
    changes = [
        {"day": change.day, "status": change.status, "by": change.by, "reason": change.reason}
        for change in reading.changes
        if change.key != "watched"
    ]
    days = {"new_days": len(reading.new), "unlike_days": len(reading.unlike)}
    return {**days, "changes": changes, "left_out": None if reading.lacking else reading.left_out or None}
