"""Rank the names of one day exactly, by sorting whole numbers.

A float32 becomes an unsigned 32-bit number of the same order; with the column behind it in one 64-bit word, numpy's
vectorised sort of plain integers orders the row and says who stands where. Missing values become the largest word
and gather at the end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .across import Codes, Members
from .cells import NAN, ZERO, Array
from .kernel_cache import kernel

Keys = NDArray[np.uint64]
Columns = NDArray[np.int32]
Ties = NDArray[np.bool_]

MISSING = np.uint64(0xFFFFFFFFFFFFFFFF)
SIGN = np.uint32(0x80000000)
GROUP, ORDER, HALF_WORD = np.uint64(48), np.uint64(16), np.uint64(32)
LOW_HALF, LOW_QUARTER = np.uint64(0xFFFFFFFF), np.uint64(0xFFFF)
LONG_RUN = 24
ROWS = 64
"""Rows that are packed, sorted and ranked at a time, so that their words stay in the nearest cache."""


@kernel
def _ordered(bits: np.uint32) -> np.uint64:
    """Turn the bits of a float32 into a number of the same order."""
    return np.uint64(~bits if bits & SIGN else bits | SIGN)


@kernel
def pack(keys: Keys, values: Array, member: Members, first: int) -> None:
    """Write the words of some rows: order, then column."""
    line = np.empty(keys.shape[1], np.float32)
    bits = line.view(np.uint32)
    for k in range(keys.shape[0]):
        row, is_member = values[first + k], member[first + k]
        for j in range(line.size):
            line[j] = row[j] + ZERO  # minus zero becomes zero
        for j in range(line.size):
            word = (_ordered(bits[j]) << HALF_WORD) | np.uint64(j)
            keys[k, j] = word if is_member[j] & (row[j] == row[j]) else MISSING


@kernel
def pack_groups(keys: Keys, values: Array, codes: Codes, member: Members, first: int) -> None:
    """Write the words of some rows: group, then order, then column."""
    line = np.empty(keys.shape[1], np.float32)
    bits = line.view(np.uint32)
    for k in range(keys.shape[0]):
        row, is_member = values[first + k], member[first + k]
        for j in range(line.size):
            line[j] = row[j] + ZERO
        for j in range(line.size):
            word = (np.uint64(codes[j]) << GROUP) | (_ordered(bits[j]) << ORDER) | np.uint64(j)
            keys[k, j] = word if is_member[j] & (codes[j] >= 0) & (row[j] == row[j]) else MISSING


@kernel
def _present(keys: Keys) -> int:
    """Count the words of a sorted row that are not missing."""
    low, high = 0, keys.size
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] == MISSING:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def place(out: Array, keys: Keys, first: int, buckets: int) -> None:
    """Write percentile ranks, ties averaged, from sorted words; or their bucket, 1 to `buckets`."""
    for k in range(keys.shape[0]):
        line, o = keys[k], out[first + k]
        count = _present(line)
        o[:] = NAN
        start = 0
        while start < count:
            end = start + 1
            while end < count and line[end] >> HALF_WORD == line[start] >> HALF_WORD:
                end += 1
            twice = start + end + 1
            rank = np.float32(twice / (2.0 * count))
            if buckets > 0:
                rank = np.float32((buckets * twice + 2 * count - 1) // (2 * count))
            for at in range(start, end):
                o[line[at] & LOW_HALF] = rank
            start = end


@kernel
def place_groups(out: Array, keys: Keys, first: int) -> None:
    """Write percentile ranks within groups, ties averaged, from sorted words."""
    for k in range(keys.shape[0]):
        line, o = keys[k], out[first + k]
        count = _present(line)
        o[:] = NAN
        group_start, group_end, start = 0, 0, 0
        while start < count:
            if start == group_end:
                group_start = start
                while group_end < count and line[group_end] >> GROUP == line[start] >> GROUP:
                    group_end += 1
            end = start + 1
            while end < group_end and line[end] >> ORDER == line[start] >> ORDER:
                end += 1
            rank = np.float32((start + end + 1 - 2 * group_start) / (2.0 * (group_end - group_start)))
            for at in range(start, end):
                o[line[at] & LOW_QUARTER] = rank
            start = end


def rank(out: Array, values: Array, member: Members, lo: int, hi: int) -> None:
    """Rank the members of each day: ascending, ties averaged, over the count."""
    _rank(out, values, member, 0, lo, hi)


def quantile_bucket(out: Array, values: Array, member: Members, buckets: int, lo: int, hi: int) -> None:
    """Cut the ranks of each day into buckets 1 to `buckets`."""
    _rank(out, values, member, buckets, lo, hi)


def _rank(out: Array, values: Array, member: Members, buckets: int, lo: int, hi: int) -> None:
    keys = np.empty((min(ROWS, hi - lo), values.shape[1]), np.uint64)
    for first in range(lo, hi, ROWS):
        some = keys[: min(ROWS, hi - first)]
        pack(some, values, member, first)
        some.sort(axis=1)
        place(out, some, first, buckets)


def group_rank(out: Array, values: Array, codes: Codes, member: Members, lo: int, hi: int) -> None:
    """Rank the members of each group on each day: ascending, ties averaged, over the group's count."""
    keys = np.empty((min(ROWS, hi - lo), values.shape[1]), np.uint64)
    for first in range(lo, hi, ROWS):
        some = keys[: min(ROWS, hi - first)]
        pack_groups(some, values, codes, member, first)
        some.sort(axis=1)
        place_groups(out, some, first)
