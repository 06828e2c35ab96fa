"""What an error of SQLite or of the system means for a person."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import UnknownRun, WorkspaceError


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Say what SQLite's or the system's error means for a person."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        if "FOREIGN KEY" not in str(error):
            raise
        raise unstarted_run_error() from error
    except (sqlite3.DatabaseError, OSError) as error:
        raise workspace_error(path, error) from error


def unstarted_run_error() -> UnknownRun:
    """Return the error that says that a run must begin before it records anything."""
    return UnknownRun("a record names a run that was never started", hint="Call start_run before recording.")


def workspace_error(path: Path, error: Exception) -> WorkspaceError:
    """Return the error that a person understands."""
    said = str(error).lower()
    for marks, message, hint in _FILE_REFUSALS:
        if any(mark in said for mark in marks):
            told = WorkspaceError(message.format(path=path), field="workspace", hint=hint)
            told.placeless = message.format(path="the workspace")
            return told
    if isinstance(error, sqlite3.ProgrammingError):
        return WorkspaceError(f"the ledger {path} is closed or misused: {error}", field="workspace")
    return WorkspaceError(f"cannot use {path}: {error}", field="workspace", hint=_ELSEWHERE)


_ELSEWHERE = "Choose another folder with --workspace."
_FILE_REFUSALS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("disk is full", "no space left", "quota exceeded", "file too large"),
        "no space is left for {path}; what was recorded before is safe",
        "Free some space and resume, or choose another folder with --workspace.",
    ),
    (
        ("readonly", "read-only", "permission denied", "not permitted", "unable to open"),
        "cannot write to {path}",
        "Make the folder writable, or choose another one with --workspace.",
    ),
    (("not a directory", "file exists"), "{path} is not in a folder: a file is in the way", _ELSEWHERE),
    (
        ("not a database", "malformed"),
        "{path} is damaged, or is no ledger",
        "Restore it from a copy, or choose another folder with --workspace.",
    ),
    (
        ("locked", "busy"),
        "another process holds {path} for too long",
        "Wait for it or stop it, then try again.",
    ),
)
