"""What changes of formulas did in a run, as the agents' journal counted it: by operator and weakness of the parent."""

from __future__ import annotations

from typing import Any

from ..evidence.scoring import round_significant
from ..factors.describe import natural_sort_key
from ..ledger import Ledger

__all__ = ["read_operator_table"]

OPERATORS_EVENT = "agents.operators"


def read_operator_table(ledger: Ledger, run: str) -> list[dict[str, Any]]:
    """Return the last table of a run, rows `{operator, where, tried, better, gained}`; none where nothing was changed.

    `gained` sums |t| of a child less |t| of its parent on the search window.
    """
    last = max(ledger.events(run, OPERATORS_EVENT), key=lambda event: natural_sort_key(event.key), default=None)
    return [{**row, "gained": round_significant(row["gained"])} for row in last.body["rows"]] if last else []
