"""Export the record of calls: its lines unchanged, or a table, with a summary that names who made the export."""

from __future__ import annotations

import csv
import hashlib
import heapq
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from ..database.protocol import explained
from ..errors import CallsDamaged, LedgerError
from ..files.given_file import read_given_text
from ..files.objects import PUBLIC_FILE_MODE, write_json
from .heads import CALLS_FORMAT, Head, list_segments
from .segment import KIND_CALL, SEGMENT_SUFFIX, ChainedLine, read_line, read_lines, read_lines_backwards
from .verification import Verified, verify_calls

Row = dict[str, Any]


CALL_COLUMNS = (
    "segment", "sequence", "time", "who", "server", "tool", "outcome", "code", "arguments", "as_of", "rows", "bytes",
    "result", "duration_ms", "previous", "hash",
)  # fmt: skip  # a table
PARQUET_GROUP_ROWS = 50_000
"""Rows of a Parquet row group, which is held in memory."""
Heads: TypeAlias = Mapping[str, Head]


@dataclass(frozen=True)
class CallExport:
    """The files written, and the result of verifying the record."""

    file: Path
    summary: Path
    reading: Verified


def export_calls(folder: Path, file: Path, *, by: str, now: datetime) -> CallExport:
    """Write all calls to a file, and a summary beside it: who exported it (`by`), when, and every segment's head.

    The suffix of the file chooses the format: `.jsonl` has the lines unchanged, so that anybody can check the chain,
    `.csv` and `.parquet` have a row for each call. A damaged record is exported too; the summary lists the damage.
    """
    if file.suffix not in _WRITERS:
        raise LedgerError(
            "The ending of the file says what is written.", field="FILE", got=file.name, allowed=list(_WRITERS)
        )
    reading = verify_calls(folder)
    with explained(file):
        _WRITERS[file.suffix](folder, reading.heads, file)
        with file.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
        summary = file.with_name(f"{file.name}.summary.json")
        body = {
            "format": CALLS_FORMAT,
            "file": file.name,
            "sha256": content,
            "by": by,
            "time": now.astimezone(UTC).isoformat(),
            "heads": [asdict(reading.heads[name]) for name in sorted(reading.heads)],
            **reading.record(),
        }
        write_json(summary, body, mode=PUBLIC_FILE_MODE)
    return CallExport(file, summary, reading)


def anchors_of(summary: Path) -> list[Head]:
    """Return the heads of the segments in the summary of an export.

    Raises
    ------
    CallsDamaged
        If the file is missing or is no such summary.
    """
    try:
        return [Head(**fields) for fields in json.loads(read_given_text(summary))["heads"]]
    except FileNotFoundError:
        raise CallsDamaged(f"there is no summary {summary}", field="--summary", got=str(summary)) from None
    except (ValueError, KeyError, TypeError, RecursionError, OSError) as error:
        reason = f": {error.strerror}" if isinstance(error, OSError) else ""
        raise CallsDamaged(
            f"{summary} is no summary of an export{reason}",
            field="--summary",
            got=str(summary),
            allowed="what alphaloom audit export wrote beside its file",
        ) from None


def _iter_lines(folder: Path, heads: Heads) -> Iterator[tuple[str, bytes, ChainedLine | None]]:
    """Yield the lines of all segments up to their heads; lines added after verification are left out."""
    for path in list_segments(folder):
        head = heads.get(path.name)
        for raw in read_lines(path):
            line = read_line(raw.removesuffix(b"\n"))
            if not raw.endswith(b"\n") or (line and head and line.link.sequence > head.sequence):
                break
            yield path.name, raw, line


def _iter_calls(folder: Path, heads: Heads) -> Iterator[Row]:
    """Yield every readable call, segment by segment, in the order of their numbers."""
    for name, _, line in _iter_lines(folder, heads):
        if line is not None and line.kind == KIND_CALL:
            yield row_of(name, line)


