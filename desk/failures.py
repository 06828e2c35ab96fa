"""How the command line says that something went wrong: in words, never as a stack trace."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .console import notices, print_object

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["BUDGET_ENDED", "INTERRUPTED", "announce"]

REFUSED, USAGE, MISSING, BUDGET_ENDED, INTERRUPTED = 1, 2, 3, 4, 130
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
Record = dict[str, Any]


def announce(error: BaseException, *, as_json: bool) -> int:
    """Print an error, as a block on standard error or as one object on standard output, and return the exit code."""
    record, code = _record(error)
    if as_json:
        print_object(record)
    else:
        _print_block(record, getattr(error, "caret", None))
        for other in getattr(error, "others", ()):  # further mistakes of the same formula
            _print_block(other.record(), other.caret)
    return code


def _record(error: Any) -> tuple[Record, int]:
    from ..ledger import AlphaloomError

    if isinstance(error, AlphaloomError):
        return dict(error.record()), error.exit_code
    if _speaks(error):
        return dict(error.record()), int(error.exit_code)
    if hasattr(error, "format_message"):
        path = getattr(getattr(error, "ctx", None), "command_path", None) or "alphaloom"
        return _plain("usage", str(error.format_message()), f"{path} --help lists what can be given."), USAGE
    if isinstance(error, OSError) and error.errno in SYSTEM_HINTS:
        place = f": {error.filename}" if error.filename else ""
        return _plain("system", f"{error.strerror}{place}", SYSTEM_HINTS[error.errno], field=error.filename), USAGE
    if isinstance(error, MemoryError):
        return _plain("memory", "This machine has too little memory for it.", "Use a smaller panel."), MISSING
    return _internal(error), REFUSED


def _speaks(error: Any) -> bool:
    """Tell whether an error describes itself as ours do; the sandbox knows no other room, so its errors stand alone."""
    return callable(getattr(error, "record", None)) and hasattr(error, "exit_code")


def _plain(code: str, message: str, hint: str, *, field: object = None) -> Record:
    return {"code": code, "field": str(field or ""), "got": None, "allowed": None, "hint": hint, "message": message}


def _internal(error: BaseException) -> Record:
    """Describe a mistake of ours in one line; the stack goes into a file."""
    what = f"{type(error).__name__}: {error}".strip().partition("\n")[0]
    kept = _keep_details(error)
    where = f"The details were written to {kept}" if kept else "The details could not be written anywhere."
    return _plain("internal", f"internal error: {what}", where)


def _keep_details(error: BaseException) -> Path | None:
    import tempfile
    import traceback

    try:
        handle, name = tempfile.mkstemp(prefix="alphaloom-crash-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines(traceback.format_exception(error))
    except OSError:
        return None
    return Path(name)


def _print_block(record: Record, caret: Any) -> None:
    from rich.text import Text

    console = notices()
    message = str(record["message"] or record["code"])
    if record["code"] == "usage" and message.startswith("Usage:"):
        console.print(Text(message), soft_wrap=True)  # a command without arguments shows its help
        return
    head = "" if message.startswith("internal error") else "error: "
    console.print(Text.assemble((head, "bold red"), message), soft_wrap=True)
    if callable(caret) and (shown := str(caret())):
        record = {**record, "got": None}  # it is what the caret points into
        console.print(Text(shown), soft_wrap=True)
    for line in _lines(record, message):
        console.print(line, soft_wrap=True)


def _lines(record: Record, message: str) -> list[Text]:
    from rich.text import Text

    from .figures import generic

    shown = [
        (name, generic(record[name])) for name in ("field", "got", "allowed") if record.get(name) not in (None, "")
    ]
    lines = [Text.assemble((f"  {name:<8} ", "dim"), value) for name, value in shown if value not in message]
    return lines + ([Text.assemble(("  hint     ", "dim"), str(record["hint"]))] if record.get("hint") else [])
