"""One watch of the library on a panel, and its results."""

from __future__ import annotations

from typing import Any

from ....evidence.values import LazySandbox
from ....ledger import Ledger
from ....library import PROMOTED, Condition, FactorReading, LibraryWatch, list_entries
from ..evaluator import settings_at
from ..options import DataOptions

__all__ = ["watch_library"]


def watch_library(ledger: Ledger, place: DataOptions, revised: str) -> dict[str, Any]:
    """Watch the library on a panel; return each factor's condition, the number of new days, and the changes."""
    settings = settings_at(place)
    panel, dataset = settings.market.open(settings.seed)
    with LazySandbox(settings.sandbox) as jail:
        looks = LibraryWatch(ledger, panel, dataset, settings.evidence, jail).run(revised)
    now = {entry.factor_id: entry for entry in list_entries(ledger)}
    promoted = sum(entry.origin == PROMOTED for entry in now.values())
    rows = []
    for look in looks:
        entry = now[look.entry.factor_id]
        told = Condition.of(entry, ledger, settings.evidence.library, promoted).record()
        rows.append({**told, **_describe_sight(look), "lacking": look.lacking or None})
    return {
        "panel": panel.digest,
        "first_day": str(panel.dates[0]),
        "last_day": str(panel.dates[-1]),
        "new_days": max((row["new_days"] for row in rows), default=0),
        "changed": sum(bool(row["changes"]) for row in rows),
        "factors": rows,
    }


def _describe_sight(look: FactorReading) -> dict[str, Any]:
    changes = [
        {"day": each.day, "status": each.status, "by": each.by, "reason": each.reason}
        for each in look.changes
        if each.key != "watched"
    ]
    days = {"new_days": len(look.new), "unlike_days": len(look.unlike)}
    return {**days, "changes": changes, "left_out": None if look.lacking else look.left_out or None}
