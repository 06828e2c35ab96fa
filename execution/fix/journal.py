"""An append-only file of lines that survives `kill -9` and a power cut: written, synced, and only then acted upon."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

from ...ledger.database import hold_lock
from ...ledger.files import make_file, make_folder, sync_folder
from .errors import FixError

CHECK_DIGITS: Final = 8
_sync = getattr(os, "fdatasync", os.fsync)
_BINARY = getattr(os, "O_BINARY", 0)


class LineJournal:
    """A file whose lines each begin with their CRC-32; one process at a time has it.

    A crash while a line is written leaves a torn last line, which the next opening cuts off: nothing was done yet on
    its account. A wrong line before the last one is damage and refused.

    Parameters
    ----------
    path
        The file; it and its folder are made where they are missing.

    Raises
    ------
    FixError
        A line was changed.
    RunLocked
        Another process has the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stack = ExitStack()
        make_folder(path.parent)
        self._stack.enter_context(hold_lock(path.with_name(f"{path.name}.lock"), path.name))
        try:
            make_file(path)
            sync_folder(path.parent)
            self._handle = os.open(path, os.O_RDWR | os.O_APPEND | _BINARY)
            self._stack.callback(os.close, self._handle)
            self.lines = list(self._read())
        except BaseException:
            self._stack.close()
            raise
        self._pending: list[bytes] = []
        self._dirty = False

    def _read(self) -> Iterator[str]:
        """Yield the lines that are there, and cut off a torn one at the end."""
        whole = self.path.read_bytes()
        place = 0
        while place < len(whole):
            end = whole.find(b"\n", place)
            line = whole[place : end if end >= 0 else len(whole)]
            text = line[CHECK_DIGITS + 1 :]
            if end < 0 or line[: CHECK_DIGITS + 1] != b"%08x " % zlib.crc32(text):
                if 0 <= end < len(whole) - 1:
                    raise FixError(
                        "A file of a FIX session was changed.",
                        field=str(self.path),
                        got=f"a wrong line at byte {place}",
                        hint="Restore the file, or agree with the counterparty on a reset and begin a new one.",
                        code="fix_store",
                    )
                os.ftruncate(self._handle, place)
                return
            yield unescape(text.decode("latin-1"))
            place = end + 1

    def add(self, text: str) -> None:
        """Add a line, a text in Latin-1; it is on the disk after the next `sync`."""
        line = escape(text).encode("latin-1")
        self._pending.append(b"%08x %s\n" % (zlib.crc32(line), line))

    def write(self) -> None:
        """Hand what was added to the system: it survives `kill -9`, and a power cut after the next `sync` alone."""
        rest = memoryview(b"".join(self._pending))
        self._pending.clear()
        self._dirty = self._dirty or bool(rest)
        while rest:
            rest = rest[os.write(self._handle, rest) :]

    def sync(self) -> None:
        """Write what was added, and wait for the disk."""
        self.write()
        if self._dirty:
            _sync(self._handle)
            self._dirty = False

    def close(self) -> None:
        """Sync, and let the file go."""
        self.sync()
        self._stack.close()

    def __enter__(self) -> Self:
        """Return the journal."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


def escape(text: str) -> str:
    r"""Return a text without line breaks: a backslash becomes `\\`, a line feed `\n`."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def unescape(text: str) -> str:
    """Return the text that `escape` made a line of."""
    if "\\" not in text:
        return text
    return "\\".join(part.replace("\\n", "\n") for part in text.split("\\\\"))
