"""An inverted index of known formulas on disk, by subtree: a search among a million takes a fraction of a millisecond.

New formulas go to a small table. A full table becomes a sorted run: one immutable file that is mapped into memory and
searched by bisection. A run is merged into the one before it when it is at least an eighth as long, so each formula
is written a few times, however many there are. The table and the list of runs are one SQLite file: a crash leaves the
state before or after an addition, and at worst a file that no list names.
"""

from __future__ import annotations

import json
import mmap
import os
import sqlite3
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...factors import Expression, FactorError
from ...factors.similarity import (
    MAX_CODE_DISTANCE,
    KnownFormula,
    Likeness,
    NumberCodes,
    Outline,
    hash_outline_code,
    holds_packed,
    pack_formula,
    unpack_formula,
)
from ...ledger import LibraryRow
from ...ledger.database import begin_immediate, explained
from ...ledger.files import make_file, make_folder
from .catalogue import (
    MAX_POSTING_CODES,
    InvertedIndex,
    MemoryIndex,
    Posting,
    Selection,
    draw_formula,
    postings,
    search_indexes,
)

MAX_TABLE_ROWS = 2048
RUN_MERGE_RATIO = 8
INDEX_BUSY_SECONDS = 60.0

INDEX_TABLES = """
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS recent (name TEXT PRIMARY KEY, size INTEGER, record BLOB, postings TEXT);
CREATE TABLE IF NOT EXISTS runs (place INTEGER PRIMARY KEY, file TEXT NOT NULL);
"""

ORIGINALITY_FOLDER, LIBRARY = "originality", "the library"

Array = NDArray[Any]

FIRST_READ_POSTINGS, READ_GROWTH, MAX_READ_POSTINGS = 16, 8, 1 << 16
"""Postings read at once: few at first, since most searches need few."""
DTYPES = {"keys": "<u8", "starts": "<u8", "code_starts": "<u8", "holders": "<u4", "codes": "<i2", "sizes": "<u2",
          "by_name": "<u4", "ends": "<u8"}  # fmt: skip  # a table


