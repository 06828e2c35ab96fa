"""Sketches of a factor's ranks in 12 kB: they bound its rank correlation with any other factor.

A sketch has two parts. The first is a count sketch: each rank of a day, centred and scaled, is added with a hashed sign
to one of 8,192 buckets. The product of two sketches is that of all ranks, up to an error that does not depend on the
distribution of the ranks (Charikar, Chen and Farach-Colton 2002). The second is a sample of 4,096 cells, which shows
where only one of two factors has a value, and the distribution of the other ranks.

`SketchStore` stores sketches in a folder of the workspace: two files that only grow, and an SQLite table of their
contents. A sketch is valid once the table names it, in one transaction after both files are on the disk. A crash leaves
at most bytes that the next addition overwrites, and two processes wait for each other.
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
"""Distance in days of the compared days of the window."""
MIN_SKETCH_NAMES = 10
SKETCH_BUCKETS, SKETCH_CELLS = 8192, 4096
MAX_SKETCH_VALUE = 127
STEPS_PER_DEVIATION = 24.0
"""Steps of a sampled cell per standard deviation of a day's ranks; values beyond five deviations are clipped."""
MISSING_CELL = -128
SKETCH_SEED = 20_111

GUESS_STANDARD_ERRORS = 5.0
"""Standard errors of the slack of an estimate, which is exceeded in three of ten million cases."""
DISTORTION = 0.5
"""Slack for each cell that only one factor has, since ranks among fewer names differ. On random formulas on real prices
the measured error is at most a quarter of it."""
GUESS_ROUNDING = 0.002
MAX_APART_SHARE, MIN_SHARED_CELLS, MIN_SHARED_VARIANCE = 0.6, 64, 0.02
"""Limits of an estimate: largest share of cells that only one factor has (beyond it, days may have too few names for a
correlation), fewest shared cells of the sample, and least variance of either factor's ranks on them."""


SUMS = ("theirs", "both", "mine_sum", "mine_squares", "their_sum", "their_squares", "own_sum", "own_squares")
"""Sums over the sample: cells of the other and of both; moments of both on shared cells; the other's on all its
cells."""

SKETCH_BUSY_SECONDS = 60.0
TABLE_FILE = "sketches.sqlite"
SKETCH_FILES: Mapping[str, int] = MappingProxyType({"buckets.bin": SKETCH_BUCKETS, "cells.bin": SKETCH_CELLS})
SKETCH_TABLE = """CREATE TABLE IF NOT EXISTS sketches
(place INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, share REAL NOT NULL, length REAL NOT NULL)"""


