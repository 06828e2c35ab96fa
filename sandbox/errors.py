"""What can go wrong when untrusted code runs in the jail.

SandboxError                   the base of this room, which imports no other room
├── BadInput                   an argument that cannot be used: a limit, an axis, a number of days; nothing was run
├── SandboxUnavailable         this machine lacks a primitive that the boundary needs; nothing was run
├── Busy                       the pool's queue is full; nothing was run
├── Refused                    the kernel refused what the code tried, or it is no text that could run
├── TimedOut                   the wall clock ran out
├── OutOfMemory                the memory limit was reached
├── Crashed                    the code raised, or its process ended without an answer
├── BadResult                  the answer is not one frame of float64 of the panel's shape, or holds an infinity
├── NotCausal                  a value changed when a later day was changed or cut off
└── NotDeterministic           two runs on the same panel gave different values
"""

from __future__ import annotations

from datetime import date
from typing import Any

__all__ = [
    "BadInput",
    "BadResult",
    "Busy",
    "Crashed",
    "NotCausal",
    "NotDeterministic",
    "OutOfMemory",
    "Refused",
    "SandboxError",
    "SandboxUnavailable",
    "TimedOut",
]


class SandboxError(Exception):
    """An error that names the field, the value, what is allowed and what to do.

    Parameters
    ----------
    message : str
        What is wrong, in one sentence.
    field, got, allowed, hint
        The offending part, its value, what would have been accepted, and what to do now.
    """

    code: str = "sandbox"
    exit_code: int = 1
    """1 refused, 2 bad input, 3 a capability is missing."""

    def __init__(
        self, message: str = "", *, field: str = "", got: object = None, allowed: object = None, hint: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.got = got
        self.allowed = allowed
        self.hint = hint

    def record(self) -> dict[str, Any]:
        """Return the error as plain JSON."""
        return {
            "code": self.code,
            "field": self.field,
            "got": _plain_value(self.got),
            "allowed": _plain_value(self.allowed),
            "hint": self.hint,
            "message": self.message,
        }


class BadInput(SandboxError):
    """An argument that cannot be used; `field` names it."""

    code: str = "bad_input"
    exit_code: int = 2


class SandboxUnavailable(SandboxError):
    """A primitive that the boundary needs is missing on this machine; `field` names it."""

    code: str = "sandbox_unavailable"
    exit_code: int = 3


class Busy(SandboxError):
    """The pool's queue is full."""

    code: str = "sandbox_busy"


class Refused(SandboxError):
    """The kernel refused what the code tried, or it is no text that could run."""

    code: str = "refused"


class TimedOut(SandboxError):
    """The wall clock ran out."""

    code: str = "timed_out"


class OutOfMemory(SandboxError):
    """The memory limit was reached."""

    code: str = "out_of_memory"


class Crashed(SandboxError):
    """The code raised an error, or its process ended without an answer."""

    code: str = "crashed"


class BadResult(SandboxError):
    """The answer is not one frame of float64 of the panel's shape, or holds an infinity."""

    code: str = "bad_result"


class NotCausal(SandboxError):
    """A value changed when a later day was changed or cut off.

    Attributes
    ----------
    day : datetime.date
        The first day whose value changed.
    symbol : str
        The first symbol, in the panel's order, whose value changed on that day.
    read : datetime.date or None
        The later day whose price made the difference, where it could be found.
    seed : int or None
        The seed with which a screen finds it again; None where no seed was involved.
    """

    code: str = "not_causal"

    def __init__(
        self, message: str, *, day: date, symbol: str, read: date | None = None, hint: str = "", seed: int | None = None
    ) -> None:
        super().__init__(message, field=symbol, got=day.isoformat(), hint=hint)
        self.day = day
        self.symbol = symbol
        self.read = read
        self.seed = seed

    def record(self) -> dict[str, Any]:
        """Return the error as plain JSON, with the days and the symbol."""
        read = None if self.read is None else self.read.isoformat()
        return {**super().record(), "day": self.day.isoformat(), "symbol": self.symbol, "read": read, "seed": self.seed}


class NotDeterministic(SandboxError):
    """Two runs on the same panel gave different values.

    Attributes
    ----------
    day : datetime.date
        The first day whose values differ.
    symbol : str
        The first symbol, in the panel's order, whose value differs on that day.
    """

    code: str = "not_deterministic"

    def __init__(self, message: str, *, day: date, symbol: str, hint: str = "") -> None:
        super().__init__(message, field=symbol, got=day.isoformat(), hint=hint)
        self.day = day
        self.symbol = symbol

    def record(self) -> dict[str, Any]:
        """Return the error as plain JSON, with the day and the symbol."""
        return {**super().record(), "day": self.day.isoformat(), "symbol": self.symbol}


def _plain_value(value: object) -> object:
    return value if isinstance(value, str | int | float | bool | list | None) else str(value)
