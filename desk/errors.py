"""What can go wrong at the desk, and any error as JSON.

AlphaloomError
└── DeskError          a command cannot be carried out; its code says why
    └── ReportError    a run's results cannot be read, or the report cannot be written
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

from ..ledger import AlphaloomError

EXIT_REFUSED, EXIT_USAGE, EXIT_MISSING, EXIT_BUDGET_ENDED, EXIT_INTERRUPTED = 1, 2, 3, 4, 130
SYSTEM_HINTS = {
    errno.ENOSPC: "The disk is full: free some space, then go on with: alphaloom resume latest",
    errno.EDQUOT: "The disk quota is used up: free some space, then go on with: alphaloom resume latest",
    errno.EROFS: "This place is read-only: choose another with --workspace DIR",
    errno.EACCES: "Permission is missing: choose another place with --workspace DIR, or change the permissions",
    errno.EPERM: "Permission is missing: choose another place with --workspace DIR, or change the permissions",
    errno.EADDRINUSE: "Another program listens there: stop it, or choose another port",
    errno.EMFILE: "Too many files are open: raise the limit with ulimit -n",
    errno.ENOENT: "Check the path",
    errno.EISDIR: "A file was expected there",
    errno.ENOTDIR: "A folder was expected there",
}
ErrorRecord = dict[str, Any]


class DeskError(AlphaloomError):
    """A command cannot do what it was asked to; the `code` says what is wrong."""

    code = "desk"


class ReportError(DeskError):
    """A run's results cannot be read, or the report cannot be written."""

    code = "report"


def describe_error(error: Any) -> tuple[ErrorRecord, int]:
    """Return any error as JSON, and its exit code; the trace of an internal error goes into a file."""
    if isinstance(error, AlphaloomError):
        return dict(error.record()), error.exit_code
    if _is_own_error(error):
        return dict(error.record()), int(error.exit_code)
    if hasattr(error, "format_message"):
        path = getattr(getattr(error, "ctx", None), "command_path", None) or "alphaloom"
        return make_record(
            "usage", _reword_usage(str(error.format_message())), f"{path} --help lists what can be given."
        ), EXIT_USAGE
    hint = getattr(error, "hint", "") or (isinstance(error, OSError) and SYSTEM_HINTS.get(error.errno or 0))
    if isinstance(error, OSError) and hint:
        place = f": {error.filename}" if error.filename else ""
        return make_record("system", f"{error.strerror}{place}", hint, field=error.filename), EXIT_USAGE
    if isinstance(error, MemoryError):
        return make_record("memory", "This machine has too little memory for it.", "Use a smaller panel."), EXIT_MISSING
    return build_internal_record(error), EXIT_REFUSED


def _is_own_error(error: Any) -> bool:
    """Return whether an error describes itself; the sandbox imports no other room, so its errors have another base."""
    return callable(getattr(error, "record", None)) and hasattr(error, "exit_code")


def _reword_usage(message: str) -> str:
    """Reword the parser's message about a refused option: without pydantic's prefix and strptime's format."""
    message = message.replace(": Value error, ", ": ")
    return message.replace("does not match the formats '%Y-%m-%d'", "is not a day of the calendar, such as 2017-12-29")


def make_record(code: str, message: str, hint: str, *, field: object = None) -> ErrorRecord:
    """Return the JSON of an error that is no `AlphaloomError`."""
    return {"code": code, "field": str(field or ""), "got": None, "allowed": None, "hint": hint, "message": message}


def build_internal_record(error: BaseException) -> ErrorRecord:
    """Describe an internal error in one line; the stack goes into a file."""
    summary = f"{type(error).__name__}: {error}".strip().partition("\n")[0]
    path = _keep_details(error)
    where = f"The details were written to {path}" if path else "The details could not be written anywhere."
    return make_record("internal", f"internal error: {summary}", where)


def _keep_details(error: BaseException) -> Path | None:
    import traceback

    return save_stack("".join(traceback.format_exception(error)))


def save_stack(stack: str) -> Path | None:
    """Write a stack into a new file that only its owner can read; None if nothing can be written."""
    import tempfile

    try:
        handle, name = tempfile.mkstemp(prefix="alphaloom-crash-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(stack)
    except OSError:
        return None
    return Path(name)
