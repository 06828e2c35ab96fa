"""What can go wrong with texts and with the store that keeps them.

MarketError
└── NewsError          texts cannot be used
    ├── NewsFileError  a file of texts cannot be used; carries every finding at once
    └── NewsStoreError the store cannot be used, or a question to it cannot be answered
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from ..market import MAX_SHOWN_PER_KIND, MarketError

MAX_VALUE_CHARS_SHOWN = 80


class NewsError(MarketError):
    """Texts cannot be used."""

    code: str = "news"


@dataclass(frozen=True)
class NewsFinding:
    """One mistake in a file of texts.

    `record` counts from 1 in the file; 0 means the file as a whole. `got` is cut to `MAX_VALUE_CHARS_SHOWN`.
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
        text = f"{place}: {self.message}" if place else self.message
        text += f" (got {self.got!r})" if self.got else ""
        text += f"; allowed: {self.allowed}" if self.allowed else ""
        return f"{text}. {self.hint}" if self.hint else text


class NewsFileError(NewsError):
    """A file of texts cannot be used; `findings` holds every reason."""

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


class NewsStoreError(NewsError):
    """The store cannot be used, or a question to it cannot be answered."""

    code: str = "shelf"


@dataclass
class Findings:
    """Collect the findings of a file and raise them as one error."""

    file: str
    findings: list[NewsFinding] = field(default_factory=list)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, record: int, name: str, message: str, got: object = "", allowed: str = "", hint: str = "") -> None:
        """Add one finding."""
        kind = (name, message)
        self.counts[kind] += 1
        if self.counts[kind] <= MAX_SHOWN_PER_KIND:
            shown = str(got)
            shown = shown if len(shown) <= MAX_VALUE_CHARS_SHOWN else f"{shown[: MAX_VALUE_CHARS_SHOWN - 3]}..."
            self.findings.append(NewsFinding(self.file, record, name, message, shown, allowed, hint))

    def refuse(self, path: Path) -> None:
        """Raise a NewsFileError with all findings, if there are any."""
        if not self.findings:
            return
        total = self.counts.total()
        others = [
            f"  {name}: and {count - MAX_SHOWN_PER_KIND:,} more records where {message}"
            for (name, message), count in self.counts.items()
            if count > MAX_SHOWN_PER_KIND
        ]
        count_text = "1 finding" if total == 1 else f"{total:,} findings"
        lines = [
            f"{path} cannot be used: {count_text}, and nothing was done with it.",
            *(f"  {finding}" for finding in self.findings),
            *others,
        ]
        hint = "Records are counted from 1. Correct or drop them at the source, then run again."
        raise NewsFileError("\n".join(lines), findings=tuple(self.findings), field=str(path), hint=hint)
