"""Sketches of a factor's ranks in 12 kB: they bound its rank correlation with any other factor.

A sketch has two parts. A count sketch: each rank of a day, centred and scaled, is added with a hashed sign to one of 8,192
buckets. The product of two sketches is that of all ranks, up to an error that does not depend on how the ranks are
distributed (Charikar, Chen and Farach-Colton 2002). And a sample of 4,096 cells, which shows where only one of two factors
has a value, and how the ranks of the rest lie.

`SketchStore` keeps sketches in a folder of the workspace: two files that only grow, and an SQLite table of their contents. A
sketch counts once the table names it, in one transaction after both files are on the disk. So a crash leaves at most bytes
that the next addition writes over, and two processes wait for each other.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from ...factors import rank_rows
from ...factors.kernels import kernel
from ...ledger.database import begin_immediate, explained
from ...ledger.files import make_file, make_folder
from ..windows import Window

Values = NDArray[np.float32]
Frame = NDArray[np.float64]
Bytes = NDArray[np.int8]

SKETCH_STEP_DAYS = 5
"""Every so many days of the window are compared."""
MIN_SKETCH_NAMES = 10
SKETCH_BUCKETS, SKETCH_CELLS = 8192, 4096
MAX_SKETCH_VALUE = 127
STEPS_PER_DEVIATION = 24.0
"""Steps of a sampled cell for one standard deviation of a day's ranks; beyond five of them it is held."""
MISSING_CELL = -128
SKETCH_SEED = 20_111

GUESS_STANDARD_ERRORS = 5.0
"""Standard errors that a guess is allowed to be off: in three of ten million it is more."""
DISTORTION = 0.5
"""What a guess is allowed to be off beside that, for each cell that only one has: ranks among fewer names are others.
Measured on random formulas on real prices it was a quarter of that at most."""
GUESS_ROUNDING = 0.002
MAX_APART_SHARE, MIN_SHARED_CELLS, MIN_SHARED_VARIANCE = 0.6, 64, 0.02
"""Nothing is guessed where more cells than that are one's alone (there are days then with too few names for a correlation),
fewer sampled ones are shared, or the variance of either's ranks on them is below."""


SUMS = ("theirs", "both", "mine_sum", "mine_squares", "their_sum", "their_squares", "own_sum", "own_squares")
"""Of sampled cells: how many they have and both have; sums over these of either's ranks; sums over all of theirs."""

SKETCH_BUSY_SECONDS = 60.0
TABLE_FILE = "sketches.sqlite"
SKETCH_FILES: Mapping[str, int] = MappingProxyType({"buckets.bin": SKETCH_BUCKETS, "cells.bin": SKETCH_CELLS})
SKETCH_TABLE = """CREATE TABLE IF NOT EXISTS sketches
(place INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, share REAL NOT NULL, length REAL NOT NULL)"""


@dataclass(frozen=True, eq=False)
class Sketch:
    """What is kept of one factor.

    Attributes
    ----------
    buckets : NDArray[np.int8]
        ``[8192]``, the largest of them 127 in size.
    cells : NDArray[np.int8]
        ``[4096]``: the sampled ranks in steps of a 24th of a standard deviation; -128 is missing.
    share : float
        Mean share of a day's universe that has a value.
    """

    buckets: NDArray[np.int8]
    cells: NDArray[np.int8]
    share: float

    @property
    def length(self) -> float:
        """Return the Euclidean length of the buckets."""
        return float(np.linalg.norm(self.buckets.astype(np.float64)))


@dataclass(frozen=True, eq=False)
class Sketches:
    """Many sketches, as rows of contiguous arrays: `buckets` ``[n, 8192]``, `cells` ``[n, 4096]``, the rest ``[n]``."""

    buckets: Bytes
    cells: Bytes
    shares: Frame
    lengths: Frame

    @classmethod
    def of(cls, sketches: Sequence[Sketch]) -> Sketches:
        """Return sketches as one."""
        buckets = np.array([one.buckets for one in sketches], np.int8).reshape(-1, SKETCH_BUCKETS)
        cells = np.array([one.cells for one in sketches], np.int8).reshape(-1, SKETCH_CELLS)
        shares, lengths = ([getattr(one, name) for one in sketches] for name in ("share", "length"))
        return cls(buckets, cells, np.array(shares, np.float64), np.array(lengths, np.float64))

    def __len__(self) -> int:
        """Count them."""
        return len(self.shares)


