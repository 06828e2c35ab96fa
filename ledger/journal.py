"""The notes of agents, stored as events of their run."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any

from .digest import canonical_json
from .store import Ledger

AT_HAND_BYTES = 4 << 20
"""Characters of JSON text that are cached, those read last; as Python objects they take about five times as much."""


class Journal:
    """Stores JSON bodies under a kind and a key; the first body under a key stays.

    The bodies read last are cached, the others are read from the ledger. `read` returns what the ledger would return
    after a crash, down to the order of keys, because prompts are built from it.
    """

    def __init__(self, ledger: Ledger, run: str) -> None:
        self._ledger = ledger
        self._run = run
        self._at_hand: OrderedDict[tuple[str, str], tuple[dict[str, Any], int]] = OrderedDict()
        self._bytes = 0

    def record(self, kind: str, key: str, body: dict[str, Any]) -> None:
        """Store a body, unless one is stored under the kind and key."""
        if self.read(kind, key) is None:
            self._ledger.events.record(self._run, f"agents.{kind}", key, body)
            self._cache((kind, key), canonical_json(body))

    def read(self, kind: str, key: str) -> dict[str, Any] | None:
        """Return the body under a kind and key; None if there is none."""
        place = (kind, key)
        if place in self._at_hand:
            self._at_hand.move_to_end(place)
            return self._at_hand[place][0]
        event = self._ledger.events.get(self._run, f"agents.{kind}", key)
        return None if event is None else self._cache(place, canonical_json(event.body))

    def _cache(self, place: tuple[str, str], text: str) -> dict[str, Any]:
        """Cache a body and drop those read longest ago; return the body."""
        body: dict[str, Any] = json.loads(text)
        self._at_hand[place] = (body, len(text))
        self._bytes += len(text)
        while self._bytes > AT_HAND_BYTES and len(self._at_hand) > 1:
            _, (_, size) = self._at_hand.popitem(last=False)
            self._bytes -= size
        return body
