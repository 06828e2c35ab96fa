"""Keep known formulas in one file that never changes: sorted, mapped into memory, searched by halving."""

from __future__ import annotations

import json
import mmap
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...factors.similarity import (
    MAX_CODE_DISTANCE,
    KnownFormula,
    NumberCodes,
    Outline,
    pack_formula,
    raw_holds,
    unpack_formula,
)
from .inverted_index import MAX_POSTING_CODES, Posting

Array = NDArray[Any]

FIRST_READ_POSTINGS, READ_GROWTH, MAX_READ_POSTINGS = 16, 8, 1 << 16
"""How many postings are read at once: few at first, since mostly few are wanted."""
DTYPES = {"keys": "<u8", "starts": "<u8", "code_starts": "<u8", "holders": "<u4", "codes": "<i2", "sizes": "<u2",
          "by_name": "<u4", "ends": "<u8"}  # fmt: skip


@dataclass(frozen=True)
class Contents:
    """What a run is made of.

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


def contents(formulas: Sequence[tuple[KnownFormula, Sequence[Posting]]]) -> Contents:
    """Sort formulas, each with its postings."""
    ordered = sorted(formulas, key=lambda each: (each[0].size, each[0].name))
    keys = np.fromiter((key for _, parts in ordered for key, _ in parts), np.uint64)
    counts = np.fromiter((len(parts) for _, parts in ordered), np.int64)
    codes = np.fromiter((code for _, parts in ordered for _, own in parts for code in own), np.int16)
    sizes = np.fromiter((known.size for known, _ in ordered), np.uint16)
    holders = np.repeat(np.arange(len(ordered), dtype=np.uint32), counts)
    names = np.array([known.name.encode() for known, _ in ordered])
    return _sort_by_key(Contents(sizes, names, (pack_formula(known) for known, _ in ordered), keys, holders, codes))


def _sort_by_key(given: Contents) -> Contents:
    """Sort postings by key, then by formula."""
    order = np.lexsort((given.holders, given.keys))
    counts = (given.keys & MAX_POSTING_CODES).astype(np.int64)
    first = np.cumsum(counts) - counts
    counts, first = counts[order], first[order]
    shift = first - (np.cumsum(counts) - counts)
    places = np.repeat(shift, counts) + np.arange(int(counts.sum()))
    keys, holders, codes = given.keys[order], given.holders[order], given.codes[places]
    return Contents(given.sizes, given.names, given.records, keys, holders, codes)


def write_run(path: Path, given: Contents) -> None:
    """Write a run; it is whole on the disk when this returns."""
    keys, starts = np.unique(given.keys, return_index=True)
    widths = (given.keys & MAX_POSTING_CODES).astype(np.int64)
    code_starts = (np.cumsum(widths) - widths)[starts] if starts.size else starts
    arrays = {
        "keys": keys, "starts": np.append(starts, given.keys.size), "code_starts": code_starts, "holders": given.holders,
        "codes": given.codes, "sizes": given.sizes, "by_name": np.argsort(given.names),
    }  # fmt: skip
    with path.open("wb") as file:
        ends = _write_records(file, given.records)
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
        self.keys, self.starts, self.code_starts = map(self._array, ("keys", "starts", "code_starts"))
        self.holders, self.codes, self.sizes = map(self._array, ("holders", "codes", "sizes"))
        self.by_name, self.ends = map(self._array, ("by_name", "ends"))
        self._keys, self._starts, self._ends = (
            self.keys.data,
            self.starts.data,
            self.ends.data,
        )  # single ones are read faster

    def _array(self, name: str) -> Array:
        place, count = self._table[name]
        return np.frombuffer(self._map, DTYPES[name], count, place)

    def __len__(self) -> int:
        """Count the formulas."""
        return int(self.sizes.size)

    def find(self, key: int, codes: NumberCodes) -> Iterator[tuple[int, int]]:
        """Yield size and place of each formula that seems to hold a subtree, smallest first, then by name."""
        place = bisect_left(self._keys, key)
        if place == len(self._keys) or self._keys[place] != key:
            return
        at, stop = self._starts[place], self._starts[place + 1]
        width, first, step = len(codes), int(self.code_starts[place]) - at * len(codes), FIRST_READ_POSTINGS
        wanted = np.array(codes, np.int16)
        while at < stop:
            end = min(at + step, stop)
            holders = self.holders[at:end]
            if width:
                off = np.abs(self.codes[first + at * width : first + end * width].reshape(-1, width) - wanted)
                holders = holders[(off[:, 0] if width == 1 else off.max(axis=1)) <= MAX_CODE_DISTANCE]
            yield from zip(self.sizes[holders].tolist(), holders.tolist(), strict=True)
            at, step = end, min(step * READ_GROWTH, MAX_READ_POSTINGS)

    def name(self, place: int) -> str:
        """Return the name of a formula."""
        return self._name(place).decode()

    def _name(self, place: int) -> bytes:
        start = self._ends[place]
        return self._map[start : self._map.find(b"\0", start)]

    def holds(self, place: int, part: Outline) -> bool:
        """Tell whether a subtree really stands in a formula, with numbers that are near."""
        return raw_holds(self.record(place), part)

    def known(self, place: int) -> KnownFormula:
        """Return a formula."""
        return unpack_formula(self.record(place), int(self.sizes[place]))

    def record(self, place: int) -> bytes:
        """Return a formula as it is packed."""
        return self._map[self._ends[place] : self._ends[place + 1]]

    def __contains__(self, name: str) -> bool:
        """Tell whether there is a formula of this name."""
        low, high, wanted = 0, len(self), name.encode()
        while low < high:
            middle = (low + high) // 2
            found = self._name(int(self.by_name[middle]))
            if found == wanted:
                return True
            low, high = (middle + 1, high) if found < wanted else (low, middle)
        return False


def merge_runs(runs: Sequence[SortedRun]) -> Contents:
    """Return the formulas of several runs as one."""
    sizes = np.concatenate([run.sizes for run in runs])
    names = np.array([run._name(place) for run in runs for place in range(len(run))])
    order = np.lexsort((names, sizes))
    places = np.empty(order.size, np.uint32)
    places[order] = np.arange(order.size, dtype=np.uint32)
    base = np.cumsum([0, *(len(run) for run in runs)])
    records = (runs[at].record(own) for at, own in _split(order, base))
    keys = [np.repeat(run.keys, (run.starts[1:] - run.starts[:-1]).astype(np.int64)) for run in runs]
    holders = [places[run.holders.astype(np.int64) + first] for run, first in zip(runs, base, strict=False)]
    codes = np.concatenate([run.codes for run in runs])
    together = Contents(sizes[order], names[order], records, np.concatenate(keys), np.concatenate(holders), codes)
    return _sort_by_key(together)


def _split(order: Array, base: Array) -> Iterator[tuple[int, int]]:
    """Yield for each place of all runs together its run and its place there."""
    at = np.searchsorted(base, order, "right") - 1
    return zip(at.tolist(), (order - base[at]).tolist(), strict=True)
