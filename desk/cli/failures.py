"""Errors on the command line: reported in words, never as a stack trace."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..errors import EXIT_INTERRUPTED, ErrorRecord, build_internal_record, describe_error, make_record, save_stack
from .console import mask_unprintable, print_object, stderr_console

if TYPE_CHECKING:
    import logging

    from rich.text import Text


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
        print_object(make_record("interrupted", "interrupted", ""))
    else:
        stderr_console().print("interrupted")
    return EXIT_INTERRUPTED


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
    record = build_internal_record(error)
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
            path = save_stack(stack)
            summary = mask_unprintable(stack.strip().rpartition("\n")[2])
            return f"{message}: {summary}" + (f" (details: {path})" if path else "")

    return OneLine()


def _print_block(record: ErrorRecord, caret: Any) -> None:
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


def _build_lines(record: ErrorRecord, message: str) -> list[Text]:
    from rich.text import Text

    from ..figures import any_value

    facts = [
        (name, any_value(record[name])) for name in ("field", "got", "allowed") if record.get(name) not in (None, "")
    ]
    lines = [Text.assemble((f"  {name:<8} ", "dim"), value) for name, value in facts if value not in message]
    return lines + ([Text.assemble(("  hint     ", "dim"), str(record["hint"]))] if record.get("hint") else [])
