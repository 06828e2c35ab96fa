"""What changes of formulas did in a run, as the agents' journal counted it: by operator and weakness of the parent."""

from __future__ import annotations

import itertools
from typing import Any

from ..ledger import Ledger
from .sheet import tidy

__all__ = ["changes"]

COUNTED = "agents.operators"


def changes(ledger: Ledger, run: str) -> list[dict[str, Any]]:
    """Return the last table of a run, rows `{operator, where, tried, better, gained}`; none where nothing was changed.

    `gained` sums |t| of a child less |t| of its parent on the search window.
    """
    rows: list[dict[str, Any]] = []
    for number in itertools.count(1):
        kept = ledger.event(run, COUNTED, f"r{number:02d}")
        if kept is None:
            return [{**row, "gained": tidy(row["gained"])} for row in rows]
        rows = kept.body["rows"]
    raise AssertionError("a run has an end")
