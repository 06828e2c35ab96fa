"""One thing that looks wrong in a panel and may be right: said on every sheet and report, never changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

MAX_CASES_SHOWN = 5


@dataclass(frozen=True)
class DataWarning:
    """What a detector saw in a panel.

    Attributes
    ----------
    trap : str
        Which trap it is, in words: "bad ticks".
    seen : str
        What was seen, and how much of it.
    count : int
        Number of names, days or cells that it concerns.
    cases : tuple[str, ...]
        Where: the first few names and days.
    why : str
        Why it matters to a backtest.
    remedy : str
        What to do.
    figures : Mapping[str, float]
        The measured numbers behind the words.
    """

    trap: str
    seen: str
    count: int
    cases: tuple[str, ...]
    why: str
    remedy: str
    figures: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return all of it as one sentence."""
        where = f": {self.where}" if self.cases else ""
        return f"{self.trap} suspected: {self.seen}{where}; {self.why}; {self.remedy}"

    @property
    def where(self) -> str:
        """Return the first cases, and how many more there are."""
        rest = self.count - len(self.cases)
        return ", ".join(self.cases) + (f" and {rest:,} more" if self.cases and rest > 0 else "")

    def record(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "trap": self.trap.replace(" ", "_").replace("-", "_"),
            "message": str(self),
            "seen": self.seen,
            "count": self.count,
            "cases": list(self.cases),
            "why": self.why,
            "remedy": self.remedy,
            "figures": {name: round(float(value), 6) for name, value in self.figures.items()},
        }


def format_count(number: int, what: str) -> str:
    """Return `1 name`, `2 names`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def first_few(cases: Iterable[str]) -> tuple[str, ...]:
    """Return the first few of many cases."""
    return tuple(case for case, _ in zip(cases, range(MAX_CASES_SHOWN), strict=False))
