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
"""Findings of one kind that a message about texts lists; the others are counted."""
MAX_EXAMPLE_ROWS = 3
"""Rows of one kind in one column that a message about prices shows; the others are counted."""
MAX_FINDING_LINES = 12
"""Findings that a message shows, so that it fits on a screen; `PanelError.findings` has all."""
MAX_CELL_LENGTH = 40
SETTINGS_PLACE = "under market: read: in a campaign file; alphaloom data look FILE --read KEY=VALUE tries them"
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

    `numbers` is the data row in the file of each row that was read, `owners` what a row is of, where the row's number
    does not say it; `notes` state what was inferred, `needs_setting` whether a finding names a setting, and
    `within_day` whether the table has several times of one day.
    """

    numbers: NDArray[np.int64]
    findings: list[Finding] = field(default_factory=list)
    total: int = 0
    owners: Callable[[int], str] | None = None
    notes: list[str] = field(default_factory=list)
    needs_setting: bool = False
    within_day: bool = False

    def add(self, *findings: Finding) -> None:
        """Add findings about the file or a column as a whole."""
        self.findings.extend(findings)
        self.total += len(findings)

    def ask(self, column: str, message: str, row: int = 0) -> None:
        """Add a finding that a setting of `Reading` answers; the message names the setting."""
        self.add(Finding(row, column, message))
        self.needs_setting = True

    def add_rows(self, column: str, bad: NDArray[np.intp], describe: Callable[[int], str]) -> None:
        """Add the bad rows of the table (from 0): one finding each up to three, else one with three examples."""
        self.total += len(bad)
        rows = [(int(self.numbers[row]), self._describe(row, describe)) for row in bad[:MAX_EXAMPLE_ROWS].tolist()]
        if len(bad) <= MAX_EXAMPLE_ROWS:
            self.findings.extend(Finding(number, column, message) for number, message in rows)
            return
        self.findings.append(_join_examples(column, rows, len(bad), int(self.numbers[bad[-1]])))

    def _describe(self, row: int, describe: Callable[[int], str]) -> str:
        return f"{self.owners(row)}: {describe(row)}" if self.owners else describe(row)

    def add_broken(self, broken: Sequence[Finding]) -> None:
        """Add rows that could not be read at all."""
        self.total += len(broken)
        if len(broken) <= MAX_EXAMPLE_ROWS:
            self.findings.extend(broken)
            return
        rows = [(finding.row, finding.message) for finding in broken[:MAX_EXAMPLE_ROWS]]
        self.findings.append(_join_examples("", rows, len(broken), broken[-1].row))

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Keep some of the rows, in this order: later findings are about these."""
        owners = self.owners
        self.numbers = self.numbers[rows]
        if owners is not None:
            self.owners = lambda row: owners(int(rows[row]))

    def refuse(self, name: str) -> None:
        """Raise a PanelError with all findings, if there are any."""
        if not self.findings:
            return
        count = "1 finding" if self.total == 1 else f"{self.total:,} findings"
        lines = [
            f"{name} cannot be used: {count}, and nothing was done with it.",
            *(f"  {finding}" for finding in self.findings[:MAX_FINDING_LINES]),
        ]
        if len(self.findings) > MAX_FINDING_LINES:
            lines.append(f"  and {len(self.findings) - MAX_FINDING_LINES:,} more of other columns or kinds")
        raise PanelError("\n".join(lines), findings=tuple(self.findings), field=name, hint=self._advise())

    def _advise(self) -> str:
        """Return what to do: name the place of the settings, and how rows are counted."""
        advice = [f"The settings stand {SETTINGS_PLACE}."] if self.needs_setting else []
        if any(finding.row for finding in self.findings):
            advice.append("Rows are counted from 1 below the header.")
        if not self.needs_setting:
            advice.append("Correct this at the source, then run again.")
        return " ".join(advice)


def _join_examples(column: str, rows: Sequence[tuple[int, str]], count: int, last: int) -> Finding:
    """Return one finding for many rows of one kind: the first few, and the number of the others."""
    first, message = rows[0]
    others = "".join(f"; row {number}: {text}" for number, text in rows[1:])
    more = f"; and {count - len(rows):,} more rows like these, the last is row {last}"
    return Finding(first, column, f"{message}{others}{more}")


def quote_cell(cell: object) -> str:
    """Return a cell as a message shows it: quoted, and cut where it is long."""
    text = str(cell)
    return repr(text if len(text) <= MAX_CELL_LENGTH else f"{text[:MAX_CELL_LENGTH]}...")


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
