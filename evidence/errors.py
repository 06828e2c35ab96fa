"""What can go wrong between a formula and a verdict.

AlphaloomError
└── EvidenceError          base of the room, and of portfolio, library, search and evaluation; `code` says what is wrong
    ├── LibraryFileError   a library file cannot be read, or has invalid contents
    ├── LibraryRefused     the library does not take a factor in, or cannot do what a person asks
    ├── PythonRefused      the code of a Python factor failed, gave no values, or saw later days; `stage` says which
    │   └── OverLimits     it took more time or memory than a call may use
    ├── NeedsSandbox       a Python factor is to be computed, and nothing here can contain it
    ├── ReviewRefused      a person's decision on a case cannot stand: decided already, unknown, or without words
    ├── RunHalted          a run rests and can be resumed: `paused` for approval, or `stopped` by a person
    ├── TrialsSpent        the campaign's budget of trials is used up
    └── BookUnavailable    vectorbt is not installed

Codes of `EvidenceError` itself: `too_few_days` and `too_few_names` (the panel is too short or too narrow),
`boundary_conflict` (windows fixed earlier, on data with the same days and names, do not fit), `other_stream` (another
significance level than that of the trials on this data), `unknown_factor` (an id that was never scored here),
`panel_disagrees` (a panel gives other values for days on which the library was watched).
"""

from __future__ import annotations

from ..ledger import AlphaloomError


class EvidenceError(AlphaloomError):
    """Base of the evidence room."""

    code: str = "evidence"


class LibraryFileError(EvidenceError):
    """A library file that cannot be used."""

    code: str = "library_file"


class LibraryRefused(EvidenceError):
    """The library does not take a factor in, or cannot do what a person asks."""

    code: str = "library_refused"
    exit_code: int = 1


class PythonRefused(EvidenceError):
    """The sandbox refused the code of a Python factor.

    Parameters
    ----------
    stage : str
        ``causal`` where a value changed with later days, or from one call to the next; ``python`` for everything else.
    ran : bool
        False where the code was refused for what was read in it, so that no line of it ran.
    """

    code: str = "python_factor"
    exit_code: int = 1

    def __init__(
        self,
        message: str,
        *,
        stage: str = "python",
        field: str = "",
        allowed: object = None,
        hint: str = "",
        ran: bool = True,
    ) -> None:
        super().__init__(message, field=field, allowed=allowed, hint=hint)
        self.stage, self.ran = stage, ran


class OverLimits(PythonRefused):
    """The code took more time or memory than a call may use; another time it may not."""


class NeedsSandbox(EvidenceError):
    """A Python factor is to be computed, and nothing here can contain it."""

    code: str = "needs_sandbox"
    exit_code: int = 3


class TrialsSpent(EvidenceError):
    """No trial is left in the campaign's budget."""

    code: str = "trials_spent"
    exit_code: int = 4


class BookUnavailable(EvidenceError):
    """The book cannot be backtested because vectorbt is missing."""

    code: str = "book_unavailable"
    exit_code: int = 3


class ReviewRefused(EvidenceError):
    """A person's decision on a case cannot stand."""

    code: str = "review_refused"
    exit_code: int = 1


class RunHalted(EvidenceError):
    """A run rests with everything on the disk and can be resumed; `code` is `paused` or `stopped`."""

    code: str = "halted"
