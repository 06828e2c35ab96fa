"""The errors of this room."""

from __future__ import annotations

from ..ledger import AlphaloomError


class ExecutionError(AlphaloomError):
    """An order, a limit, a session or a venue that cannot be used; `code` says which.

    A refusal of the order gate is a ruling, never an error.
    """

    code: str = "execution"