class SubtreeIndex:
    """Known formulas in a folder, searched by subtree.

    An index may be used from several threads, and several processes may open one folder. Each sees the additions of the
    others up to when it was opened or last added a formula itself.
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
        """Set the connection's options, create the tables and read them."""
        with explained(self._folder):
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.executescript(INDEX_TABLES)
        with self._write():
            if self._read_state("form") != hash_outline_code():
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
        """Return the parts that `search_indexes` searches."""
        return [*self._runs, self._recent]

    def nearest(self, whole: Outline, top: int = 1) -> list[Likeness]:
        """Return the formulas most like an outline; see `search_indexes`."""
        return search_indexes(whole, self.shelves, top)

    def add(self, formulas: Iterable[tuple[KnownFormula, Outline]]) -> int:
        """Add formulas under each of their subtrees, and return how many were new.

        They are on the disk on return.
        A known name keeps its formula.
        """
        with self._write():
            if self._read_state("version") != self._version:
                self._read()
            new = {known.name: (known, whole) for known, whole in formulas if known.name not in self}
            fresh = [(known, postings(whole)) for known, whole in new.values()]
            if len(self._recent) + len(fresh) > MAX_TABLE_ROWS:
                self._merge(fresh, whole=False)
            elif fresh:
                self._append(fresh)
        return len(fresh)

    def settle(self) -> None:
        """Merge all formulas into one run."""
        with self._write():
            self._read()
            self._merge([], whole=True)

    # On the disk.

    @contextmanager
    def _write(self) -> Iterator[None]:
        """Open one immediate transaction."""
        with self._lock, explained(self._folder):
            is_committed = False
            try:
                with begin_immediate(self._connection):
                    yield
                is_committed = True
            finally:
                if not is_committed:
                    self._version = "unknown"  # memory may hold rows that were rolled back

    def _read_state(self, name: str) -> str:
        row = self._connection.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else ""

    def _write_state(self, name: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (name, value))

    def _start_again(self) -> None:
        """Delete all formulas: other code drew their outlines, which may differ from those drawn now."""
        self._connection.execute("DELETE FROM recent")
        self._connection.execute("DELETE FROM runs")
        self._write_state("form", hash_outline_code())

    def _read(self) -> None:
        """Read the table and open the runs that the SQLite file lists."""
        self._recent = MemoryIndex()
        for size, record, parts in self._connection.execute("SELECT size, record, postings FROM recent ORDER BY rowid"):
            self._recent.add(unpack_formula(record, size), _unpack_postings(parts))
        opened = {run.path: run for run in self._runs}
        files = [self._folder / file for (file,) in self._connection.execute("SELECT file FROM runs ORDER BY place")]
        self._runs = [opened.get(path) or SortedRun(path) for path in files]
        self._version = self._read_state("version")

    def _append(self, fresh: Sequence[tuple[KnownFormula, list[Posting]]]) -> None:
        """Write new formulas into the table."""
        self._connection.executemany("INSERT INTO recent VALUES (?, ?, ?, ?)", map(_pack_row, fresh))
        for known, parts in fresh:
            self._recent.add(known, parts)
        self._version = self._next_version()

    def _next_version(self) -> str:
        """Write a new version, so that other processes read again."""
        version = str(int(self._read_state("version") or 0) + 1)
        self._write_state("version", version)
        return version

    def _merge(self, fresh: Sequence[tuple[KnownFormula, list[Posting]]], *, whole: bool) -> None:
        """Write the table and new formulas as a run, and merge runs: all of them, or those that are long enough."""
        rows = self._connection.execute("SELECT record, size, postings FROM recent").fetchall()
        formulas = [(unpack_formula(record, size), _unpack_postings(parts)) for record, size, parts in rows]
        runs = list(self._runs)
        self._remove_all_but([run.path.name for run in runs])
        if formulas or fresh:
            runs.append(self._write_run(sort_contents([*formulas, *fresh])))
        first = 0 if whole else _find_first_joined([len(run) for run in runs])
        if len(runs) - first > 1:
            runs[first:] = [self._write_run(merge_runs(runs[first:]))]
        self._connection.execute("DELETE FROM recent")
        self._connection.execute("DELETE FROM runs")
        self._connection.executemany("INSERT INTO runs (file) VALUES (?)", [(run.path.name,) for run in runs])
        self._next_version()
        self._read()

    def _write_run(self, contents: Contents) -> SortedRun:
        """Write a run under an unused number."""
        numbers = [int(path.stem.removeprefix("run-")) for path in self._folder.glob("run-*.bin")]
        path = self._folder / f"run-{max(numbers, default=0) + 1:06}.bin"
        write_run(path, contents)
        return SortedRun(path)

    def _remove_all_but(self, names: Sequence[str]) -> None:
        """Remove files that are in no list: merged before, or left by a crash."""
        for path in self._folder.glob("run-*"):
            if path.name not in names:
                with suppress(OSError):  # some systems keep a file that another process has open
                    path.unlink()


def _pack_row(fresh: tuple[KnownFormula, list[Posting]]) -> tuple[str, int, bytes, str]:
    known, parts = fresh
    return known.name, known.size, pack_formula(known), json.dumps(parts)


def _unpack_postings(text: str) -> list[Posting]:
    return [(key, tuple(codes)) for key, codes in json.loads(text)]


def _find_first_joined(lengths: Sequence[int]) -> int:
    """Return the first run to merge: a run joins while all later ones together are at least an eighth as long."""
    first, after = len(lengths) - 1, lengths[-1]
    while first > 0 and after * RUN_MERGE_RATIO >= lengths[first - 1]:
        first -= 1
        after += lengths[first]
    return first


class KnownLibrary:
    """The library factors that one run may see, searched through the workspace's index.

    The index stores every formula that any run has shown it, so each is parsed and drawn once.

    Attributes
    ----------
    unreadable
        Why the language refuses a row, by id: another version wrote it. Such a row is left out.
    """

    def __init__(
        self, workspace: Path, read: Callable[[LibraryRow], Expression], rows: Iterable[LibraryRow] = ()
    ) -> None:
        self._folder, self._read = workspace / ORIGINALITY_FOLDER, read
        self._names: set[str] = set()
        self.unreadable: dict[str, str] = {}
        self.shelves: tuple[InvertedIndex, ...] = ()
        self.show(rows)

    def show(self, rows: Iterable[LibraryRow]) -> None:
        """Add rows to the visible factors."""
        fresh = [row for row in rows if row.factor_id not in self._names]
        if not fresh:
            return
        with SubtreeIndex(self._folder) as index:
            missing = [row for row in fresh if row.factor_id not in index]
            index.add(self._draw_readable(missing))
            self._names |= {row.factor_id for row in fresh}
            self.shelves = tuple(Selection(shelf, self._names) for shelf in index.shelves)

    def _draw_readable(self, rows: Iterable[LibraryRow]) -> Iterator[tuple[KnownFormula, Outline]]:
        for row in rows:
            try:
                expression = self._read(row)
            except FactorError as error:
                self.unreadable[row.factor_id] = error.message
            else:
                yield draw_formula(row.factor_id, expression, LIBRARY)


