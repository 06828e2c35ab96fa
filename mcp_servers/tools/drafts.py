"""Drafts that a caller registered: formulas with a name and a note, kept on the record until somebody scores them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from ...factors import Expression
from ...ledger import Ledger, Run

__all__ = ["CALLER_KEY", "DRAFT", "Drafts"]

DRAFT = "draft"
"""The kind of an event that registers one."""
CALLER_KEY = "caller"
"""What a run's configuration says of who began it."""


@dataclass(frozen=True)
class Drafts:
    """The drafts of one caller, of this run and of its earlier ones on data that it may know."""

    ledger: Ledger
    run: str
    caller: str
    as_of: date | None = None

    def register(self, expression: Expression, name: str, note: str) -> bool:
        """Keep a draft; return whether it is new. The first that was registered stands."""
        if expression.id in {draft["id"] for draft in self.all()}:
            return False
        told = {"id": expression.id, "text": expression.text, "canonical": expression.shown, "name": name, "note": note}
        return self.ledger.record_event(self.run, DRAFT, expression.id, told)

    def all(self) -> list[dict[str, Any]]:
        """Return the drafts by id; of one formula the first."""
        found: dict[str, dict[str, Any]] = {}
        for run in self._runs():
            for event in self.ledger.events(run, DRAFT):
                found.setdefault(event.body["id"], dict(event.body))
        return [found[name] for name in sorted(found)]

    def _runs(self) -> Iterator[str]:
        for run in self.ledger.runs():
            if run.id == self.run or (run.config.get(CALLER_KEY) == self.caller and self._known(run)):
                yield run.id

    def _known(self, run: Run) -> bool:
        return self.as_of is None or str(run.config.get("last_day", "9999")) <= str(self.as_of)
