"""What records the calls of a server: `append` returns at once, and a writer of its own brings lines to the disk.

A line waits for the sync that is under way, then 10 ms for others, and is synced together with them. **What may be lost**
if the process is killed or the power is cut: the lines of the last 50 ms, where the disk takes up to 20 ms for a sync; on a
slower one those of two syncs and 10 ms. A line that was cut short is seen, and cut off when the next process begins. As
soon as a line has waited for a second, or a write has failed, every further call is refused: what cannot be recorded is
not answered. Lines that could not be written are kept and tried again, and calls are taken again when the disk takes them.
"""

from __future__ import annotations

import atexit
import os
import threading
import time as clocks
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from ..database.protocol import explained, workspace_error
from ..errors import CallsUnwritable, LedgerError
from .call import ToolCall
from .heads import Head, begin_segment, update_heads
from .segment import KIND_CALL, KIND_ENDED, ChainLink, written

GATHER_SECONDS = 0.01
"""How long the first line that waits waits for others."""
STALL_SECONDS = 1.0
"""How long a line may wait before further calls are refused."""
RETRY_SECONDS = 0.5
HEAD_SECONDS = 1.0
"""How old the head file may be while lines are written."""

WaitingLine = tuple[datetime, str]
"""The time of a line and the call as it will stand there."""