@dataclass(frozen=True)
class Sketcher:
    """Sketches factors of one panel over one window.

    Attributes
    ----------
    universe : NDArray[np.bool_]
        ``[T, N]``, as the panel has it.
    window : Window
        Every fifth of its days is compared.
    """

    universe: NDArray[np.bool_]
    window: Window

    @cached_property
    def _names_per_day(self) -> Frame:
        """Return how many names each compared day has; NaN where they are too few for a correlation."""
        counts = self.window.cut(self.universe)[::SKETCH_STEP_DAYS].sum(axis=1).astype(np.float64)
        return np.where(counts >= MIN_SKETCH_NAMES, counts, np.nan)

    @cached_property
    def _sample_places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return days and columns of the sampled cells: as many on each day, members of the universe."""
        rng = np.random.default_rng(SKETCH_SEED)
        member = self.window.cut(self.universe)[::SKETCH_STEP_DAYS]
        usable = np.flatnonzero(~np.isnan(self._names_per_day))
        if not usable.size:
            return np.zeros(SKETCH_CELLS, np.int64), np.zeros(SKETCH_CELLS, np.int64)
        days = usable[np.arange(SKETCH_CELLS) * usable.size // SKETCH_CELLS]
        columns = np.empty(SKETCH_CELLS, np.int64)
        for day in np.unique(days):
            here = days == day
            columns[here] = rng.permutation(np.resize(rng.permutation(np.flatnonzero(member[day])), here.sum()))
        return days, columns

    def sketch(self, values: Values) -> Sketch:
        """Return the sketch of a factor's values `[T, N]`, NaN where missing.

        Days on which it has fewer than 10 values, or all are equal, count as missing: they have no rank correlation.
        """
        scores = rank_rows(np.ascontiguousarray(self.window.cut(values)[::SKETCH_STEP_DAYS]))
        totals = np.zeros(SKETCH_BUCKETS)
        share = _fill(totals, scores, self._names_per_day)
        most = float(np.abs(totals).max())
        buckets = np.rint(totals * (MAX_SKETCH_VALUE / most if most > 0 else 0.0)).astype(np.int8)
        near = scores[self._sample_places]
        steps = np.clip(np.rint(np.nan_to_num(near) * STEPS_PER_DEVIATION), -MAX_SKETCH_VALUE, MAX_SKETCH_VALUE)
        cells = np.where(np.isnan(near), MISSING_CELL, steps).astype(np.int8)
        return Sketch(buckets, cells, share)


@kernel
def _mix_bits(number: np.uint64) -> np.uint64:
    """Scatter a number over 64 bits (SplitMix64, Steele, Lea and Flood 2014)."""
    number = (number + np.uint64(SKETCH_SEED)) * np.uint64(0x9E3779B97F4A7C15)
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


@kernel
def _standardise(row: Frame) -> int:
    """Centre a day's ranks and scale them to mean square 1, in place; all missing where that cannot be done."""
    count, total, low, high = 0, 0.0, np.inf, -np.inf
    for j in range(row.size):
        if row[j] == row[j]:
            count += 1
            total += row[j]
            low, high = min(low, row[j]), max(high, row[j])
    if (count < MIN_SKETCH_NAMES) | (low == high):
        row[:] = np.nan
        return 0
    mean, square = total / count, 0.0
    for j in range(row.size):
        if row[j] == row[j]:
            square += (row[j] - mean) * (row[j] - mean)
    factor = 1.0 / np.sqrt(square / count)
    for j in range(row.size):
        row[j] = (row[j] - mean) * factor
    return count


@kernel
def _fill(totals: Frame, ranks: Frame, inhabited: Frame) -> float:
    """Turn ranks into scores, in place, and add them to their buckets, so that every day weighs the same.

    Returns the mean share of the universe that has a score.
    """
    share, days = 0.0, 0
    for day in range(ranks.shape[0]):
        row = ranks[day]
        if inhabited[day] != inhabited[day]:
            row[:] = np.nan
            continue
        days += 1
        share += _standardise(row) / inhabited[day]
        weight = 1.0 / np.sqrt(inhabited[day])
        for j in range(row.size):
            if row[j] == row[j]:
                bits = _mix_bits(np.uint64(day * row.size + j))
                own = row[j] * weight
                totals[bits % np.uint64(SKETCH_BUCKETS)] += own if bits >> np.uint64(63) else -own
    return share / max(days, 1)


@dataclass(frozen=True)
class Guesses:
    """What sketches say of the rank correlation of one factor with others.

    Attributes
    ----------
    rank_correlation : NDArray[np.float64]
        ``[n]``, in [-1, 1].
    slack : NDArray[np.float64]
        ``[n]``: by how much it may be off; 2, which is anything, where the two share too little.
    """

    rank_correlation: Frame
    slack: Frame

    @property
    def most(self) -> Frame:
        """Return the largest size that each correlation may have."""
        return np.asarray(np.abs(self.rank_correlation) + self.slack)


def estimate_correlations(one: Sketch, others: Sketches) -> Guesses:
    """Guess the mean daily rank correlation of one factor with others, all sketched by one sketcher.

    Notes
    -----
    The product over shared cells of ranks among all own names is put right by mean and variance of the sampled ranks
    that both have. What is left is that ranks among the shared names are no straight line of those; that, and the
    chance in the buckets, is in the slack.
    """
    products = np.empty(len(others), np.int32)
    sums = np.empty((len(others), len(SUMS)), np.int32)
    _multiply(products, others.buckets, one.buckets)
    _gather(sums, others.cells, one.cells)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = products / (one.length * others.lengths)
        return _correct_cosine(cosine, one.share, others.shares, _SampledCells.of(one.cells, sums))


