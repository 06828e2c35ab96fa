"""Keep known formulas on disk, so that what is alike among a million is found in a fraction of a millisecond.

What comes is first written to a small table; when that is long, it becomes a sorted run, a file that never changes, and a run
joins the one before it when it is an eighth as long. So each formula is written a few times, however many there are. Table and
list of runs are one SQLite file: a crash leaves the state before or after an addition, and at worst a file that nobody names.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from ...factors.similarity import KnownFormula, Likeness, Outline, hash_outline_code, pack_formula, unpack_formula
from ...ledger.database import begin_immediate, explained
from ...ledger.files import make_file, make_folder
from .inverted_index import InvertedIndex, MemoryIndex, Posting, postings, search_indexes
from .sorted_run import Contents, SortedRun, contents, merge_runs, write_run

MAX_TABLE_ROWS = 2048
RUN_MERGE_RATIO = 8
INDEX_BUSY_SECONDS = 60.0

INDEX_TABLES = """
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS recent (name TEXT PRIMARY KEY, size INTEGER, record BLOB, postings TEXT);
CREATE TABLE IF NOT EXISTS runs (place INTEGER PRIMARY KEY, file TEXT NOT NULL);
"""


class SubtreeIndex:
    """Known formulas in a folder, found by the subtrees that they share with another.

    One may be used from several threads, and several processes may open one folder; each sees what the others had added
    when it was opened or last added something itself.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, threading.RLock()
        with explained(folder):
            make_folder(folder)
            make_file(folder / "index.sqlite")
            self._connection = sqlite3.connect(
                folder / "index.sqlite", timeout=INDEX_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        self._version = ""
        self._recent, self._runs = MemoryIndex(), list[SortedRun]()
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        """Set what SQLite does not remember, make the tables, and read what is there."""
        with explained(self._folder):
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.executescript(INDEX_TABLES)
        with self._write():
            if self._state("form") != hash_outline_code():
                self._start_again()
            self._read()

    def __enter__(self) -> Self:
        """Return the index."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the index."""
        self.close()

    def close(self) -> None:
        """Close the index; a second time does nothing."""
        self._connection.close()

    def __len__(self) -> int:
        """Count the formulas."""
        return len(self._recent) + sum(map(len, self._runs))

    def __contains__(self, name: str) -> bool:
        """Tell whether there is a formula of this name."""
        return name in self._recent or any(name in run for run in self._runs)

    @property
    def shelves(self) -> list[InvertedIndex]:
        """Return what can be searched."""
        return [*self._runs, self._recent]

    def nearest(self, whole: Outline, top: int = 1) -> list[Likeness]:
        """Return the formulas most like an outline; see `search_indexes`."""
        return search_indexes(whole, self.shelves, top)

    def add(self, formulas: Iterable[tuple[KnownFormula, Outline]]) -> int:
        """Add formulas, each under each of its subtrees, and return how many were new; on the disk when it returns.

        A name that is there already keeps its formula.
        """
        with self._write():
            if self._state("version") != self._version:
                self._read()
            found = {known.name: (known, whole) for known, whole in formulas if known.name not in self}
            fresh = [(known, postings(whole)) for known, whole in found.values()]
            if len(self._recent) + len(fresh) > MAX_TABLE_ROWS:
                self._settle(fresh, whole=False)
            elif fresh:
                self._append(fresh)
        return len(fresh)

    def settle(self) -> None:
        """Make one run of everything."""
        with self._write():
            self._read()
            self._settle([], whole=True)

    # On the disk.

    @contextmanager
    def _write(self) -> Iterator[None]:
        """Open one immediate transaction; it is whole or it is not."""
        with self._lock, explained(self._folder):
            whole = False
            try:
                with begin_immediate(self._connection):
                    yield
                whole = True
            finally:
                if not whole:
                    self._version = "unknown"  # what is in memory may be of what was undone

    def _state(self, name: str) -> str:
        found = self._connection.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
        return str(found[0]) if found else ""

    def _set(self, name: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (name, value))

    def _start_again(self) -> None:
        """Forget everything: it was drawn in another form, and is not what would be drawn now."""
        self._connection.execute("DELETE FROM recent")
        self._connection.execute("DELETE FROM runs")
        self._set("form", hash_outline_code())

    def _read(self) -> None:
        """Open what the file names."""
        self._recent = MemoryIndex()
        for size, record, parts in self._connection.execute("SELECT size, record, postings FROM recent ORDER BY rowid"):
            self._recent.add(unpack_formula(record, size), _postings(parts))
        opened = {run.path: run for run in self._runs}
        files = [self._folder / file for (file,) in self._connection.execute("SELECT file FROM runs ORDER BY place")]
        self._runs = [opened.get(path) or SortedRun(path) for path in files]
        self._version = self._state("version")

    def _append(self, fresh: Sequence[tuple[KnownFormula, list[Posting]]]) -> None:
        """Write what is new into the table."""
        self._connection.executemany("INSERT INTO recent VALUES (?, ?, ?, ?)", map(_row, fresh))
        for known, parts in fresh:
            self._recent.add(known, parts)
        self._version = self._next_version()

    def _next_version(self) -> str:
        """Tell other processes that what they read is old."""
        version = str(int(self._state("version") or 0) + 1)
        self._set("version", version)
        return version

    def _settle(self, fresh: Sequence[tuple[KnownFormula, list[Posting]]], *, whole: bool) -> None:
        """Make a run of the table and what is new, and join runs while the last is long beside the one before it."""
        rows = self._connection.execute("SELECT record, size, postings FROM recent").fetchall()
        formulas = [(unpack_formula(record, size), _postings(parts)) for record, size, parts in rows]
        runs = list(self._runs)
        self._remove_all_but([run.path.name for run in runs])
        if formulas or fresh:
            runs.append(self._run(contents([*formulas, *fresh])))
        first = 0 if whole else _find_first_joined([len(run) for run in runs])
        if len(runs) - first > 1:
            runs[first:] = [self._run(merge_runs(runs[first:]))]
        self._connection.execute("DELETE FROM recent")
        self._connection.execute("DELETE FROM runs")
        self._connection.executemany("INSERT INTO runs (file) VALUES (?)", [(run.path.name,) for run in runs])
        self._next_version()
        self._read()

    def _run(self, given: Contents) -> SortedRun:
        """Write a run under a number that no file has."""
        numbers = [int(path.stem.removeprefix("run-")) for path in self._folder.glob("run-*.bin")]
        path = self._folder / f"run-{max(numbers, default=0) + 1:06}.bin"
        write_run(path, given)
        return SortedRun(path)

    def _remove_all_but(self, names: Sequence[str]) -> None:
        """Remove the files that nobody names any more: what was joined the time before, or left by a crash."""
        for path in self._folder.glob("run-*"):
            if path.name not in names:
                with suppress(OSError):  # another process may still read it, which some systems do not let go
                    path.unlink()


def _row(fresh: tuple[KnownFormula, list[Posting]]) -> tuple[str, int, bytes, str]:
    known, parts = fresh
    return known.name, known.size, pack_formula(known), json.dumps(parts)


def _postings(text: str) -> list[Posting]:
    return [(key, tuple(codes)) for key, codes in json.loads(text)]


def _find_first_joined(lengths: Sequence[int]) -> int:
    """Return from which run on they become one: while the runs after it are at least an eighth as long."""
    first, after = len(lengths) - 1, lengths[-1]
    while first > 0 and after * RUN_MERGE_RATIO >= lengths[first - 1]:
        first -= 1
        after += lengths[first]
    return first
