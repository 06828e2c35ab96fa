"""Rows of many seeds as one table: the median over the seeds, and from the lowest to the highest."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["figures", "median", "table"]

Row = Mapping[str, Any]
COLUMNS = (
    ("recall", "recall", 2), ("new", "of new ones", 2), ("correlation", "correlation", 2), ("span_r2", "span R2", 2),
    ("sealed_rank_ic", "sealed RankIC", 3), ("sealed_t", "t", 1), ("unrelated", "unrelated", 2),
    ("evaluations", "evaluations", 0), ("cpu_s", "CPU s", 0), ("cost", "CPU s per alpha", 0),
    ("accepted", "accepted", 0), ("false", "false", 0),
)  # fmt: skip  # a table
WITH_RANGE = ("recall", "correlation")


def figures(row: Row) -> dict[str, float]:
    """Return the figures of one row, with what an alpha cost; infinite where none was found."""
    hits = len(row.get("hits", ()))
    return {
        **{key: float(row[key]) for key, _, _ in COLUMNS if key in row},
        "cost": row["cpu_s"] / hits if hits else math.inf,
    }


def median(rows: Sequence[Row], key: str) -> float:
    """Return the median of a figure over the seeds; NaN where no seed has it."""
    known = [value for row in rows if not math.isnan(value := figures(row).get(key, math.nan))]
    return statistics.median(known) if known else math.nan


def table(methods: Mapping[str, Sequence[Row]]) -> str:
    """Return one line for each method: medians over the seeds; recall and correlation with lowest and highest."""
    width = max([24, *map(len, methods)])
    heads = [f"{head} [range]" if key in WITH_RANGE else head for key, head, _ in COLUMNS]
    lines = ["  ".join([f"{'':{width}}", *(f"{head:>19}" if "[" in head else f"{head:>9}" for head in heads)])]
    for name, rows in methods.items():
        lines.append(
            "  ".join(
                [
                    f"{name:{width}}",
                    *(_cell(rows, key, head, digits) for (key, _, digits), head in zip(COLUMNS, heads, strict=True)),
                ]
            )
        )
    return "\n".join(lines)


def _cell(rows: Sequence[Row], key: str, head: str, digits: int) -> str:
    width = max(9, len(head), 19 if "[" in head else 0)
    middle = median(rows, key)
    text = "-" if not math.isfinite(middle) else f"{middle:,.{digits}f}"
    if key in WITH_RANGE and math.isfinite(middle):
        values = [figures(row)[key] for row in rows]
        text += f" [{min(values):.{digits}f}, {max(values):.{digits}f}]"
    return f"{text:>{width}}"
