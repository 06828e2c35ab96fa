"""What can go wrong in the market room.

AlphaloomError
└── MarketError     something about prices or about the synthetic market is not as it must be
    └── PanelError  a panel or its files cannot be used; carries every finding at once
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..ledger import AlphaloomError

MAX_SHOWN_PER_KIND = 20


class MarketError(AlphaloomError):
    """Says that prices, or the settings of the synthetic market, cannot be used."""

    code: str = "market"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong in a file: 1-based data row (0 means the whole file or column), column, and what."""

    row: int
    column: str
    message: str

    def __str__(self) -> str:
        """Return the finding as a person reads it."""
        place = ", ".join(part for part in (f"row {self.row}" if self.row else "", self.column) if part)
        return f"{place}: {self.message}" if place else self.message


class PanelError(MarketError):
    """Says that a panel or its files cannot be used, with every finding at once."""

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
    """Refuse a file of prices or sectors that is not there; the command line asks before anything heavy is imported."""
    if not path.exists():
        hint = "Check the path: on the command line it starts from where you are, in a campaign file from that file's folder."
        raise unusable_error(path, "there is no such file", hint)
