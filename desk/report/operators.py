"""What the report says of changes: how often each made a formula better than its parent, and for which weakness most often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..figures import DASH, count, number, percent

__all__ = ["operator_lines"]

MIN_CHILDREN = 5
"""Children of parents with one weakness from which a share is worth a word."""


@dataclass(frozen=True)
class OperatorCell:
    """One operator on parents with one weakness."""

    where: str
    tried: int
    better: int

    @property
    def share(self) -> float:
        """Return the share of children that were better."""
        return self.better / self.tried


def operator_lines(results: Mapping[str, Any]) -> Sequence[Sequence[str]]:
    """Return a line for each operator, the most tried first; none where nothing was changed.

    Its columns: operator, children scored, of these better than the parent in |t|, their share, mean gain, best where.
    """
    from ...agents.memory import pool_rows

    rows = [row for row in results.get("operators") or () if row.get("tried")]
    lines = sorted(pool_rows(rows), key=lambda row: (-row["tried"], row["operator"]))
    return [_line(row, _best(row["operator"], rows)) for row in lines]


def _line(row: Mapping[str, Any], best: str) -> Sequence[str]:
    tried, better = int(row["tried"]), int(row["better"])
    gain = number(row["gained"] / tried, 2, sign=True)
    return (str(row["operator"]).replace("_", " "), count(tried), count(better), percent(better / tried), gain, best)


def _best(operator: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the weakness of parents for which the share was highest, of those with enough children."""
    cells = [
        OperatorCell(str(row["where"]), int(row["tried"]), int(row["better"]))
        for row in rows
        if row["operator"] == operator
    ]
    enough = [cell for cell in cells if cell.tried >= MIN_CHILDREN and cell.better]
    best = max(enough, key=lambda cell: (cell.share, cell.tried, cell.where), default=None)
    return f"{best.where.replace('_', ' ')}: {best.better} of {best.tried}" if best else DASH
