"""The newest calls of all segments, and those that come."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from .chain import CALL, Line, read
from .heads import segments
from .segment import SUFFIX, backwards

Row = dict[str, Any]


def latest(folder: Path, count: int) -> list[Row]:
    """Return the newest calls, oldest first, each with the name of its `segment`; damaged lines are passed over."""
    rows = (row for path in segments(folder) for row in islice(_newest(path), count))
    return sorted(heapq.nlargest(count, rows, key=_moment), key=_moment)


def follow(folder: Path, pause: Callable[[], object]) -> Iterator[Row]:
    """Yield each call that is recorded from now on, in all segments, also new ones; `pause` is called between looks."""
    return _followed(folder, pause, {path: path.stat().st_size for path in segments(folder)})


def _followed(folder: Path, pause: Callable[[], object], places: dict[Path, int]) -> Iterator[Row]:
    while True:
        pause()
        for path in segments(folder):
            rows, places[path] = _since(path, places.get(path, 0))
            yield from rows


def row_of(segment: str, line: Line) -> Row:
    """Return a call as a flat row."""
    return {"segment": segment.removesuffix(SUFFIX), **{key: line.record[key] for key in line.record if key != "kind"}}


def _newest(path: Path) -> Iterator[Row]:
    lines = backwards(path)
    next(lines)  # what no newline ends
    for raw in lines:
        line = read(raw)
        if line is not None and line.kind == CALL:
            yield row_of(path.name, line)


def _since(path: Path, place: int) -> tuple[list[Row], int]:
    """Return the calls in whole lines after a place in a file, and the place after them."""
    with path.open("rb") as file:
        file.seek(place)
        body, newline, _ = file.read().rpartition(b"\n")
    found = [read(raw) for raw in body.split(b"\n")] if newline else []
    rows = [row_of(path.name, line) for line in found if line is not None and line.kind == CALL]
    return rows, place + len(body) + len(newline)


def _moment(row: Row) -> tuple[str, str, int]:
    return str(row["time"]), str(row["segment"]), int(row["sequence"])
