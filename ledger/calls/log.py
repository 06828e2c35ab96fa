"""The log of a server's calls: `append` returns at once, and a thread of its own writes the lines to the disk.

A line waits for the sync in progress, then 10 ms for other lines, and is synced together with them. **What may be
lost** if the process is killed or the power is cut: the lines of the last 50 ms, if a sync takes up to 20 ms; on a
slower disk, those of two syncs and 10 ms. A torn last line is detected, and cut off when the next process begins. As
soon as a line has waited for a second, or a write has failed, every further call is refused: a call that cannot be
recorded is not answered. Failed lines are kept and retried, and calls are accepted again once they are written.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import threading
import time as clocks
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

from ..database.protocol import explained, workspace_error
from ..digest import canonical_json
from ..errors import CallsUnwritable, LedgerError
from .heads import Head, begin_segment, update_heads
from .segment import KIND_CALL, KIND_ENDED, ChainLink, build_line

GATHER_SECONDS = 0.01
"""How long the first waiting line waits for others."""
STALL_SECONDS = 1.0
"""How long a line may wait, or a write take, before further calls are refused."""
STARVED_SECONDS = 30.0
"""How long a call waits for a writer that is not writing: on a busy machine its thread may not have had a turn."""
RETRY_SECONDS = 0.5
HEAD_SECONDS = 1.0
"""How old the head file may be while lines are written."""

WaitingLine = tuple[datetime, str]
"""The time of a line, and the JSON members of its call."""
MAX_NAME_CHARS = 100
MAX_CALLER_CHARS = 200
UNSPELLABLE = hashlib.sha256(b"\0arguments that cannot be spelled").hexdigest()
"""Digest of arguments that are nested too deeply to be serialised; such a call is recorded too."""

_DIGEST_PATTERN = re.compile(r"(?:[0-9a-f]{64})?")
_spell = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def format_time(time: datetime) -> str:
    """Return a time as lines write it: ISO, UTC, to the microsecond."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


class CallLog:
    """The log of one process: a segment file of its own, in a folder that several processes may share.

    It is safe to use from any number of threads. Lines are in the order of their numbers.
    """

    def __init__(self, folder: Path, clock: Callable[[], datetime]) -> None:
        self._folder, self._clock, self._process = folder, clock, os.getpid()
        self._segment, self._link = begin_segment(folder, format_time(clock()), self._process)
        self._head, self._head_at = self._link, clocks.monotonic()
        self._lock = threading.Lock()
        self._settled = threading.Condition(self._lock)
        self._waiting: list[WaitingLine] = []
        self._since = 0.0  # monotonic time of the oldest line that is not on the disk
        self._appended = self._durable = 0
        self._writing_since: float | None = None  # monotonic time at which the write under way began
        self._failure: Exception | None = None
        self._wake, self._closing, self._closed = threading.Event(), threading.Event(), False
        self._writer = threading.Thread(target=self._write_until_closed, name="tool calls", daemon=True)
        self._writer.start()
        atexit.register(self.close)

    @classmethod
    def open(cls, folder: Path, *, clock: Callable[[], datetime]) -> CallLog:
        """Begin a segment in a folder, creating the folder if it is missing.

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
        """Write everything to the disk and close."""
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
        """Record a call and return its number, from 1; it is on the disk a moment later.

        Raises
        ------
        CallsUnwritable
            If calls cannot be recorded now: the call must not be answered.
        ValueError
            If a digest of the call is malformed, or its duration is NaN.
        """
        body = call.spell()
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
        """Raise `CallsUnwritable` if a call could not be recorded now; to be called before working on it."""
        self._refuse_child()
        with self._lock:
            self._refuse_unwritable()

    def flush(self, seconds: float = 5.0) -> None:
        """Wait until all appended calls are on the disk; `CallsUnwritable` if a write fails or takes longer."""
        with self._lock:
            target = self._appended
            self._settled.wait_for(lambda: self._durable >= target or self._failure is not None, timeout=seconds)
            if self._durable < target:
                raise self._build_refusal(
                    self._failure or TimeoutError(f"the disk took longer than {seconds:g} seconds")
                )

    def close(self) -> None:
        """Write everything to the disk, end the segment and close it; a second time does nothing.

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
            raise self._build_refusal(self._failure)

    # Refusals

    def _refuse_child(self) -> None:
        """Refuse a forked process: it has no writer thread, and its copy of the lock may be held for ever."""
        if os.getpid() != self._process:
            raise CallsUnwritable("this process has no record of calls of its own", hint="Open one after the fork.")

    def _refuse_unwritable(self) -> None:
        if self._closed:
            raise CallsUnwritable("the record of calls is closed", field="audit")
        if self._failure is not None:
            raise self._build_refusal(self._failure)
        if self._appended > self._durable and clocks.monotonic() - self._since > STALL_SECONDS:
            target = self._appended
            patient_until = clocks.monotonic() + STARVED_SECONDS
            while self._durable < target and not self._is_stuck() and clocks.monotonic() < patient_until:
                self._settled.wait(STALL_SECONDS / 4)
            if self._failure is not None:
                raise self._build_refusal(self._failure)
            if self._durable < target:
                raise self._build_refusal(TimeoutError(f"the disk has not answered for {STALL_SECONDS:g} second"))

    def _is_stuck(self) -> bool:
        """Return whether a write failed, or one under way takes too long."""
        begun = self._writing_since
        return self._failure is not None or (begun is not None and clocks.monotonic() - begun > STALL_SECONDS)

    def _build_refusal(self, error: Exception) -> CallsUnwritable:
        refusal = workspace_error(self._folder, error)
        waiting = self._appended - self._durable
        return CallsUnwritable(
            f"calls cannot be recorded, so none is answered: {refusal.message}",
            field="audit",
            hint=f"{refusal.hint} Calls are answered again as soon as the {waiting} lines that wait can be written.",
        )

    # The writer thread

    def _write_until_closed(self) -> None:
        """Write lines to the disk until the log is closed."""
        while not self._closing.is_set():
            self._wake.wait(None if self._head == self._link else HEAD_SECONDS)
            self._wake.clear()
            self._closing.wait(GATHER_SECONDS if self._failure is None else RETRY_SECONDS)
            self._commit(ending=False)
            self._write_head(final=False)
        self._commit(ending=True)
        self._write_head(final=self._failure is None)

    def _commit(self, *, ending: bool) -> None:
        """Write all waiting lines at once and notify the threads in `flush`; keep the lines if the write fails."""
        with self._lock:
            batch = self._waiting[:]
        if not batch and not ending:
            return
        try:
            lines, link = self._chain(batch)
            if ending:
                last, link = build_line(KIND_ENDED, link, format_time(self._clock()), f'"calls":{link.sequence}')
                lines += last
            self._writing_since = clocks.monotonic()
            self._segment.add(lines)
        except Exception as error:  # noqa: BLE001 - whatever it is, no call may be answered unrecorded
            self._record_outcome(error)
        else:
            self._record_outcome(None, len(batch))
            self._link = link

    def _chain(self, batch: list[WaitingLine]) -> tuple[bytes, ChainLink]:
        link, lines = self._link, []
        for time, body in batch:
            line, link = build_line(KIND_CALL, link, format_time(time), body)
            lines.append(line)
        return b"".join(lines), link

    def _record_outcome(self, failure: Exception | None, count: int = 0) -> None:
        """Record a failed write, or `count` more lines on the disk."""
        with self._lock:
            self._failure, self._writing_since = failure, None
            if failure is None:
                del self._waiting[:count]
                self._durable += count
                self._since = clocks.monotonic()
            else:
                self._wake.set()  # retry
            self._settled.notify_all()

    def _write_head(self, *, final: bool) -> None:
        """Update the head file, at most once a second and at the end; `_commit` reports a full disk."""
        if not final and (self._head == self._link or clocks.monotonic() - self._head_at < HEAD_SECONDS):
            return
        name = self.path.name
        try:
            with explained(self._folder), update_heads(self._folder) as heads:
                heads[name] = Head(name, self._link.sequence, self._link.hash, final)
        except LedgerError:
            pass  # a changed head file is left for `verify_calls`
        else:
            self._head = self._link
        self._head_at = clocks.monotonic()


