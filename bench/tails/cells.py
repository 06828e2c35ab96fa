"""One cell of the table: how many were called significant, how many should be, and what chance allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import beta, binom

LEVELS = (0.05, 1e-3, 1e-4, 1e-5)
DAYS = (300, 500)
HORIZONS = (1, 5, 20)
CONFIDENCE = 0.95
DOUBT = 0.01
"""Chance that any cell of a whole table is called above nominal although none is."""


@dataclass(frozen=True)
class Cell:
    """Significant results of one law at one level.

    Attributes
    ----------
    tails
        2 if both tails were counted, each a one-sided test of its own; 1 for the upper one only.
    spread
        Variance of the counts over that of independent draws; above 1 where draws share a market's days.
    """

    law: str
    claimed: bool
    days: int
    horizon: int
    level: float
    draws: int
    count: int
    tails: int = 2
    spread: float = 1.0

    @property
    def expected(self) -> float:
        """Return the count of a test whose size is exactly nominal."""
        return self.draws * self.tails * self.level

    @property
    def size(self) -> float:
        """Return the measured size over the nominal one."""
        return self.count / self.expected

    @property
    def interval(self) -> tuple[float, float]:
        """Return the exact binomial interval (Clopper and Pearson) of the size over the nominal one."""
        count, draws, miss = self.count / self.spread, self.draws / self.spread, (1 - CONFIDENCE) / 2
        low = float(beta.ppf(miss, count, draws - count + 1)) if count else 0.0
        high = float(beta.ppf(1 - miss, count + 1, draws - count))
        return low / (self.tails * self.level), high / (self.tails * self.level)

    @property
    def surprise(self) -> float:
        """Return the chance of as many or more, were the size nominal."""
        count, draws = self.count / self.spread, round(self.draws / self.spread)
        return float(binom.sf(max(round(count), 0) - 1, draws, self.tails * self.level))


def above_nominal(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells whose size is above nominal beyond sampling error, counting how many were looked at."""
    claimed = [cell for cell in cells if cell.claimed]
    return [cell for cell in claimed if cell.surprise < DOUBT / len(claimed)]


def table(cells: Sequence[Cell]) -> str:
    """Return a Markdown table: a row for each law, days and horizon; a column for each level."""
    heads = [f"{level:g}" for level in LEVELS]
    lines = [f"| law | days | h | draws | {' | '.join(heads)} |", f"|---|---|---|---|{'---|' * len(heads)}"]
    rows = sorted({(cell.law, cell.days, cell.horizon): None for cell in cells}, key=lambda row: row[1:])
    order = list(dict.fromkeys(cell.law for cell in cells))
    for law, days, horizon in sorted(rows, key=lambda row: (order.index(row[0]), row[1], row[2])):
        found = [cell for cell in cells if (cell.law, cell.days, cell.horizon) == (law, days, horizon)]
        lines.append(f"| {law} | {days} | {horizon} | {found[0].draws:,} | {' | '.join(map(_told, found))} |")
    return "\n".join(lines)


def _told(cell: Cell) -> str:
    low, high = cell.interval
    return f"{cell.count:,} of {cell.expected:,.0f}: {cell.size:.2f} ({low:.2f}-{high:.2f})"
