"""The newest calls of all segments, and those that come."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from .chain import KIND_CALL, ChainedLine, read_line
from .heads import segments
from .segment import SEGMENT_SUFFIX, read_lines_backwards

Row = dict[str, Any]


def read_latest(folder: Path, count: int) -> list[Row]:
    """Return the newest calls, oldest first, each with the name of its `segment`; damaged lines are passed over."""
    rows = (row for path in segments(folder) for row in islice(_read_newest(path), count))
    return sorted(heapq.nlargest(count, rows, key=_moment), key=_moment)


def follow(folder: Path, pause: Callable[[], object]) -> Iterator[Row]:
    """Yield each call that is recorded from now on, in all segments, also new ones; `pause` is called between looks."""
    return _poll_calls(folder, pause, {path: path.stat().st_size for path in segments(folder)})


def _poll_calls(folder: Path, pause: Callable[[], object], places: dict[Path, int]) -> Iterator[Row]:
    while True:
        pause()
        for path in segments(folder):
            rows, places[path] = _read_since(path, places.get(path, 0))
            yield from rows


def row_of(segment: str, line: ChainedLine) -> Row:
    """Return a call as a flat row."""
    return {
        "segment": segment.removesuffix(SEGMENT_SUFFIX),
        **{key: line.record[key] for key in line.record if key != "kind"},
    }


def _read_newest(path: Path) -> Iterator[Row]:
    lines = read_lines_backwards(path)
    next(lines)  # what no newline ends
    for raw in lines:
        line = read_line(raw)
        if line is not None and line.kind == KIND_CALL:
            yield row_of(path.name, line)


def _read_since(path: Path, place: int) -> tuple[list[Row], int]:
    """Return the calls in whole lines after a place in a file, and the place after them."""
    with path.open("rb") as file:
        file.seek(place)
        body, newline, _ = file.read().rpartition(b"\n")
    found = [read_line(raw) for raw in body.split(b"\n")] if newline else []
    rows = [row_of(path.name, line) for line in found if line is not None and line.kind == KIND_CALL]
    return rows, place + len(body) + len(newline)


def _moment(row: Row) -> tuple[str, str, int]:
    return str(row["time"]), str(row["segment"]), int(row["sequence"])
