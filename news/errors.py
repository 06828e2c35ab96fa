"""What can be wrong with texts and with the shelf that holds them.

MarketError
└── NewsError          something about texts is not as it must be
    ├── NewsFileError  a file of texts cannot be used; carries every finding at once
    └── ShelfError     the shelf cannot be used, or what is asked of it cannot be answered
"""

from __future__ import annotations

from dataclasses import dataclass

from ..market import MarketError

__all__ = ["NewsError", "NewsFileError", "NewsFinding", "ShelfError"]


class NewsError(MarketError):
    """Says that texts cannot be used."""

    code: str = "news"


@dataclass(frozen=True)
class NewsFinding:
    """One thing that is wrong in a file of texts.

    `record` counts from 1 in the file; 0 means the file as a whole. `got` is cut to what a person wants to see.
    """

    file: str
    record: int
    field: str
    message: str
    got: str = ""
    allowed: str = ""
    hint: str = ""

    def __str__(self) -> str:
        """Return the finding as a person reads it."""
        place = ", ".join(part for part in (f"record {self.record}" if self.record else "", self.field) if part)
        said = f"{place}: {self.message}" if place else self.message
        said += f" (got {self.got!r})" if self.got else ""
        said += f"; allowed: {self.allowed}" if self.allowed else ""
        return f"{said}. {self.hint}" if self.hint else said


class NewsFileError(NewsError):
    """Says that a file of texts cannot be used, with every finding at once."""

    code: str = "news_file"

    def __init__(
        self, message: str = "", *, findings: tuple[NewsFinding, ...] = (), field: str = "", hint: str = ""
    ) -> None:
        """Keep the findings beside the message."""
        self.findings = findings
        super().__init__(message, field=field, hint=hint)

    def record(self) -> dict[str, object]:
        """Return the error with one entry for each finding."""
        return super().record() | {"findings": [vars(finding) for finding in self.findings]}


class ShelfError(NewsError):
    """Says that the shelf cannot be used, or that what is asked of it cannot be answered."""

    code: str = "shelf"
