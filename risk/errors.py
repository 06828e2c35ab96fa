"""What can go wrong before a decision can be made at all; a refusal is a `Decision`, never an error.

AlphaloomError
└── RiskError          base of the room
    ├── SignalError    a field of a signal is not what its schema says
    ├── StateError     a field of the book's state is not what its schema says
    └── NotApproved    an `Approved` that the gate did not make
"""

from __future__ import annotations

from ..ledger import AlphaloomError


class RiskError(AlphaloomError):
    """Base of the risk room."""

    code: str = "risk"


class SignalError(RiskError):
    """A signal is malformed: a float, NaN, bool or text where a whole number belongs, or bounds out of order."""

    code: str = "signal"


class StateError(RiskError):
    """The state of the book is malformed, so nothing can be decided on it."""

    code: str = "book_state"


class NotApproved(RiskError):
    """Something tried to make or copy an `Approved` past the gate."""

    code: str = "not_approved"
    exit_code: int = 1
