"""What an audit has found so far, and the one error that says all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..errors import MAX_SHOWN_PER_KIND, Finding, PanelError


@dataclass
class Audit:
    """Collects findings: at most twenty of a kind in full, and a count of the others."""

    numbers: NDArray[np.int64]
    findings: list[Finding] = field(default_factory=list)
    total: int = 0

    def add(self, *findings: Finding) -> None:
        """Add findings about the file or a column as a whole."""
        self.findings.extend(findings)
        self.total += len(findings)

    def add_rows(self, column: str, bad: NDArray[np.intp], describe: Callable[[int], str]) -> None:
        """Add one finding for each bad row (0-based in the table); `describe` says what is wrong with it."""
        shown = bad[:MAX_SHOWN_PER_KIND].tolist()
        self.findings.extend(Finding(int(self.numbers[row]), column, describe(row)) for row in shown)
        self.total += len(bad)
        if len(bad) > MAX_SHOWN_PER_KIND:
            self.findings.append(_others(column, len(bad), int(self.numbers[bad[-1]])))

    def add_broken(self, broken: Sequence[Finding]) -> None:
        """Add rows that could not be read at all."""
        self.findings.extend(broken[:MAX_SHOWN_PER_KIND])
        self.total += len(broken)
        if len(broken) > MAX_SHOWN_PER_KIND:
            self.findings.append(_others("", len(broken), broken[-1].row))

    def refuse(self, name: str) -> None:
        """Raise a PanelError with all that was found, if anything was."""
        if not self.findings:
            return
        count = "1 finding" if self.total == 1 else f"{self.total:,} findings"
        lines = [f"{name} cannot be used: {count}, and nothing was done with it.", *(f"  {f}" for f in self.findings)]
        rows = "Rows are counted from 1 below the header. Correct or drop these rows at the source, then run again."
        whole = "This is wrong with the file, not with a row: mend it at the source, then run again."
        hint = rows if any(each.row for each in self.findings) else whole
        raise PanelError("\n".join(lines), findings=tuple(self.findings), field=name, hint=hint)


def _others(column: str, count: int, last: int) -> Finding:
    """Return the finding that stands for those not listed."""
    more = count - MAX_SHOWN_PER_KIND
    return Finding(0, column, f"and {more:,} more rows like these, the last is row {last}")
