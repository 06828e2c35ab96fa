"""The errors of this room, and how they are written for a person.

AlphaloomError
└── FactorError                the base of this room; codes unknown_operator and not_a_formula
    ├── ParseError             a formula that cannot be read, or whose units or days are wrong; `stage` says which
    └── PanelLacksField        a formula reads a column or grouping that the panel does not have
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from ..ledger import AlphaloomError

MAX_COLUMNS_SHOWN = 100
"""Columns of a formula that are shown around a caret."""


class FactorError(AlphaloomError):
    """The base of the errors of this room."""

    code = "factor"


class ParseError(FactorError):
    """A formula was refused, at a place, for a reason.

    Parameters
    ----------
    message : str
        What is wrong, in one sentence.
    at : int
        0-based column of the mistake.
    text : str
        The formula.
    stage : str
        ``parse`` (grammar, names, arguments), ``types`` (units), ``causal`` (reads the future), ``dialect`` (cannot be
        carried from one language to the other) or ``python`` (code that is no factor).
    hint : str
        How to mend it: the signature and an example, or the nearest name.
    """

    code: str = "formula"
    exit_code: int = 2

    def __init__(self, message: str, *, at: int = 0, text: str = "", stage: str = "parse", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.at = at
        self.text = text
        self.stage = stage
        self.others: tuple[ParseError, ...] = ()
        """Further mistakes of the same formula, by place."""

    @property
    def mistakes(self) -> tuple[ParseError, ...]:
        """Return this mistake and the further ones of the same formula."""
        return self, *self.others

    def caret(self) -> str:
        """Return the formula with a caret under the place, cut around it where it is long; empty without a formula."""
        if not self.text:
            return ""
        start = max(0, min(self.at - MAX_COLUMNS_SHOWN // 2, len(self.text) - MAX_COLUMNS_SHOWN))
        stop = start + MAX_COLUMNS_SHOWN
        before, after = ("..." if start else ""), ("..." if stop < len(self.text) else "")
        line = "".join(" " if mark.isspace() else mark for mark in self.text[start:stop])
        return f"{before}{line}{after}\n{' ' * (len(before) + self.at - start)}^"

    def __str__(self) -> str:
        """Return the message, the formula with its caret, and the hint."""
        parts = [self.message, self.caret(), self.hint]
        return "\n".join(part for part in parts if part)

    def record(self) -> dict[str, object]:
        """Return the error as a JSON-able object, with its place and stage, and every mistake of the formula."""
        lessons = [mistake.lesson() for mistake in self.mistakes]
        return super().record() | {"at": self.at, "stage": self.stage, "got": self.text, "errors": lessons}

    def lesson(self) -> dict[str, object]:
        """Return place, reason and remedy of this one mistake as a JSON-able object."""
        return {"at": self.at, "message": self.message, "hint": self.hint, "stage": self.stage}


class PanelLacksField(FactorError):
    """The panel has no such column or grouping."""

    code = "panel_lacks_field"


def nearest_name(name: str, names: Iterable[str]) -> str:
    """Return the known name with the closest spelling, or an empty string."""
    by_lower_case = {known.lower(): known for known in names}
    matches = difflib.get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.6)
    return by_lower_case[matches[0]] if matches else ""
