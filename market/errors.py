"""What can go wrong in the market room.

AlphaloomError
└── MarketError     prices, or the settings of the synthetic market, cannot be used
    └── PanelError  a panel or its files cannot be used; carries every finding at once
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..ledger import AlphaloomError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


MAX_SHOWN_PER_KIND = 20
"""Findings of one kind that a message lists; the others are counted."""
MAX_CASES_SHOWN = 5


class MarketError(AlphaloomError):
    """Prices, or the settings of the synthetic market, cannot be used."""

    code: str = "market"


@dataclass(frozen=True)
class Finding:
    """One mistake in a file: its data row from 1 (0: the whole file or column), its column, and what is wrong."""

    row: int
    column: str
    message: str

    def __str__(self) -> str:
        """Return the finding as a person reads it."""
        place = ", ".join(part for part in (f"row {self.row}" if self.row else "", self.column) if part)
        return f"{place}: {self.message}" if place else self.message


class PanelError(MarketError):
    """A panel or its files cannot be used; `findings` holds every reason."""

    code: str = "panel"

    def __init__(
        self,
        message: str = "",
        *,
        findings: tuple[Finding, ...] = (),
        field: str = "",
        got: object = None,
        allowed: object = None,
        hint: str = "",
    ) -> None:
        """Keep the findings beside the message."""
        self.findings = findings
        super().__init__(message, field=field, got=got, allowed=allowed, hint=hint)

    def record(self) -> dict[str, object]:
        """Return the error with one entry for each finding."""
        return super().record() | {"findings": [vars(finding) for finding in self.findings]}


def unusable_error(path: Path, what: str, hint: str = "") -> PanelError:
    """Return the error for a file that cannot be read as a whole."""
    return PanelError(f"{path}: {what}.", findings=(Finding(0, "", what),), field=str(path), hint=hint)


def refuse_missing(path: Path) -> None:
    """Refuse a file that does not exist; the command line calls this before it imports anything heavy."""
    if not path.exists():
        hint = (
            "Check the path: on the command line it starts from where you are, "
            "in a campaign file from that file's folder."
        )
        raise unusable_error(path, "there is no such file", hint)


@dataclass
class Audit:
    """Collect the findings of a file and raise them as one error.

    `numbers` is the data row in the file of each row that was read.
    """

    numbers: NDArray[np.int64]
    findings: list[Finding] = field(default_factory=list)
    total: int = 0

    def add(self, *findings: Finding) -> None:
        """Add findings about the file or a column as a whole."""
        self.findings.extend(findings)
        self.total += len(findings)

    def add_rows(self, column: str, bad: NDArray[np.intp], describe: Callable[[int], str]) -> None:
        """Add one finding for each bad row of the table (from 0); `describe` returns what is wrong with it."""
        shown = bad[:MAX_SHOWN_PER_KIND].tolist()
        self.findings.extend(Finding(int(self.numbers[row]), column, describe(row)) for row in shown)
        self.total += len(bad)
        if len(bad) > MAX_SHOWN_PER_KIND:
            self.findings.append(_count_others(column, len(bad), int(self.numbers[bad[-1]])))

    def add_broken(self, broken: Sequence[Finding]) -> None:
        """Add rows that could not be read at all."""
        self.findings.extend(broken[:MAX_SHOWN_PER_KIND])
        self.total += len(broken)
        if len(broken) > MAX_SHOWN_PER_KIND:
            self.findings.append(_count_others("", len(broken), broken[-1].row))

    def refuse(self, name: str) -> None:
        """Raise a PanelError with all findings, if there are any."""
        if not self.findings:
            return
        count = "1 finding" if self.total == 1 else f"{self.total:,} findings"
        lines = [
            f"{name} cannot be used: {count}, and nothing was done with it.",
            *(f"  {finding}" for finding in self.findings),
        ]
        rows = "Rows are counted from 1 below the header. Correct or drop these rows at the source, then run again."
        whole = "The file as a whole is wrong, not a row of it. Correct it at the source, then run again."
        hint = rows if any(finding.row for finding in self.findings) else whole
        raise PanelError("\n".join(lines), findings=tuple(self.findings), field=name, hint=hint)


def _count_others(column: str, count: int, last: int) -> Finding:
    more = count - MAX_SHOWN_PER_KIND
    return Finding(0, column, f"and {more:,} more rows like these, the last is row {last}")


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
