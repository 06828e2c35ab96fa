"""Errors on the command line: reported in words, never as a stack trace."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .console import mask_unprintable, print_object, stderr_console

if TYPE_CHECKING:
    import logging

    from rich.text import Text


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
Record = dict[str, Any]


def announce(error: BaseException, *, as_json: bool) -> int:
    """Print an error, as a block on standard error or as one object on standard output, and return the exit code."""
    record, code = describe_error(error)
    if as_json:
        print_object(record)
    else:
        _print_block(record, getattr(error, "caret", None))
        for mistake in getattr(error, "others", ()):  # further mistakes of the same formula
            _print_block(mistake.record(), mistake.caret)
    return code


class InterruptionReported(Exception):
    """A command was interrupted and has already reported it with the next step."""


def report_interruption(*, as_json: bool) -> int:
    """Report that a command was interrupted, and return the exit code."""
    if as_json:
        print_object(_make_record("interrupted", "interrupted", ""))
    else:
        stderr_console().print("interrupted")
    return EXIT_INTERRUPTED


def describe_error(error: Any) -> tuple[Record, int]:
    """Return any error as JSON, and its exit code; the trace of an internal error goes into a file."""
    from ...ledger import AlphaloomError

    if isinstance(error, AlphaloomError):
        return dict(error.record()), error.exit_code
    if _is_own_error(error):
        return dict(error.record()), int(error.exit_code)
    if hasattr(error, "format_message"):
        path = getattr(getattr(error, "ctx", None), "command_path", None) or "alphaloom"
        return _make_record(
            "usage", _reword_usage(str(error.format_message())), f"{path} --help lists what can be given."
        ), EXIT_USAGE
    hint = getattr(error, "hint", "") or (isinstance(error, OSError) and SYSTEM_HINTS.get(error.errno or 0))
    if isinstance(error, OSError) and hint:
        place = f": {error.filename}" if error.filename else ""
        return _make_record("system", f"{error.strerror}{place}", hint, field=error.filename), EXIT_USAGE
    if isinstance(error, MemoryError):
        return _make_record(
            "memory", "This machine has too little memory for it.", "Use a smaller panel."
        ), EXIT_MISSING
    return _build_internal_record(error), EXIT_REFUSED


def _is_own_error(error: Any) -> bool:
    """Return whether an error describes itself; the sandbox imports no other room, so its errors have another base."""
    return callable(getattr(error, "record", None)) and hasattr(error, "exit_code")


def _reword_usage(message: str) -> str:
    """Reword the parser's message about a refused option: without pydantic's prefix and strptime's format."""
    message = message.replace(": Value error, ", ": ")
    return message.replace("does not match the formats '%Y-%m-%d'", "is not a day of the calendar, such as 2017-12-29")


def _make_record(code: str, message: str, hint: str, *, field: object = None) -> Record:
    return {"code": code, "field": str(field or ""), "got": None, "allowed": None, "hint": hint, "message": message}


def _build_internal_record(error: BaseException) -> Record:
    """Describe an internal error in one line; the stack goes into a file."""
    summary = f"{type(error).__name__}: {error}".strip().partition("\n")[0]
    path = _keep_details(error)
    where = f"The details were written to {path}" if path else "The details could not be written anywhere."
    return _make_record("internal", f"internal error: {summary}", where)


def quiet_traces() -> None:
    """Report errors in threads, finalisers and logs in one line each; their stacks go into files.

    Messages of loggers with a handler of their own are left to that handler.
    """
    import logging
    import threading

    sys.excepthook = lambda kind, error, _: _write_error_line(error)
    threading.excepthook = lambda failure: _write_error_line(failure.exc_value or failure.exc_type())
    sys.unraisablehook = lambda failure: _write_error_line(failure.exc_value or failure.exc_type())
    last = logging.StreamHandler()
    last.setLevel(logging.WARNING)
    last.setFormatter(_make_formatter())
    logging.lastResort = last


def _write_error_line(error: BaseException) -> None:
    """Write one line on an error outside any command; nothing if standard error is gone."""
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return
    record = _build_internal_record(error)
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(mask_unprintable(f"{record['message']}. {record['hint']}\n"))


def _make_formatter() -> logging.Formatter:
    """Return a formatter that writes a log record as one line, and its stack into a file."""
    import logging

    class OneLine(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            stack = record.exc_text or (self.formatException(record.exc_info) if record.exc_info else "")
            message = mask_unprintable(record.getMessage().strip().partition("\n")[0])
            if not stack:
                return message
            path = _save_stack(stack)
            summary = mask_unprintable(stack.strip().rpartition("\n")[2])
            return f"{message}: {summary}" + (f" (details: {path})" if path else "")

    return OneLine()


def _keep_details(error: BaseException) -> Path | None:
    import traceback

    return _save_stack("".join(traceback.format_exception(error)))


def _save_stack(stack: str) -> Path | None:
    """Write a stack into a new file that only its owner can read; None if nothing can be written."""
    import tempfile

    try:
        handle, name = tempfile.mkstemp(prefix="alphaloom-crash-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(stack)
    except OSError:
        return None
    return Path(name)


def _print_block(record: Record, caret: Any) -> None:
    from rich.text import Text

    console = stderr_console()
    message = str(record["message"] or record["code"])
    if record["code"] == "usage" and message.startswith("Usage:"):
        console.print(Text(message), soft_wrap=True)  # a command without arguments shows its help
        return
    head = "" if message.startswith("internal error") else "error: "
    console.print(Text.assemble((head, "bold red"), message), soft_wrap=True)
    if callable(caret) and (excerpt := str(caret())):
        record = {**record, "got": None}  # the caret's line shows it
        console.print(Text(excerpt), soft_wrap=True)
    for line in _build_lines(record, message):
        console.print(line, soft_wrap=True)


def _build_lines(record: Record, message: str) -> list[Text]:
    from rich.text import Text

    from ..figures import any_value

    facts = [
        (name, any_value(record[name])) for name in ("field", "got", "allowed") if record.get(name) not in (None, "")
    ]
    lines = [Text.assemble((f"  {name:<8} ", "dim"), value) for name, value in facts if value not in message]
    return lines + ([Text.assemble(("  hint     ", "dim"), str(record["hint"]))] if record.get("hint") else [])
