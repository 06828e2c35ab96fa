"""Keep sketches in a folder of the workspace: two files that only grow, read whole, and a table of what is in them.

A sketch counts once the table names it, in one SQLite transaction after both files are on the disk. So a crash leaves at
most bytes that nobody names, which the next addition writes over, and two processes wait for each other.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from ...ledger.database import begin_immediate, explained
from ...ledger.files import make_file, make_folder
from .sketch import SKETCH_BUCKETS, SKETCH_CELLS, Sketch, Sketches

SKETCH_BUSY_SECONDS = 60.0
TABLE_FILE = "sketches.sqlite"
SKETCH_FILES: Mapping[str, int] = MappingProxyType({"buckets.bin": SKETCH_BUCKETS, "cells.bin": SKETCH_CELLS})
SKETCH_TABLE = """CREATE TABLE IF NOT EXISTS sketches
(place INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, share REAL NOT NULL, length REAL NOT NULL)"""


class SketchStore:
    """The sketches of one panel and window, by the name of the factor; a name that is there keeps its sketch."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, threading.RLock()
        with explained(folder):
            make_folder(folder)
            make_file(folder / TABLE_FILE)
            with self._open() as connection:
                connection.execute(SKETCH_TABLE)
        self.names: tuple[str, ...] = ()
        self.sketches = Sketches.of([])
        self.read()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the table for as long as it takes: a campaign may last for days."""
        connection = sqlite3.connect(
            self._folder / TABLE_FILE, timeout=SKETCH_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA synchronous = FULL")
            yield connection
        finally:
            connection.close()

    def read(self) -> None:
        """See what other processes have added."""
        with self._lock, explained(self._folder), self._open() as connection:
            rows = connection.execute("SELECT name, share, length FROM sketches ORDER BY place").fetchall()
            buckets, cells = (self._whole(file, len(rows)) for file in SKETCH_FILES)
            shares, lengths = (np.array([row[at] for row in rows], np.float64) for at in (1, 2))
            self.names, self.sketches = tuple(row[0] for row in rows), Sketches(buckets, cells, shares, lengths)

    def _whole(self, file: str, count: int) -> NDArray[np.int8]:
        width = SKETCH_FILES[file]
        if not count:
            return np.empty((0, width), np.int8)
        with (self._folder / file).open("rb") as opened:
            held = opened.read(count * width)
        return np.frombuffer(held, np.int8).reshape(count, width)

    def add(self, sketches: Mapping[str, Sketch]) -> int:
        """Add sketches and return how many were new; on the disk when it returns."""
        with self._lock, explained(self._folder), self._open() as connection:
            with begin_immediate(connection):
                known = {name for (name,) in connection.execute("SELECT name FROM sketches")}
                fresh = {name: sketches[name] for name in sorted(sketches) if name not in known}
                self._append(list(fresh.values()), len(known))
                rows = [(len(known) + at, name, one.share, one.length) for at, (name, one) in enumerate(fresh.items())]
                connection.executemany("INSERT INTO sketches VALUES (?, ?, ?, ?)", rows)
            self.read()
        return len(fresh)

    def _append(self, fresh: list[Sketch], place: int) -> None:
        """Write behind what is named, over whatever a crash has left there."""
        both = [[one.buckets for one in fresh], [one.cells for one in fresh]]
        for (file, width), parts in zip(SKETCH_FILES.items(), both, strict=True):
            with _open_for_writing(self._folder / file) as opened:
                opened.seek(place * width)
                opened.write(b"".join(part.tobytes() for part in parts))
                opened.flush()
                os.fsync(opened.fileno())


def _open_for_writing(path: Path) -> BinaryIO:
    """Open a file to write into it, without cutting it off."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600), "r+b")