def format_time(time: datetime) -> str:
    """Return a moment as a line has it: UTC, to the microsecond."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


class CallLog:
    """The record of one process: a segment file of its own in a folder that several may share.

    It may be used from any number of threads. Lines have the order of their numbers.
    """

    def __init__(self, folder: Path, clock: Callable[[], datetime]) -> None:
        self._folder, self._clock, self._process = folder, clock, os.getpid()
        self._segment, self._link = begin_segment(folder, format_time(clock()), self._process)
        self._head, self._head_at = self._link, clocks.monotonic()
        self._lock = threading.Lock()
        self._settled = threading.Condition(self._lock)
        self._waiting: list[WaitingLine] = []
        self._since = 0.0  # when the oldest line that is not on the disk came, of the monotonic clock
        self._appended = self._durable = 0
        self._failure: Exception | None = None
        self._wake, self._closing, self._closed = threading.Event(), threading.Event(), False
        self._writer = threading.Thread(target=self._work, name="tool calls", daemon=True)
        self._writer.start()
        atexit.register(self.close)

    @classmethod
    def open(cls, folder: Path, *, clock: Callable[[], datetime]) -> CallLog:
        """Begin a segment in a folder, making the folder if it is not there.

        Raises
        ------
        WorkspaceError
            If the folder is read-only, full or no folder.
        CallsDamaged
            If the head file is gone or changed.
        """
        with explained(folder):
            return cls(folder, clock)

    def __enter__(self) -> Self:
        """Return the record."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Bring everything to the disk and close."""
        self.close()

    @property
    def path(self) -> Path:
        """The segment's file."""
        return self._segment.path

    @property
    def durable(self) -> int:
        """The number of the last line that is on the disk."""
        return self._durable

    def append(self, call: ToolCall) -> int:
        """Record a call and return its number, counted from 1; it is on the disk a moment later.

        Raises
        ------
        CallsUnwritable
            If calls cannot be recorded now: the call must not be answered.
        ValueError
            If what should be a digest is none.
        """
        body = call.spelled()
        self._refuse_child()
        with self._lock:
            self._refuse_unwritable()
            if self._appended == self._durable:
                self._since = clocks.monotonic()
            self._waiting.append((self._clock(), body))
            self._appended += 1
            number = self._appended
        if not self._wake.is_set():
            self._wake.set()
        return number

    def check(self) -> None:
        """Raise `CallsUnwritable` if a call could not be recorded now; for before it is worked on."""
        self._refuse_child()
        with self._lock:
            self._refuse_unwritable()

    def flush(self, seconds: float = 5.0) -> None:
        """Wait until all that was appended is on the disk; `CallsUnwritable` if it fails or takes longer."""
        with self._lock:
            wanted = self._appended
            self._settled.wait_for(lambda: self._durable >= wanted or self._failure is not None, timeout=seconds)
            if self._durable < wanted:
                raise self._unwritable(self._failure or TimeoutError(f"the disk took longer than {seconds:g} seconds"))

    def close(self) -> None:
        """Bring everything to the disk, end the segment and let go of it; a second time does nothing.

        Raises
        ------
        CallsUnwritable
            If lines could not be written; they are lost.
        """
        with self._lock:
            closed, self._closed = self._closed, True
        if closed or os.getpid() != self._process:
            return
        atexit.unregister(self.close)
        self._closing.set()
        self._wake.set()
        self._writer.join()
        self._segment.close()
        if self._failure is not None:
            raise self._unwritable(self._failure)

    # What refuses a call

    def _refuse_child(self) -> None:
        """Refuse a process that was forked from ours: its writer stayed behind, and its lock may be held for ever."""
        if os.getpid() != self._process:
            raise CallsUnwritable("this process has no record of calls of its own", hint="Open one after the fork.")

    def _refuse_unwritable(self) -> None:
        if self._closed:
            raise CallsUnwritable("the record of calls is closed", field="audit")
        if self._failure is not None:
            raise self._unwritable(self._failure)
        if self._appended > self._durable and clocks.monotonic() - self._since > STALL_SECONDS:
            raise self._unwritable(TimeoutError(f"the disk has not answered for {STALL_SECONDS:g} second"))

    def _unwritable(self, error: Exception) -> CallsUnwritable:
        told = workspace_error(self._folder, error)
        lost = self._appended - self._durable
        return CallsUnwritable(
            f"calls cannot be recorded, so none is answered: {told.message}", field="audit",
            hint=f"{told.hint} Calls are answered again as soon as the {lost} lines that wait can be written.",
        )  # fmt: skip

    # The writer's side

    def _work(self) -> None:
        """Bring lines to the disk until the record is closed."""
        while not self._closing.is_set():
            self._wake.wait(None if self._head == self._link else HEAD_SECONDS)
            self._wake.clear()
            self._closing.wait(GATHER_SECONDS if self._failure is None else RETRY_SECONDS)
            self._commit(ending=False)
            self._write_head(final=False)
        self._commit(ending=True)
        self._write_head(final=self._failure is None)

    def _commit(self, *, ending: bool) -> None:
        """Write the lines that wait as one, and say so to whoever waits for it; keep them if it fails."""
        with self._lock:
            batch = self._waiting[:]
        if not batch and not ending:
            return
        try:
            lines, link = self._chained(batch)
            if ending:
                last, link = written(KIND_ENDED, link, format_time(self._clock()), f'"calls":{link.sequence}')
                lines += last
            self._segment.add(lines)
        except Exception as error:  # noqa: BLE001 - whatever it is, no call may be answered unrecorded
            self._note(error)
        else:
            self._note(None, len(batch))
            self._link = link

    def _chained(self, batch: list[WaitingLine]) -> tuple[bytes, ChainLink]:
        link, lines = self._link, []
        for time, body in batch:
            line, link = written(KIND_CALL, link, format_time(time), body)
            lines.append(line)
        return b"".join(lines), link

    def _note(self, failure: Exception | None, count: int = 0) -> None:
        """Note that a write failed, or that so many lines are on the disk."""
        with self._lock:
            self._failure = failure
            if failure is None:
                del self._waiting[:count]
                self._durable += count
                self._since = clocks.monotonic()
            else:
                self._wake.set()  # it is tried again
            self._settled.notify_all()

    def _write_head(self, *, final: bool) -> None:
        """Bring the head file up to date, once a second and at the end; a disk that is full is no news here."""
        if not final and (self._head == self._link or clocks.monotonic() - self._head_at < HEAD_SECONDS):
            return
        name = self.path.name
        try:
            with explained(self._folder), update_heads(self._folder) as heads:
                heads[name] = Head(name, self._link.sequence, self._link.hash, final)
        except LedgerError:
            pass  # a head file that was changed stays as it is, for whoever verifies
        else:
            self._head = self._link
        self._head_at = clocks.monotonic()
