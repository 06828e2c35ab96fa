"""What can go wrong at the desk.

AlphaloomError
└── DeskError          a command cannot be carried out; its code says why
    └── ReportError    a run's results cannot be read, or the report cannot be written
"""

from __future__ import annotations

from ..ledger import AlphaloomError


class DeskError(AlphaloomError):
    """A command cannot do what it was asked to; the `code` says what is wrong."""

    code = "desk"


class ReportError(DeskError):
    """A run's results cannot be read, or the report cannot be written."""

    code = "report"