def _write_lines(folder: Path, heads: Heads, file: Path) -> None:
    with file.open("wb") as out:
        out.writelines(raw for _, raw, _ in _iter_lines(folder, heads))


def _write_csv(folder: Path, heads: Heads, file: Path) -> None:
    with file.open("w", encoding="utf-8", errors="backslashreplace", newline="") as out:
        table = csv.DictWriter(out, CALL_COLUMNS)
        table.writeheader()
        table.writerows(
            {key: escape_formula(value) for key, value in row.items()} for row in _iter_calls(folder, heads)
        )


def escape_formula(value: Any) -> Any:
    """Return a cell of CSV that no spreadsheet executes as a formula: names come from elsewhere."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def _write_parquet(folder: Path, heads: Heads, file: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {"sequence": pa.int64(), "rows": pa.int64(), "bytes": pa.int64(), "duration_ms": pa.float64()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in CALL_COLUMNS])
    every = _iter_calls(folder, heads)
    with parquet.ParquetWriter(file, schema) as out:
        while group := list(islice(every, PARQUET_GROUP_ROWS)):
            out.write_table(pa.Table.from_pylist([_encode_surrogates(row) for row in group], schema))


def _encode_surrogates(row: Row) -> Row:
    """Return a row that Arrow can store: half a surrogate pair becomes its escape."""
    return {
        key: value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
        for key, value in row.items()
    }


_WRITERS = {".jsonl": _write_lines, ".csv": _write_csv, ".parquet": _write_parquet}


def read_latest(folder: Path, count: int) -> list[Row]:
    """Return the newest calls, oldest first, each with the name of its `segment`; damaged lines are skipped."""
    rows = (row for path in list_segments(folder) for row in islice(_read_newest(path), count))
    return sorted(heapq.nlargest(count, rows, key=_build_sort_key), key=_build_sort_key)


def list_calls(folder: Path, server: str, tool: str) -> list[Row]:
    """Return the calls of one tool of a server, oldest first; damaged lines are skipped."""
    mark = f'"tool":{json.dumps(tool)}'.encode()  # most lines are of other tools, and need not be parsed
    rows = (row for path in list_segments(folder) for row in _read_marked(path, mark))
    return sorted((row for row in rows if (row["server"], row["tool"]) == (server, tool)), key=_build_sort_key)


def _read_marked(path: Path, mark: bytes) -> Iterator[Row]:
    """Yield the calls of a segment whose line has a mark."""
    for raw in read_lines(path):
        line = read_line(raw.removesuffix(b"\n")) if mark in raw else None
        if line is not None and line.kind == KIND_CALL:
            yield row_of(path.name, line)


def follow(folder: Path, pause: Callable[[], object]) -> Iterator[Row]:
    """Yield each call recorded from now on, in all segments, new ones too; `pause` is called between polls."""
    return _poll_calls(folder, pause, {path: path.stat().st_size for path in list_segments(folder)})


def _poll_calls(folder: Path, pause: Callable[[], object], places: dict[Path, int]) -> Iterator[Row]:
    while True:
        pause()
        for path in list_segments(folder):
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
    next(lines)  # the unfinished last line, or nothing
    for raw in lines:
        line = read_line(raw)
        if line is not None and line.kind == KIND_CALL:
            yield row_of(path.name, line)


def _read_since(path: Path, place: int) -> tuple[list[Row], int]:
    """Return the calls in whole lines after a place in a file, and the place after them."""
    with path.open("rb") as file:
        file.seek(place)
        body, newline, _ = file.read().rpartition(b"\n")
    parsed = [read_line(raw) for raw in body.split(b"\n")] if newline else []
    rows = [row_of(path.name, line) for line in parsed if line is not None and line.kind == KIND_CALL]
    return rows, place + len(body) + len(newline)


def _build_sort_key(row: Row) -> tuple[str, str, int]:
    return str(row["time"]), str(row["segment"]), int(row["sequence"])