@dataclass(frozen=True)
class Contents:
    """The contents of a run.

    Attributes
    ----------
    sizes : array
        Size of each formula; formulas are in the order of size, then name.
    names : array of bytes
        Name of each formula.
    records : iterable of bytes
        Each formula, packed.
    keys, holders : array
        For each posting, the key of the subtree and the place of the formula that holds it.
    codes : array
        The postings' numbers, one posting after another; the key says how many.
    """

    sizes: Array
    names: Array
    records: Iterable[bytes]
    keys: Array
    holders: Array
    codes: Array


def sort_contents(formulas: Sequence[tuple[KnownFormula, Sequence[Posting]]]) -> Contents:
    """Sort formulas `(formula, postings)` by size, then name, and their postings by key."""
    ordered = sorted(formulas, key=lambda formula: (formula[0].size, formula[0].name))
    keys = np.fromiter((key for _, parts in ordered for key, _ in parts), np.uint64)
    counts = np.fromiter((len(parts) for _, parts in ordered), np.int64)
    codes = np.fromiter((code for _, parts in ordered for _, numbers in parts for code in numbers), np.int16)
    sizes = np.fromiter((known.size for known, _ in ordered), np.uint16)
    holders = np.repeat(np.arange(len(ordered), dtype=np.uint32), counts)
    names = np.array([known.name.encode() for known, _ in ordered])
    return _sort_by_key(Contents(sizes, names, (pack_formula(known) for known, _ in ordered), keys, holders, codes))


def _sort_by_key(contents: Contents) -> Contents:
    """Sort postings by key, then by formula."""
    order = np.lexsort((contents.holders, contents.keys))
    counts = (contents.keys & MAX_POSTING_CODES).astype(np.int64)
    first = np.cumsum(counts) - counts
    counts, first = counts[order], first[order]
    shift = first - (np.cumsum(counts) - counts)
    places = np.repeat(shift, counts) + np.arange(int(counts.sum()))
    keys, holders, codes = contents.keys[order], contents.holders[order], contents.codes[places]
    return Contents(contents.sizes, contents.names, contents.records, keys, holders, codes)


def write_run(path: Path, contents: Contents) -> None:
    """Write a run; it is complete on the disk on return."""
    keys, starts = np.unique(contents.keys, return_index=True)
    widths = (contents.keys & MAX_POSTING_CODES).astype(np.int64)
    code_starts = (np.cumsum(widths) - widths)[starts] if starts.size else starts
    arrays = {
        "keys": keys,
        "starts": np.append(starts, contents.keys.size),
        "code_starts": code_starts,
        "holders": contents.holders,
        "codes": contents.codes,
        "sizes": contents.sizes,
        "by_name": np.argsort(contents.names),
    }
    with path.open("wb") as file:
        ends = _write_records(file, contents.records)
        places = {}
        for name, array in {**arrays, "ends": ends}.items():
            file.write(b"\0" * (-file.tell() % 8))
            places[name] = (file.tell(), int(array.size))
            file.write(np.ascontiguousarray(array, DTYPES[name]).data)
        table = json.dumps(places).encode()
        file.write(table + len(table).to_bytes(8, "little"))
        file.flush()
        os.fsync(file.fileno())


def _write_records(file: Any, records: Iterable[bytes]) -> Array:
    ends, end = [0], 0
    for record in records:
        file.write(record)
        end += len(record)
        ends.append(end)
    return np.array(ends, np.uint64)


