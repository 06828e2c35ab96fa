"""One process at a time on one run; the system lets go when the process dies, however it dies."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import RunLocked
from .refusal import explained, refusal

LOOKS, LOOK_SECONDS = 3, 0.02
PAUSE_SECONDS = 0.003

if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 30  # the locked byte lies beyond the text, so that another process can still read who holds it

    def _seize(handle: int) -> None:
        os.lseek(handle, _FAR, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _seize(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def held(path: Path, run: str) -> Iterator[None]:
    """Hold the lock of a run, or refuse with the process that holds it.

    Raises
    ------
    RunLocked
        If another process, or this one, holds it already.
    """
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _claim(handle, path, run)
        yield
    finally:
        os.close(handle)


@contextmanager
def turn(path: Path, seconds: float = 10.0) -> Iterator[None]:
    """Wait for a lock that is held for moments only, and hold it.

    Raises
    ------
    WorkspaceError
        If the file cannot be made, or others hold it for longer than `seconds`.
    """
    with explained(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        end = time.monotonic() + seconds
        while not seized(handle):
            if time.monotonic() > end:
                raise refusal(path, BlockingIOError("locked"))
            time.sleep(PAUSE_SECONDS)
        yield
    finally:
        os.close(handle)


def seized(handle: int) -> bool:
    """Take the lock of an open file if it is free, until the file is closed; tell whether it was."""
    try:
        _seize(handle)
    except OSError:
        return False
    return True


def _seize_soon(handle: int) -> None:
    """Take a lock; somebody who only looks holds it for no longer than this waits."""
    for _ in range(LOOKS - 1):
        try:
            return _seize(handle)
        except OSError:
            time.sleep(LOOK_SECONDS)
    _seize(handle)


def holder(path: Path) -> str | None:
    """Return the number of the process that holds a lock file on this machine; None where nobody does.

    It looks by taking the lock for a moment, so `_claim` asks more than once.
    """
    if not path.exists():
        return None
    with explained(path):
        handle = os.open(path, os.O_RDWR)
    try:
        _seize(handle)
    except OSError:
        return path.read_text().strip() or "unknown"
    finally:
        os.close(handle)
    return None


def _claim(handle: int, path: Path, run: str) -> None:
    """Take the lock and leave this process's number in the file for whoever is refused."""
    try:
        _seize_soon(handle)
    except OSError:
        other = path.read_text().strip() or "unknown"
        raise RunLocked(
            f"process {other} is working on run {run}",
            field="run",
            got=run,
            hint="Wait for it to end or stop it; a run can be resumed at any moment.",
        ) from None
    with explained(path):
        os.ftruncate(handle, 0)
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, f"{os.getpid()}\n".encode())
