"""What can go wrong between a formula and a verdict.

AlphaloomError
└── EvidenceError          base of the room
    ├── TooFewDays         the panel is shorter than its windows need
    ├── TooFewNames        no day has enough names for a rank correlation
    ├── BoundaryConflict   another data set with the same days and names has fixed other windows
    ├── OtherStream        a campaign asks for another level than the trials on its data were judged at
    ├── UnknownFactor      an id that was never scored in this campaign
    ├── PanelDisagrees     a panel tells other values of days on which the library was watched
    ├── LibraryFileError   a library file that cannot be read, or holds what it should not
    ├── LibraryRefused     what the library does not take in, or cannot do
    ├── PythonRefused      the code of a Python factor failed, gave no values, or saw later days; `stage` says which
    │   └── OverLimits     it took more time or memory than a call may use
    ├── NeedsSandbox       a Python factor is to be computed, and nothing here can contain it
    ├── ReviewRefused      a person's decision on a case cannot stand: decided already, unknown, or without words
    ├── RunHalted          a run rests, and can be gone on with
    │   ├── RunPaused      factors wait for a person's approval
    │   └── RunStopped     a person asked it to stop
    ├── TrialsSpent        the campaign's budget of looks at the selection window is used up
    └── BookUnavailable    vectorbt is not installed
"""

from __future__ import annotations

from ..ledger import AlphaloomError


class EvidenceError(AlphaloomError):
    """Base of the evidence room."""

    code: str = "evidence"


class TooFewDays(EvidenceError):
    """The panel is shorter than its three windows need."""

    code: str = "too_few_days"


class TooFewNames(EvidenceError):
    """No day of the search window has enough labelled names."""

    code: str = "too_few_names"


class BoundaryConflict(EvidenceError):
    """Windows fixed earlier, on data with the same days and names, do not fit this panel."""

    code: str = "boundary_conflict"
    exit_code: int = 1


class OtherStream(EvidenceError):
    """A campaign asks for another level than the trials on its data were judged at: one stream has one level."""

    code: str = "other_stream"
    exit_code: int = 1


class UnknownFactor(EvidenceError):
    """A factor id that has no evaluation in this campaign."""

    code: str = "unknown_factor"


class PanelDisagrees(EvidenceError):
    """A panel tells other values of days that were seen before."""

    code: str = "panel_disagrees"
    exit_code: int = 1


class LibraryFileError(EvidenceError):
    """A library file that cannot be used."""

    code: str = "library_file"


class LibraryRefused(EvidenceError):
    """What the library does not take in, or cannot do."""

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
        self, message: str, *, stage: str = "python", field: str = "", allowed: object = None, hint: str = "",
        ran: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(message, field=field, allowed=allowed, hint=hint)
        self.stage, self.ran = stage, ran


class OverLimits(PythonRefused):
    """The code took more time or memory than a call may use; another time it may not."""


class NeedsSandbox(EvidenceError):
    """A Python factor is to be computed, and nothing here can contain it."""

    code: str = "needs_sandbox"
    exit_code: int = 3


class TrialsSpent(EvidenceError):
    """No look at the selection window is left in the campaign's budget."""

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
    """A run rests with everything on the disk, and can be gone on with; no mistake of anybody's."""

    code: str = "halted"


class RunPaused(RunHalted):
    """Factors wait for a person's approval."""

    code: str = "paused"
    exit_code: int = 0


class RunStopped(RunHalted):
    """A person asked the run to stop."""

    code: str = "stopped"
    exit_code: int = 130
