"""YAML files that say who may do what: read only if no other account may read them."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from pydantic import BaseModel

from ...ledger import Mistake, SettingsError
from ...ledger.files import mistakes_error, open_given, parse_settings

M = TypeVar("M", bound=BaseModel)


class FileSignature(NamedTuple):
    """Metadata that differs after a file was changed or replaced."""

    modified: int
    changed: int
    size: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileSignature:
        """Return the signature of a file's status."""
        return cls(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def read_guarded(
    path: Path, model: type[M], redact: Callable[[Mistake], Mistake], missing: SettingsError
) -> tuple[M, FileSignature]:
    """Read a file of secrets or rights.

    Raises
    ------
    SettingsError
        `missing` where there is no file; else with every mistake: access by other users, unknown keys, wrong values.
        `redact` takes out of a mistake what may be a secret in a wrong place.
    """
    try:
        with open_given(path) as file:
            status = os.fstat(file.fileno())
            body = file.read().decode()
    except FileNotFoundError:
        raise missing from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read {path}: {error}", field=str(path)) from None
    mistakes, settings = find_exposure(status), None
    try:
        settings = parse_settings(body, model, str(path))
    except SettingsError as error:
        mistakes += error.mistakes or (Mistake("", error.message),)
    if settings is None or mistakes:
        raise mistakes_error(str(path), [redact(mistake) for mistake in mistakes])
    return settings, FileSignature.of(status)


def find_exposure(status: os.stat_result) -> tuple[Mistake, ...]:
    """Return the mistakes in the file's owner and mode; none on Windows, which has no such mode."""
    if sys.platform == "win32":
        return ()
    mistakes = []
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        mistakes.append(
            Mistake("", f"others may use this file (mode {mode:04o}): chmod 600", None, f"{mode:04o}", "0600")
        )
    if status.st_uid not in (0, os.geteuid()):
        mistakes.append(Mistake("", "this file belongs to another user", None, status.st_uid, os.geteuid()))
    return tuple(mistakes)


def lock_path(path: Path) -> Path:
    """Return the path of the lock, which is beside the file, since each write replaces the file itself."""
    return path.with_name(f"{path.name}.lock")
