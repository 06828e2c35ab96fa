"""What agents write down, kept as events of their run."""

from __future__ import annotations

import json
from typing import Any

from .digest import canonical_json
from .store import Ledger


class Journal:
    """Keeps bodies under a kind and a key; the first one stands. Reads its run's events once, then from memory.

    What it returns is what the ledger would return after a crash, down to the order of keys: prompts are made of it.
    """

    def __init__(self, ledger: Ledger, run: str) -> None:
        self._ledger = ledger
        self._run = run
        self._kept: dict[tuple[str, str], Any] = {
            (event.kind, event.key): event.body for event in ledger.events(run) if event.kind.startswith("agents.")
        }

    def record(self, kind: str, key: str, body: dict[str, Any]) -> None:
        """Keep a body unless the kind and key are taken."""
        place = (f"agents.{kind}", key)
        if place not in self._kept:
            self._ledger.record_event(self._run, *place, body)
            self._kept[place] = json.loads(canonical_json(body))

    def read(self, kind: str, key: str) -> dict[str, Any] | None:
        """Return the body kept under a kind and key."""
        body: dict[str, Any] | None = self._kept.get((f"agents.{kind}", key))
        return body
