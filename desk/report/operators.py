"""What the report says of changes: how often each made a formula better than its parent, and for which weakness most often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..figures import DASH, count, number, percent

if TYPE_CHECKING:
    from ...evaluation.closing import OperatorRow

__all__ = ["operator_lines"]

MIN_CHILDREN = 5
"""Children of parents with one weakness from which a share is worth a word."""


def operator_lines(table: Sequence[OperatorRow]) -> Sequence[Sequence[str]]:
    """Return a line for each operator, the most tried first; none where nothing was changed.

    Its columns: operator, children scored, of these better than the parent in |t|, their share, mean gain, best where.
    """
    from ...agents.memory import pool_rows

    rows = [row for row in table if row.tried]
    pooled = sorted(
        pool_rows([row.model_dump() for row in rows]), key=lambda total: (-total["tried"], total["operator"])
    )
    return [_line(total, _best(total["operator"], rows)) for total in pooled]


def _line(total: Mapping[str, Any], best: str) -> Sequence[str]:
    tried, better = int(total["tried"]), int(total["better"])
    gain = number(total["gained"] / tried, 2, sign=True)
    return (str(total["operator"]).replace("_", " "), count(tried), count(better), percent(better / tried), gain, best)


def _best(operator: str, rows: Sequence[OperatorRow]) -> str:
    """Return the weakness of parents for which the share was highest, of those with enough children."""
    enough = [row for row in rows if row.operator == operator and row.tried >= MIN_CHILDREN and row.better]
    best = max(enough, key=lambda row: (row.better / row.tried, row.tried, row.where), default=None)
    return f"{best.where.replace('_', ' ')}: {best.better} of {best.tried}" if best else DASH