@dataclass(frozen=True, eq=False)
class Sketch:
    """The sketch of one factor.

    Attributes
    ----------
    buckets : NDArray[np.int8]
        ``[8192]``, scaled to a largest absolute value of 127.
    cells : NDArray[np.int8]
        ``[4096]``: the sampled ranks in 24ths of a standard deviation; -128 is missing.
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
        """Return several sketches as one."""
        buckets = np.array([sketch.buckets for sketch in sketches], np.int8).reshape(-1, SKETCH_BUCKETS)
        cells = np.array([sketch.cells for sketch in sketches], np.int8).reshape(-1, SKETCH_CELLS)
        shares, lengths = ([getattr(sketch, name) for sketch in sketches] for name in ("share", "length"))
        return cls(buckets, cells, np.array(shares, np.float64), np.array(lengths, np.float64))

    def __len__(self) -> int:
        """Count the sketches."""
        return len(self.shares)


@dataclass(frozen=True)
class Sketcher:
    """Sketches factors of one panel over one window.

    Attributes
    ----------
    universe : NDArray[np.bool_]
        Membership ``[T, N]`` of the panel.
    window : Window
        Every fifth of its days is compared.
    """

    universe: NDArray[np.bool_]
    window: Window

    @cached_property
    def _names_per_day(self) -> Frame:
        """Return the number of names of each compared day; NaN if too few for a correlation."""
        counts = self.window.cut(self.universe)[::SKETCH_STEP_DAYS].sum(axis=1).astype(np.float64)
        return np.where(counts >= MIN_SKETCH_NAMES, counts, np.nan)

    @cached_property
    def _sample_places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return days and columns of the sampled cells: members of the universe, equally many on each day."""
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

        Days with fewer than 10 values, or only equal ones, count as missing: they have no rank correlation.
        """
        scores = rank_rows(np.ascontiguousarray(self.window.cut(values)[::SKETCH_STEP_DAYS]))
        totals = np.zeros(SKETCH_BUCKETS)
        share = _add_to_buckets(totals, scores, self._names_per_day)
        largest = float(np.abs(totals).max())
        buckets = np.rint(totals * (MAX_SKETCH_VALUE / largest if largest > 0 else 0.0)).astype(np.int8)
        sampled = scores[self._sample_places]
        steps = np.clip(np.rint(np.nan_to_num(sampled) * STEPS_PER_DEVIATION), -MAX_SKETCH_VALUE, MAX_SKETCH_VALUE)
        cells = np.where(np.isnan(sampled), MISSING_CELL, steps).astype(np.int8)
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
    """Centre a day's ranks and scale them to mean square 1, in place; NaN with too few or equal ranks."""
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
def _add_to_buckets(totals: Frame, ranks: Frame, inhabited: Frame) -> float:
    """Standardise ranks in place and add them to their buckets, so that every day has the same weight.

    Returns the mean share of the universe with a value.
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
                score = row[j] * weight
                totals[bits % np.uint64(SKETCH_BUCKETS)] += score if bits >> np.uint64(63) else -score
    return share / max(days, 1)


@dataclass(frozen=True)
class Guesses:
    """Estimates of the rank correlation of one factor with others.

    Attributes
    ----------
    rank_correlation : NDArray[np.float64]
        ``[n]``, in [-1, 1].
    slack : NDArray[np.float64]
        ``[n]``: bound of the error; 2, no bound at all, where the two share too little.
    """

    rank_correlation: Frame
    slack: Frame

    @property
    def most(self) -> Frame:
        """Return a bound of the absolute correlations, ``[n]``."""
        return np.asarray(np.abs(self.rank_correlation) + self.slack)


def estimate_correlations(one: Sketch, others: Sketches) -> Guesses:
    """Estimate the mean daily rank correlation of one factor with others, all sketched by one sketcher.

    Notes
    -----
    The product over shared cells is of ranks among all names of each factor; mean and variance of the sampled ranks on
    shared cells correct it. The remaining error is that ranks among shared names are not linear in these, and chance in
    the buckets; the slack covers both.
    """
    products = np.empty(len(others), np.int32)
    sums = np.empty((len(others), len(SUMS)), np.int32)
    _multiply_buckets(products, others.buckets, one.buckets)
    _sum_cells(sums, others.cells, one.cells)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = products / (one.length * others.lengths)
        return _correct_cosine(cosine, one.share, others.shares, _SampledCells.of(one.cells, sums))


@kernel
def _multiply_buckets(products: NDArray[np.int32], others: Bytes, one: NDArray[np.int8]) -> None:
    """Multiply buckets as integers: 16 bits hold a product, and 32 bits the sum."""
    for at in range(others.shape[0]):
        row, total = others[at], np.int32(0)
        for j in range(one.size):
            total = np.int32(total + np.int32(np.int16(row[j]) * np.int16(one[j])))
        products[at] = total


@kernel
def _sum_cells(sums: NDArray[np.int32], others: Bytes, one: NDArray[np.int8]) -> None:
    """Fill `SUMS` for each record."""
    for at in range(others.shape[0]):
        row, out = others[at], sums[at]
        theirs, both, a_sum, a_squares = np.int32(0), np.int32(0), np.int32(0), np.int32(0)
        b_sum, b_squares, all_sum, all_squares = np.int32(0), np.int32(0), np.int32(0), np.int32(0)
        for j in range(one.size):
            a, b = np.int16(one[j]), np.int16(row[j])
            in_other = np.int16(b != MISSING_CELL)
            in_both = np.int16(in_other & np.int16(a != MISSING_CELL))
            own_value, other_value = np.int16(a * in_both), np.int16(b * in_other)
            shared = np.int16(b * in_both)
            theirs = np.int32(theirs + in_other)
            both = np.int32(both + in_both)
            a_sum = np.int32(a_sum + own_value)
            a_squares = np.int32(a_squares + np.int32(np.int16(own_value) * np.int16(own_value)))
            b_sum = np.int32(b_sum + shared)
            b_squares = np.int32(b_squares + np.int32(np.int16(shared) * np.int16(shared)))
            all_sum = np.int32(all_sum + other_value)
            all_squares = np.int32(all_squares + np.int32(np.int16(other_value) * np.int16(other_value)))
        out[0], out[1], out[2], out[3] = theirs, both, a_sum, a_squares
        out[4], out[5], out[6], out[7] = b_sum, b_squares, all_sum, all_squares


@dataclass(frozen=True)
class _SampledCells:
    """Statistics of the sampled cells of one factor and each of the others.

    `mean` and `variance` are of either factor's ranks on shared cells, corrected by the sampling error on all cells of
    that factor, where they are known to be 0 and 1.
    """

    mine: float
    theirs: Frame
    both: Frame
    mean: tuple[Frame, Frame]
    variance: tuple[Frame, Frame]

    @classmethod
    def of(cls, one: NDArray[np.int8], sums: NDArray[np.int32]) -> _SampledCells:
        own_cells = one[one != MISSING_CELL].astype(np.float64)
        theirs, both, a, aa, b, bb, all_b, all_bb = sums.T.astype(np.float64)
        pairs = ((a, aa, own_cells.sum(), (own_cells**2).sum(), own_cells.size), (b, bb, all_b, all_bb, theirs))
        moments = [
            _correct_moments(part, squares, both, whole, whole_squares, count)
            for part, squares, whole, whole_squares, count in pairs
        ]
        (mean_a, variance_a), (mean_b, variance_b) = moments
        return cls(float(own_cells.size), theirs, both, (mean_a, mean_b), (variance_a, variance_b))


def _correct_moments(
    part: Frame, squares: Frame, both: Frame, whole: Frame, whole_squares: Frame, count: Frame | int
) -> tuple[Frame, Frame]:
    """Return mean and variance on shared cells, corrected by those on all cells."""
    mean = (part / both - whole / count) / STEPS_PER_DEVIATION
    return mean, 1.0 + (squares / both - whole_squares / count) / STEPS_PER_DEVIATION**2 - mean**2


def _correct_cosine(cosine: Frame, share: float, shares: Frame, sampled: _SampledCells) -> Guesses:
    """Convert the cosine of sketches into a correlation over shared cells."""
    shared = 0.5 * (share + shares - (sampled.mine + sampled.theirs - 2.0 * sampled.both) / SKETCH_CELLS)
    apart = np.clip(1.0 - shared / (share + shares - shared), 0.0, 1.0)
    product = cosine * np.sqrt(share * shares) / shared - sampled.mean[0] * sampled.mean[1]
    least_variance = np.minimum(*sampled.variance)
    estimate = product / np.sqrt(sampled.variance[0] * sampled.variance[1])
    shares_enough = (apart <= MAX_APART_SHARE) & (sampled.both >= MIN_SHARED_CELLS)
    is_known = shares_enough & (least_variance > MIN_SHARED_VARIANCE) & np.isfinite(estimate)
    correlation = np.clip(np.where(is_known, estimate, 0.0), -1.0, 1.0)
    chance = np.sqrt((1.0 - correlation**2) ** 2 / SKETCH_BUCKETS + apart / SKETCH_CELLS)
    no_bound = np.where(share * shares > 0, 2.0, 0.0)  # a factor without values has correlation 0
    return Guesses(
        correlation, np.where(is_known, GUESS_STANDARD_ERRORS * chance + DISTORTION * apart + GUESS_ROUNDING, no_bound)
    )


class SketchStore:
    """The sketches of one panel and window, by name of the factor; a stored name keeps its sketch."""

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
        """Open the table for one use, since a campaign may last for days."""
        connection = sqlite3.connect(
            self._folder / TABLE_FILE, timeout=SKETCH_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA synchronous = FULL")
            yield connection
        finally:
            connection.close()

    def read(self) -> None:
        """Read the sketches again, with those that other processes have added."""
        with self._lock, explained(self._folder), self._open() as connection:
            rows = connection.execute("SELECT name, share, length FROM sketches ORDER BY place").fetchall()
            buckets, cells = (self._read_file(file, len(rows)) for file in SKETCH_FILES)
            shares, lengths = (np.array([row[at] for row in rows], np.float64) for at in (1, 2))
            self.names, self.sketches = tuple(row[0] for row in rows), Sketches(buckets, cells, shares, lengths)

    def _read_file(self, file: str, count: int) -> NDArray[np.int8]:
        width = SKETCH_FILES[file]
        if not count:
            return np.empty((0, width), np.int8)
        with (self._folder / file).open("rb") as stream:
            body = stream.read(count * width)
        return np.frombuffer(body, np.int8).reshape(count, width)

    def add(self, sketches: Mapping[str, Sketch]) -> int:
        """Add sketches and return how many were new; they are on the disk on return."""
        with self._lock, explained(self._folder), self._open() as connection:
            with begin_immediate(connection):
                stored = {name for (name,) in connection.execute("SELECT name FROM sketches")}
                fresh = {name: sketches[name] for name in sorted(sketches) if name not in stored}
                self._append(list(fresh.values()), len(stored))
                rows = [
                    (len(stored) + at, name, sketch.share, sketch.length)
                    for at, (name, sketch) in enumerate(fresh.items())
                ]
                connection.executemany("INSERT INTO sketches VALUES (?, ?, ?, ?)", rows)
            self.read()
        return len(fresh)

    def _append(self, fresh: list[Sketch], place: int) -> None:
        """Write after the listed sketches, over bytes that a crash may have left."""
        contents = [[sketch.buckets for sketch in fresh], [sketch.cells for sketch in fresh]]
        for (file, width), parts in zip(SKETCH_FILES.items(), contents, strict=True):
            with _open_for_writing(self._folder / file) as stream:
                stream.seek(place * width)
                stream.write(b"".join(part.tobytes() for part in parts))
                stream.flush()
                os.fsync(stream.fileno())


def _open_for_writing(path: Path) -> BinaryIO:
    """Open a file to write into it, without truncation."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600), "r+b")
