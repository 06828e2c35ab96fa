"""A suspicion about the data of a panel: reported on every sheet and report; the data is never changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

MAX_CASES_SHOWN = 5


@dataclass(frozen=True)
class DataWarning:
    """One finding of a detector.

    Attributes
    ----------
    kind : str
        The kind of error, in words: "bad ticks".
    observation : str
        The observation, with its amount.
    count : int
        Number of symbols, days or cells concerned.
    cases : tuple[str, ...]
        The first few symbols and days.
    why : str
        Why it matters to a backtest.
    remedy : str
        What to do.
    figures : Mapping[str, float]
        The measured numbers.
    """

    kind: str
    observation: str
    count: int
    cases: tuple[str, ...]
    why: str
    remedy: str
    figures: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the warning as one sentence."""
        where = f": {self.where}" if self.cases else ""
        return f"{self.kind} suspected: {self.observation}{where}; {self.why}; {self.remedy}"

    @property
    def where(self) -> str:
        """Return the first cases, and how many more there are."""
        rest = self.count - len(self.cases)
        return ", ".join(self.cases) + (f" and {rest:,} more" if self.cases and rest > 0 else "")

    def record(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "trap": self.kind.replace(" ", "_").replace("-", "_"),
            "message": str(self),
            "seen": self.observation,
            "count": self.count,
            "cases": list(self.cases),
            "why": self.why,
            "remedy": self.remedy,
            "figures": {name: round(float(value), 6) for name, value in self.figures.items()},
        }


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 name`, `2 names`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def first_few(cases: Iterable[str]) -> tuple[str, ...]:
    """Return the first few of many cases."""
    return tuple(case for case, _ in zip(cases, range(MAX_CASES_SHOWN), strict=False))