class CallOutcome(StrEnum):
    """The outcome of a call."""

    OK = "ok"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that was answered, refused, or failed.

    Parameters
    ----------
    who : str
        The token's id, "stdio" or "anonymous"; cut to 200 characters.
    server, tool : str
        Cut to 100 characters each; the tool is "http" for a request that is rejected before a tool is reached.
    outcome : CallOutcome
        Whether it was answered, refused or failed.
    code : str
        The error's code; empty for a call that was answered.
    arguments : str
        `digest_of_arguments`; empty if there were none to read.
    as_of : date or None
        The last day that the caller may see; None where no day applies.
    rows : int or None
        Rows of the answer; None where an answer has no rows.
    bytes : int
        Size of the answer in bytes.
    result : str
        SHA-256 of the answer, in hex; empty where there is none.
    duration_ms : float
        Duration in milliseconds.
    """

    who: str
    server: str
    tool: str
    outcome: CallOutcome
    code: str = ""
    arguments: str = ""
    as_of: date | None = None
    rows: int | None = None
    bytes: int = 0
    result: str = ""
    duration_ms: float = 0.0

    def spell(self) -> str:
        """Return the call as the members of a JSON object, without its braces.

        Raises
        ------
        ValueError
            If a digest is malformed, since it may be text that must not be stored; or if the duration is NaN.
        """
        if not (_DIGEST_PATTERN.fullmatch(self.arguments) and _DIGEST_PATTERN.fullmatch(self.result)):
            raise ValueError("arguments and result of a tool call are kept as SHA-256 in hex, or not at all")
        return _spell(
            {
                "who": self.who[:MAX_CALLER_CHARS],
                "server": self.server[:MAX_NAME_CHARS],
                "tool": self.tool[:MAX_NAME_CHARS],
                "outcome": self.outcome.value,
                "code": self.code[:MAX_NAME_CHARS],
                "arguments": self.arguments,
                "as_of": self.as_of.isoformat() if self.as_of else None,
                "rows": None if self.rows is None else int(self.rows),
                "bytes": int(self.bytes),
                "result": self.result,
                "duration_ms": round(float(self.duration_ms), 3),
            }
        )[1:-1]


def digest_of_arguments(arguments: Mapping[str, object]) -> str:
    """Return the SHA-256, in hex, of the canonical JSON of a call's arguments.

    It never fails, because a call that is refused for its arguments is recorded too: NaN is spelled NaN, half a
    surrogate pair as its escape. A digest proves which arguments were sent; it does not hide them from a guess.
    """
    try:
        text = canonical_json(arguments)  # type: ignore[arg-type]  # whatever the client sent
    except (TypeError, ValueError):
        text = _encode_loosely(arguments)
    except RecursionError:
        return UNSPELLABLE
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def _encode_loosely(arguments: object) -> str:
    try:
        return json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=repr)
    except (TypeError, ValueError, RecursionError):
        return UNSPELLABLE
