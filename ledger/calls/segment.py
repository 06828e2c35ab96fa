"""The file of one process: append-only, on the disk when `add` returns, truncated again where a write fails."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..database.locks import try_lock
from ..files.objects import sync_folder
from ..files.private import file_mode

KIND_BEGUN, KIND_CALL, KIND_ENDED = "begun", "call", "ended"
"""The first line of a segment, one for each call, and the last line of a segment that was closed."""

_TAIL_PATTERN = re.compile(rb',"hash":"([0-9a-f]{64})"\}')
_TAIL_BYTES = len(',"hash":""}') + 64


@dataclass(frozen=True, slots=True)
class ChainLink:
    """The end of a chain: the number and the hash of its last line."""

    sequence: int
    hash: str


@dataclass(frozen=True, slots=True)
class ChainedLine:
    """A verified line: its bytes have the hash that it states."""

    kind: str
    previous: str
    link: ChainLink
    record: dict[str, Any]


def build_line(kind: str, link: ChainLink, time: str, members: str) -> tuple[bytes, ChainLink]:
    """Return the line after a link, newline included, and the link that it makes; `members` are JSON without braces."""
    sequence = link.sequence + 1
    text = f'{{"kind":"{kind}","sequence":{sequence},"time":"{time}","previous":"{link.hash}",{members}'
    body = text.encode("utf-8", "backslashreplace")  # half a surrogate pair becomes its JSON escape
    own = hashlib.sha256(body + b"}").hexdigest()
    return b'%b,"hash":"%b"}\n' % (body, own.encode()), ChainLink(sequence, own)


def read_line(raw: bytes) -> ChainedLine | None:
    """Parse a line without its newline; None if its bytes do not have the hash that it states."""
    tail = _TAIL_PATTERN.fullmatch(raw[-_TAIL_BYTES:])
    if tail is None or hashlib.sha256(raw[:-_TAIL_BYTES] + b"}").hexdigest().encode() != tail[1]:
        return None
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    kind, sequence, previous = record.get("kind"), record.get("sequence"), record.get("previous")
    if kind not in (KIND_BEGUN, KIND_CALL, KIND_ENDED) or type(sequence) is not int or not isinstance(previous, str):
        return None
    return ChainedLine(kind, previous, ChainLink(sequence, tail[1].decode()), record)


SEGMENT_SUFFIX = ".jsonl"
READ_BLOCK_BYTES = 1 << 16
_sync = getattr(os, "fdatasync", os.fsync)
_BINARY = getattr(os, "O_BINARY", 0)


class CallSegment:
    """An open segment, locked by this process until it is closed or the process dies."""

    def __init__(self, path: Path, handle: int) -> None:
        self.path = path
        self._handle = handle
        self._length = 0

    @classmethod
    def create(cls, path: Path) -> CallSegment:
        """Create the file of a new segment and lock it; `FileExistsError` if it exists."""
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
        os.chmod(path, file_mode(path.parent))
        if not try_lock(handle):  # not expected: no other process knows the name yet
            os.close(handle)
            raise BlockingIOError(f"{path} is locked")
        sync_folder(path.parent)
        return cls(path, handle)

    def add(self, lines: bytes) -> None:
        """Write lines and wait for the disk; after an `OSError` the file is cut back to its length before, if possible.

        Failed lines must be added again as a whole: the system may have dropped pages that it could not write.
        """
        try:
            rest = memoryview(lines)
            while rest:
                rest = rest[os.write(self._handle, rest) :]
            _sync(self._handle)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._handle, self._length)
            raise
        self._length += len(lines)

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


@dataclass(frozen=True, slots=True)
class End:
    """The end of a segment's file: its last whole line, None if damaged or missing, and the bytes after it."""

    line: ChainedLine | None
    torn: int


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield each line that a file has now, newline included; only the last may lack it.

    Lines that a process adds meanwhile are left out: it may write as fast as we read.
    """
    with path.open("rb") as file:
        rest = os.fstat(file.fileno()).st_size
        for raw in file:
            yield raw
            rest -= len(raw)
            if rest <= 0:
                return


def read_lines_backwards(path: Path) -> Iterator[bytes]:
    """Yield each line of a file from its end, without newline; first the text after the last newline."""
    with path.open("rb") as file:
        place, rest = file.seek(0, os.SEEK_END), b""
        while place:
            step = min(READ_BLOCK_BYTES, place)
            place -= step
            file.seek(place)
            first, *others = (file.read(step) + rest).split(b"\n")
            yield from reversed(others)
            rest = first
        yield rest


def read_end(path: Path) -> End:
    """Return how a segment's file ends."""
    lines = read_lines_backwards(path)
    torn = next(lines)
    last = next(lines, None)
    return End(read_line(last) if last is not None else None, len(torn))


def mend(path: Path) -> End | None:
    """Cut off the torn line of a segment whose process died, and return its end; None while a process holds it.

    A line is torn when no newline ends it: a single write was cut short. Nothing before it is touched.
    """
    handle = os.open(path, os.O_RDWR | _BINARY)
    try:
        if not try_lock(handle):
            return None
        end = read_end(path)
        if end.torn:
            os.ftruncate(handle, os.fstat(handle).st_size - end.torn)
            os.fsync(handle)
        return end
    finally:
        os.close(handle)
