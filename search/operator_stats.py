"""What changes of formulas did in a run, as the agents' journal counted it: by operator and weakness of the parent."""

from __future__ import annotations

from typing import Any

from ..evidence.scoring.metrics import tidy
from ..factors.describe.words import numbered
from ..ledger import Ledger

__all__ = ["changes"]

COUNTED = "agents.operators"


def changes(ledger: Ledger, run: str) -> list[dict[str, Any]]:
    """Return the last table of a run, rows `{operator, where, tried, better, gained}`; none where nothing was changed.

    `gained` sums |t| of a child less |t| of its parent on the search window.
    """
    last = max(ledger.events(run, COUNTED), key=lambda event: numbered(event.key), default=None)
    return [{**row, "gained": tidy(row["gained"])} for row in last.body["rows"]] if last else []
