"""The one switch: a file that stops every order, read before each of them.

The file `HALTED` of a workspace stops all trading while it is there, whatever it says: also empty, damaged, or a
link to nothing. It is made before anything is written into it, since a full disk still takes a new empty file. Reading
fails closed: whatever cannot be read is a halt, and so is a workspace that is gone.

Only `release` takes the file away: it needs two persons and a reason, and first keeps both halves of the story in
`halts/`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from ..ledger import JSON
from .errors import ExecutionError

HALT_FILE: Final = "HALTED"
HALTS_FOLDER: Final = "halts"
MAX_HALT_BYTES: Final = 100_000
NO_REASON: Final = "the file says no reason"
UNREADABLE: Final = "the halt file cannot be read, so trading is halted"
FOLDER_GONE: Final = "the workspace is gone, so trading is halted"


@dataclass(frozen=True, slots=True)
class Halt:
    """A halt: who stopped trading, when (microseconds since 1970, 0 where it is not known), and why."""

    reason: str
    by: str = ""
    at_us: int = 0

    def record(self) -> dict[str, JSON]:
        """Return the halt as a JSON-able object."""
        return {"reason": self.reason, "by": self.by, "at_us": self.at_us}


class HaltSwitch:
    """The halt file of a workspace, for whoever sends orders: `is_set` costs two system calls.

    The folder is held open, so that a workspace that is moved away or deleted while orders are sent is noticed.

    Parameters
    ----------
    workspace
        The folder.
    find_other
        Returns why trading must stop although there is no file; the halt lasts as long as it is returned.

    Raises
    ------
    ExecutionError
        There is no such folder.
    """

    def __init__(self, workspace: Path, find_other: Callable[[], Halt | None] = lambda: None) -> None:
        self.workspace, self._find_other = workspace, find_other
        try:
            self._folder = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise ExecutionError(
                "There is no workspace whose trading could be halted.",
                field="--workspace",
                got=str(workspace),
                allowed="a folder with a record",
                hint="Name the workspace whose orders are to stop.",
                code="halt_workspace",
            ) from error

    def __enter__(self) -> Self:
        """Return the switch."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Let go of the folder."""
        self.close()

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self._folder)

    def is_set(self) -> bool:
        """Return whether trading is halted; True where that cannot be told."""
        try:
            os.lstat(HALT_FILE, dir_fd=self._folder)
        except FileNotFoundError:
            return self._is_gone()
        except OSError:
            return True
        return True

    def read(self) -> Halt | None:
        """Return the halt, or None where trading is not halted."""
        if not self.is_set():
            return self._find_other()
        if self._is_gone():
            return Halt(FOLDER_GONE)
        try:
            handle = os.open(HALT_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._folder)
            with open(handle, "rb") as stream:
                content = stream.read(MAX_HALT_BYTES)
        except OSError:
            return Halt(UNREADABLE)
        return _parse(content)

    def set(self, halt: Halt) -> Halt:
        """Halt trading, and return the halt that stands: the first one, where trading was halted before.

        The file is on the disk when this returns.

        Raises
        ------
        ExecutionError
            The file cannot be made: the message says how to make it by hand.
        """
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        try:
            handle = os.open(HALT_FILE, flags, 0o644, dir_fd=self._folder)
        except FileExistsError:
            with suppress(OSError):
                os.utime(HALT_FILE, dir_fd=self._folder, follow_symlinks=False)  # a release under way sees this
            return self.read() or halt
        except OSError as error:
            raise ExecutionError(
                f"Trading could not be halted: {error.strerror}.",
                field="--workspace",
                got=str(self.workspace),
                allowed="a folder in which a file can be made",
                hint=f"Make the file by hand, as someone who may: touch {self.workspace / HALT_FILE}",
                code="halt_not_written",
                exit_code=1,
            ) from error
        try:
            os.fsync(self._folder)  # the empty file halts already; what follows may fail on a full disk
            with suppress(OSError):
                os.write(handle, json.dumps(halt.record()).encode())
                os.fsync(handle)
        finally:
            os.close(handle)
        return halt

    def release(self, words: Halt, second: str) -> Halt:
        """Take the halt away, and return it; `words` says who releases it and why, `second` who agrees.

        Raises
        ------
        ExecutionError
            Trading is not halted, a reason or a person is missing, both persons are one, or somebody halted again
            meanwhile.
        """
        check_people(words, second)
        made = self._find_time()
        halt = self.read()
        if halt is None:
            raise ExecutionError("Trading is not halted.", field="--release", code="not_halted", exit_code=1)
        kept = {"halt": halt.record(), "released": {**words.record(), "second": second}}
        folder = self.workspace / HALTS_FOLDER
        folder.mkdir(exist_ok=True)
        story = folder / f"{words.at_us}.json"
        _write_synced(story, json.dumps(kept, sort_keys=True).encode() + b"\n")
        if self._find_time() != made:
            story.unlink()
            raise ExecutionError(
                "Trading was halted again while it was released.",
                field="--release",
                hint="It stays halted. Ask who did it, and why; then release that.",
                code="halted_again",
                exit_code=1,
            )
        os.unlink(HALT_FILE, dir_fd=self._folder)
        os.fsync(self._folder)
        return halt

    def _find_time(self) -> int:
        """Return when somebody halted last, in nanoseconds; 0 where nobody did."""
        try:
            return os.stat(HALT_FILE, dir_fd=self._folder, follow_symlinks=False).st_mtime_ns
        except OSError:
            return 0

    def _is_gone(self) -> bool:
        """Tell whether the folder was deleted, or another one stands in its place."""
        held = os.fstat(self._folder)
        try:
            named = os.stat(self.workspace)
        except OSError:
            return True
        return (held.st_dev, held.st_ino) != (named.st_dev, named.st_ino)


def check_people(words: Halt, second: str) -> None:
    """Refuse a release without a reason, or without two different persons.

    Raises
    ------
    ExecutionError
        With the field that is missing.
    """
    for field, text in (("--reason", words.reason), ("--by", words.by), ("--second", second)):
        if not text.strip():
            raise _release_error("To let trading go on takes a reason and two persons.", field, text, "a text")
    if second.strip().casefold() == words.by.strip().casefold():
        raise _release_error("To let trading go on takes a second person.", "--second", second, f"not {words.by}")


def list_releases(workspace: Path) -> list[dict[str, Any]]:
    """Return the halts that were released, the oldest first: each `halt` and how it was `released`."""
    files = sorted((workspace / HALTS_FOLDER).glob("*.json"), key=lambda path: (len(path.name), path.name))
    return [json.loads(path.read_bytes()) for path in files]


def _parse(content: bytes) -> Halt:
    """Return the halt that a file describes; a damaged file is a halt without a reason."""
    try:
        members = json.loads(content)
        reason, by, at_us = members["reason"], members["by"], members["at_us"]
    except (ValueError, KeyError, TypeError):
        return Halt(NO_REASON)
    fine = isinstance(reason, str) and isinstance(by, str) and type(at_us) is int
    return Halt(reason or NO_REASON, by, at_us) if fine else Halt(NO_REASON)


def _write_synced(path: Path, content: bytes) -> None:
    """Write a new file, and wait until it and its name are on the disk."""
    with open(path, "xb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _release_error(message: str, field: str, got: str, allowed: str) -> ExecutionError:
    hint = "What was stopped stays so. Say who releases it, who agrees, and why: --by NAME --second NAME --reason TEXT."
    return ExecutionError(message, field=field, got=got, allowed=allowed, hint=hint, code="halt_release", exit_code=1)