@kernel
def _multiply(products: NDArray[np.int32], others: Bytes, one: NDArray[np.int8]) -> None:
    """Multiply buckets, in whole numbers: sixteen bits hold a product, and 32 the sum."""
    for at in range(others.shape[0]):
        row, total = others[at], np.int32(0)
        for j in range(one.size):
            total = np.int32(total + np.int32(np.int16(row[j]) * np.int16(one[j])))
        products[at] = total


@kernel
def _gather(sums: NDArray[np.int32], others: Bytes, one: NDArray[np.int8]) -> None:
    """Fill `SUMS` for each record."""
    for at in range(others.shape[0]):
        row, out = others[at], sums[at]
        theirs, both, a_sum, a_squares = np.int32(0), np.int32(0), np.int32(0), np.int32(0)
        b_sum, b_squares, all_sum, all_squares = np.int32(0), np.int32(0), np.int32(0), np.int32(0)
        for j in range(one.size):
            a, b = np.int16(one[j]), np.int16(row[j])
            there = np.int16(b != MISSING_CELL)
            here = np.int16(there & np.int16(a != MISSING_CELL))
            mine, own = np.int16(a * here), np.int16(b * there)
            shared = np.int16(b * here)
            theirs = np.int32(theirs + there)
            both = np.int32(both + here)
            a_sum = np.int32(a_sum + mine)
            a_squares = np.int32(a_squares + np.int32(np.int16(mine) * np.int16(mine)))
            b_sum = np.int32(b_sum + shared)
            b_squares = np.int32(b_squares + np.int32(np.int16(shared) * np.int16(shared)))
            all_sum = np.int32(all_sum + own)
            all_squares = np.int32(all_squares + np.int32(np.int16(own) * np.int16(own)))
        out[0], out[1], out[2], out[3] = theirs, both, a_sum, a_squares
        out[4], out[5], out[6], out[7] = b_sum, b_squares, all_sum, all_squares


@dataclass(frozen=True)
class _SampledCells:
    """What the sampled cells say of one factor and each of the others.

    `mean` and `variance` are of either's ranks on the cells that both have, less what the same sample is off on all that
    it has itself: there they are 0 and 1.
    """

    mine: float
    theirs: Frame
    both: Frame
    mean: tuple[Frame, Frame]
    variance: tuple[Frame, Frame]

    @classmethod
    def of(cls, one: NDArray[np.int8], sums: NDArray[np.int32]) -> _SampledCells:
        own = one[one != MISSING_CELL].astype(np.float64)
        theirs, both, a, aa, b, bb, all_b, all_bb = sums.T.astype(np.float64)
        pairs = ((a, aa, own.sum(), (own**2).sum(), own.size), (b, bb, all_b, all_bb, theirs))
        moments = [_moments(part, squares, both, whole, whole_squares, count)
                   for part, squares, whole, whole_squares, count in pairs]  # fmt: skip
        (mean_a, variance_a), (mean_b, variance_b) = moments
        return cls(float(own.size), theirs, both, (mean_a, mean_b), (variance_a, variance_b))


def _moments(
    part: Frame, squares: Frame, both: Frame, whole: Frame, whole_squares: Frame, count: Frame | int
) -> tuple[Frame, Frame]:
    """Return mean and variance on shared cells, by how far these are from all cells."""
    mean = (part / both - whole / count) / STEPS_PER_DEVIATION
    return mean, 1.0 + (squares / both - whole_squares / count) / STEPS_PER_DEVIATION**2 - mean**2


def _correct_cosine(cosine: Frame, share: float, shares: Frame, sampled: _SampledCells) -> Guesses:
    """Turn the cosine of sketches into a correlation over shared cells."""
    shared = 0.5 * (share + shares - (sampled.mine + sampled.theirs - 2.0 * sampled.both) / SKETCH_CELLS)
    apart = np.clip(1.0 - shared / (share + shares - shared), 0.0, 1.0)
    product = cosine * np.sqrt(share * shares) / shared - sampled.mean[0] * sampled.mean[1]
    narrow = np.minimum(*sampled.variance)
    guessed = product / np.sqrt(sampled.variance[0] * sampled.variance[1])
    enough = (apart <= MAX_APART_SHARE) & (sampled.both >= MIN_SHARED_CELLS)
    known = enough & (narrow > MIN_SHARED_VARIANCE) & np.isfinite(guessed)
    held = np.clip(np.where(known, guessed, 0.0), -1.0, 1.0)
    chance = np.sqrt((1.0 - held**2) ** 2 / SKETCH_BUCKETS + apart / SKETCH_CELLS)
    unknown = np.where(share * shares > 0, 2.0, 0.0)  # one without a value on any day is correlated with nothing
    return Guesses(held, np.where(known, GUESS_STANDARD_ERRORS * chance + DISTORTION * apart + GUESS_ROUNDING, unknown))


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
