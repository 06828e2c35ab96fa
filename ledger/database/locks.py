"""Locks on files: one process at a time works on a run; the system releases a lock when its process dies."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ..errors import RunLocked
from ..files.private import make_file, make_folder
from .protocol import explained, workspace_error

CLAIM_ATTEMPTS, CLAIM_PAUSE_SECONDS = 3, 0.02
BRIEF_LOCK_SECONDS, LOCK_PAUSE_SECONDS = 10.0, 0.003
NOTICE_SECONDS = 10.0
MIN_POLL_SECONDS, MAX_POLL_SECONDS = 0.025, 1.0
"""Poll interval while another process works: each poll reads the ledger, which the other process needs too."""

if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 30  # the locked byte is beyond the text, so that another process can still read who holds the lock

    def _seize(handle: int) -> None:
        os.lseek(handle, _FAR, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _seize(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def hold_lock(path: Path, run: str) -> Iterator[None]:
    """Hold the lock of a run; refuse with the number of the process that holds it.

    Raises
    ------
    RunLocked
        If another process, or this one, holds the lock already.
    """
    with explained(path):
        make_folder(path.parent)
        make_file(path)
        handle = os.open(path, os.O_RDWR)
    try:
        _claim(handle, path, run)
        yield
    finally:
        os.close(handle)


@dataclass
class Wait:
    """A wait for another process, reported on standard error at once and then every ten seconds.

    Attributes
    ----------
    seconds : callable
        A monotonic clock, in seconds.
    tell : callable
        Called with each line of the report.
    """

    seconds: Callable[[], float] = time.monotonic
    tell: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True)
    _polls: int = 0
    _began: float = 0.0
    _reported_at: float = float("-inf")

    def note(self, why: str) -> float:
        """Report the reason for waiting if a report is due; return the seconds to pause before the next poll."""
        now = self.seconds()
        self._began = self._began if self._polls else now
        if now - self._reported_at >= NOTICE_SECONDS:
            self._reported_at = now
            self.tell(f"waiting, {why}" + (f" ({now - self._began:.0f} s so far)" if self._polls else ""))
        self._polls += 1
        return min(MIN_POLL_SECONDS * float(2 ** min(self._polls, 10)), MAX_POLL_SECONDS)

    @property
    def waited(self) -> float:
        """Return the seconds since the first poll."""
        return self.seconds() - self._began if self._polls else 0.0


T = TypeVar("T")


def wait_while_locked(work: Callable[[], T], why: str, wait: Wait | None = None) -> T:
    """Do work that needs a lock, again and again while another process holds it, and return its result.

    Parameters
    ----------
    work
        Raises `RunLocked` before it changes anything.
    why
        Completes "waiting, ..." in the report.
    """
    wait = wait or Wait()
    while True:
        try:
            return work()
        except RunLocked as error:
            time.sleep(wait.note(f"{why}: {error.message}"))


@contextmanager
def wait_for_lock(path: Path) -> Iterator[None]:
    """Wait for a lock that others hold only briefly, and hold it.

    Raises
    ------
    WorkspaceError
        If the file cannot be created, or others hold the lock for longer than `BRIEF_LOCK_SECONDS`.
    """
    with explained(path):
        make_file(path)
        handle = os.open(path, os.O_RDWR)
    try:
        end = time.monotonic() + BRIEF_LOCK_SECONDS
        while not try_lock(handle):
            if time.monotonic() > end:
                raise workspace_error(path, BlockingIOError("locked"))
            time.sleep(LOCK_PAUSE_SECONDS)
        yield
    finally:
        os.close(handle)


def try_lock(handle: int) -> bool:
    """Take the lock of an open file if it is free, until the file is closed; return whether it was free."""
    try:
        _seize(handle)
    except OSError:
        return False
    return True


def _seize_with_retries(handle: int) -> None:
    """Take a lock, with retries: `holder` in another process may have it for a moment."""
    for _ in range(CLAIM_ATTEMPTS - 1):
        try:
            return _seize(handle)
        except OSError:
            time.sleep(CLAIM_PAUSE_SECONDS)
    _seize(handle)


def holder(path: Path) -> str | None:
    """Return the number of the process that holds a lock file on this machine; None if there is none.

    It tests the lock by taking it for a moment, so `_claim` tries more than once.
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
    """Take the lock and write this process's number into the file, for the error of other processes."""
    try:
        _seize_with_retries(handle)
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