class SortedRun:
    """One file of formulas, in the order of size, then name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        length = int.from_bytes(self._map[-8:], "little")
        self._table: dict[str, tuple[int, int]] = json.loads(self._map[-8 - length : -8])
        self.keys, self.starts, self.code_starts = map(self._map_array, ("keys", "starts", "code_starts"))
        self.holders, self.codes, self.sizes = map(self._map_array, ("holders", "codes", "sizes"))
        self.by_name, self.ends = map(self._map_array, ("by_name", "ends"))
        self._keys, self._starts, self._ends = (
            self.keys.data,
            self.starts.data,
            self.ends.data,
        )  # single items are read faster from a memoryview than from an array

    def _map_array(self, name: str) -> Array:
        place, count = self._table[name]
        return np.frombuffer(self._map, DTYPES[name], count, place)

    def __len__(self) -> int:
        """Count the formulas."""
        return int(self.sizes.size)

    def find(self, key: int, codes: NumberCodes) -> Iterator[tuple[int, int]]:
        """Yield size and place of each formula whose index entry matches a subtree, smallest first, then by name."""
        place = bisect_left(self._keys, key)
        if place == len(self._keys) or self._keys[place] != key:
            return
        at, stop = self._starts[place], self._starts[place + 1]
        width, first, step = len(codes), int(self.code_starts[place]) - at * len(codes), FIRST_READ_POSTINGS
        searched = np.array(codes, np.int16)
        while at < stop:
            end = min(at + step, stop)
            holders = self.holders[at:end]
            if width:
                distances = np.abs(self.codes[first + at * width : first + end * width].reshape(-1, width) - searched)
                holders = holders[(distances[:, 0] if width == 1 else distances.max(axis=1)) <= MAX_CODE_DISTANCE]
            yield from zip(self.sizes[holders].tolist(), holders.tolist(), strict=True)
            at, step = end, min(step * READ_GROWTH, MAX_READ_POSTINGS)

    def name(self, place: int) -> str:
        """Return the name of a formula."""
        return self._find_name(place).decode()

    def _find_name(self, place: int) -> bytes:
        start = self._ends[place]
        return self._map[start : self._map.find(b"\0", start)]

    def holds(self, place: int, part: Outline) -> bool:
        """Tell whether a formula contains a subtree with numbers that are near; exact, unlike `find`."""
        return holds_packed(self.record(place), part)

    def known(self, place: int) -> KnownFormula:
        """Return a formula."""
        return unpack_formula(self.record(place), int(self.sizes[place]))

    def record(self, place: int) -> bytes:
        """Return a packed formula."""
        return self._map[self._ends[place] : self._ends[place + 1]]

    def __contains__(self, name: str) -> bool:
        """Tell whether there is a formula of this name."""
        low, high, searched = 0, len(self), name.encode()
        while low < high:
            middle = (low + high) // 2
            middle_name = self._find_name(int(self.by_name[middle]))
            if middle_name == searched:
                return True
            low, high = (middle + 1, high) if middle_name < searched else (low, middle)
        return False


def merge_runs(runs: Sequence[SortedRun]) -> Contents:
    """Return the contents of several runs, merged."""
    sizes = np.concatenate([run.sizes for run in runs])
    names = np.array([run._find_name(place) for run in runs for place in range(len(run))])
    order = np.lexsort((names, sizes))
    places = np.empty(order.size, np.uint32)
    places[order] = np.arange(order.size, dtype=np.uint32)
    base = np.cumsum([0, *(len(run) for run in runs)])
    records = (runs[at].record(inner) for at, inner in _locate_in_runs(order, base))
    keys = [np.repeat(run.keys, (run.starts[1:] - run.starts[:-1]).astype(np.int64)) for run in runs]
    holders = [places[run.holders.astype(np.int64) + first] for run, first in zip(runs, base, strict=False)]
    codes = np.concatenate([run.codes for run in runs])
    merged = Contents(sizes[order], names[order], records, np.concatenate(keys), np.concatenate(holders), codes)
    return _sort_by_key(merged)


def _locate_in_runs(order: Array, base: Array) -> Iterator[tuple[int, int]]:
    """Yield the run and the place in it of each place of the concatenated runs."""
    at = np.searchsorted(base, order, "right") - 1
    return zip(at.tolist(), (order - base[at]).tolist(), strict=True)
