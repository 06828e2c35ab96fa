"""The errors of the package and of this room, and how they are written for a person.

AlphaloomError                 the base of every error a user can see, in all rooms
├── SettingsError              a settings file or a `--set` that cannot be used; carries every mistake at once
└── LedgerError                the base of this room
    ├── WorkspaceError         the folder cannot be used: read-only, full, not a folder, damaged, too new
    │   ├── AddressError       the address of a database cannot be used, or the server refuses the user
    │   ├── ServerError        no database server answers, or its driver is not installed
    │   └── CallsUnwritable    tool calls cannot be recorded, so none may be answered
    ├── NoteError              a signed note, a key or a proof cannot be read, or its signature does not hold
    ├── WitnessRefusal         this desk does not sign the checkpoint of another one
    ├── CallsDamaged           the record of tool calls was changed, or a part of it is gone
    ├── ChangedFile            a file of a run is not the one whose digest was recorded
    ├── RunLocked              another process is working on this run
    ├── UnknownRun             no run of this workspace has that name
    ├── UnknownRecord          nothing on record, or more than one thing, has that name
    ├── LedgerConflict         a second, different record under a key that is taken
    └── DamagedObject          a stored file is gone or is not what its name says
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


class AlphaloomError(Exception):
    """An error that names the field, the value, what is allowed and what to do.

    Parameters
    ----------
    message : str
        What is wrong, in one sentence.
    field : str
        Dotted name of the setting, argument, column or file that is wrong; empty if none is.
    got : object
        The offending value; None if there is none worth showing.
    allowed : object
        What would have been accepted: a sentence, or a list of values.
    hint : str
        What the user can do now.
    code : str
        The name of the error, for programs; by default that of the class. Errors that some caller catches have a class
        of their own, all others only a code.
    exit_code : int
        Exit code of the command line; by default that of the class.
    """

    code: str = "error"
    exit_code: int = 2
    """0 is never an error; 1 refused, 2 bad input, 3 a capability is missing, 4 a budget ended."""

    def __init__(  # noqa: PLR0913 - the parts of a message to a person
        self,
        message: str = "",
        *,
        field: str = "",
        got: object = None,
        allowed: object = None,
        hint: str = "",
        code: str = "",
        exit_code: int | None = None,
    ) -> None:
        super().__init__(message)
        if code:
            self.code = code
        if exit_code is not None:
            self.exit_code = exit_code
        self.message = message
        self.field = field
        self.got = got
        self.allowed = allowed
        self.hint = hint

    def __str__(self) -> str:
        """Return one readable line, or a paragraph where the message is one."""
        text = self.message or self.code.replace("_", " ")
        if self.field and self.field not in text:
            text = f"{self.field}: {text}"
        if self.got is not None and format_value(self.got) not in text:
            text += f" (got {format_value(self.got)})"
        if self.allowed is not None:
            text += f"; allowed: {format_value(self.allowed)}"
        return f"{text}\n{self.hint}" if self.hint else text

    def record(self) -> dict[str, object]:
        """Return the error as a JSON-able object."""
        return {
            "code": self.code,
            "field": self.field,
            "got": to_json_value(self.got),
            "allowed": to_json_value(self.allowed),
            "hint": self.hint,
            "message": self.message,
        }


@dataclass(frozen=True)
class Mistake:
    """One mistake in the settings: its place, the message, and the allowed values."""

    field: str
    message: str
    line: int | None = None
    got: object = None
    allowed: object = None

    def __str__(self) -> str:
        """Return the line, the field and the message."""
        where = f"line {self.line}, " if self.line is not None else ""
        return f"{where}{self.field}: {self.message}" if self.field else f"{where}{self.message}"


class SettingsError(AlphaloomError):
    """The settings cannot be used; `mistakes` holds every reason."""

    code = "settings"

    def __init__(self, message: str = "", *, mistakes: Sequence[Mistake] = (), field: str = "", hint: str = "") -> None:
        super().__init__(message, field=field, hint=hint)
        self.mistakes = tuple(mistakes)
        if len(self.mistakes) == 1:
            (only,) = self.mistakes
            self.field, self.got, self.allowed = only.field, only.got, only.allowed

    def __str__(self) -> str:
        """Return the message, which holds each mistake on a line of its own."""
        return f"{self.message}\n{self.hint}" if self.hint else self.message

    def record(self) -> dict[str, object]:
        """Return the error with one entry for each mistake."""
        return super().record() | {"mistakes": [to_json_value(asdict(mistake)) for mistake in self.mistakes]}


class LedgerError(AlphaloomError):
    """The base of the errors of the ledger."""

    code = "ledger"


class WorkspaceError(LedgerError):
    """The workspace folder cannot be used; `placeless` is the message without its path, for outside callers."""

    code = "workspace"
    placeless = "the workspace cannot be used"


class AddressError(WorkspaceError):
    """The address of a database cannot be used, or the server refuses the user; no secret is repeated."""

    code = "ledger_address"
    placeless = "the record's database refuses this campaign"


class ServerError(WorkspaceError):
    """No database server answers, or its driver is not installed."""

    code = "ledger_server"
    exit_code = 3
    placeless = "the record's database does not answer"


class CallsUnwritable(WorkspaceError):
    """Tool calls cannot be recorded, so none may be answered."""

    code = "calls_unwritable"
    placeless = "calls cannot be recorded now, so none is answered"


class CallsDamaged(LedgerError):
    """The record of tool calls was changed, or a part of it is gone."""

    code = "calls_damaged"
    exit_code = 1


class ChangedFile(LedgerError):
    """A file of a run is not the one whose digest the ledger recorded."""

    code = "changed_file"
    exit_code = 1


class RunLocked(LedgerError):
    """Another process is working on this run."""

    code = "run_locked"
    exit_code = 1


class UnknownRun(LedgerError):
    """No run of this workspace has that name."""

    code = "unknown_run"


class UnknownRecord(LedgerError):
    """Nothing on record, or more than one thing, has that name."""

    code = "unknown_record"


class LedgerConflict(LedgerError):
    """A record differs from the one that was stored under its key."""

    code = "ledger_conflict"
    exit_code = 1


class DamagedObject(LedgerError):
    """A stored file is gone, or its bytes do not hash to its name."""

    code = "damaged_object"
    exit_code = 1


def changed_file(run: str, path: Path, original: Path | None) -> ChangedFile:
    """Return the error for a file that is gone or was changed since it was recorded."""
    what = "is not the file that the ledger recorded" if path.is_file() else "is gone"
    remedy = f": copy {original} over it" if original else ", in its table of objects"
    return ChangedFile(
        f"{path.name} of run {run} {what}",
        field="run",
        got=str(path),
        hint=f"The ledger keeps the recorded one{remedy}. What else differs: alphaloom evidence verify {run}",
    )


def format_value(value: object) -> str:
    """Return a value as a person wants to read it: lists without brackets, long things cut."""
    if isinstance(value, str):
        return value if len(value) <= 200 else value[:197] + "..."
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(format_value(item) for item in value)
    return format_value(repr(value))


def to_json_value(value: object) -> object:
    """Return a value as JSON can carry it; anything else as its text."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        if isinstance(value, dict):
            return {str(key): to_json_value(item) for key, item in value.items()}
        return (
            [to_json_value(item) for item in value] if isinstance(value, list | tuple | set | frozenset) else str(value)
        )
