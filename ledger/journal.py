"""What agents write down, kept as events of their run."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any

from .digest import canonical_json
from .store import Ledger

AT_HAND_BYTES = 4 << 20
"""JSON text of the bodies that are kept in memory, those read last; Python takes some five times as much."""


class Journal:
    """Keeps bodies under a kind and a key; the first one stands. A few lie at hand, the rest is read when it is asked for.

    What it returns is what the ledger would return after a crash, down to the order of keys: prompts are made of it.
    """

    def __init__(self, ledger: Ledger, run: str) -> None:
        self._ledger = ledger
        self._run = run
        self._at_hand: OrderedDict[tuple[str, str], tuple[dict[str, Any], int]] = OrderedDict()
        self._bytes = 0

    def record(self, kind: str, key: str, body: dict[str, Any]) -> None:
        """Keep a body unless the kind and key are taken."""
        if self.read(kind, key) is None:
            self._ledger.record_event(self._run, f"agents.{kind}", key, body)
            self._keep((kind, key), canonical_json(body))

    def read(self, kind: str, key: str) -> dict[str, Any] | None:
        """Return the body kept under a kind and key."""
        place = (kind, key)
        if place in self._at_hand:
            self._at_hand.move_to_end(place)
            return self._at_hand[place][0]
        event = self._ledger.event(self._run, f"agents.{kind}", key)
        return None if event is None else self._keep(place, canonical_json(event.body))

    def _keep(self, place: tuple[str, str], text: str) -> dict[str, Any]:
        """Put a body at hand, and let go of those that were not read for longest."""
        body: dict[str, Any] = json.loads(text)
        self._at_hand[place] = (body, len(text))
        self._bytes += len(text)
        while self._bytes > AT_HAND_BYTES and len(self._at_hand) > 1:
            _, (_, size) = self._at_hand.popitem(last=False)
            self._bytes -= size
        return body
