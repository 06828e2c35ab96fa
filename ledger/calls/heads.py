"""The head file, which stores the last line of each segment, and the anchors in the first line of a new segment.

A segment's first line names the heads of all segments that no earlier line names. So a deleted segment is missed by a
later one, and the last segments by the head file. Whoever can write to the folder could change both for the last
segments; the summary of an export, stored elsewhere, protects them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..database.locks import wait_for_lock
from ..digest import compute_digest
from ..errors import CallsDamaged
from ..files.objects import read_json, write_json
from ..files.private import make_folder
from .segment import KIND_BEGUN, SEGMENT_SUFFIX, CallSegment, ChainLink, build_line, mend

CALLS_FORMAT = 1
HEADS_FILE, HEADS_LOCK = "heads.json", "heads.lock"


@dataclass(frozen=True, slots=True)
class Head:
    """The last line of a segment; `final` when no line may follow, `written` once its file exists."""

    segment: str
    sequence: int
    hash: str
    final: bool = False
    written: bool = True


Heads = dict[str, Head]


def begin_segment(folder: Path, time: str, process: int) -> tuple[CallSegment, ChainLink]:
    """Create this process's segment, with anchors of those before it; return it with its first link.

    Raises
    ------
    CallsDamaged
        If the head file is gone or changed while segments exist.
    """
    make_folder(folder)
    with update_heads(folder) as heads:
        anchors = [anchor for name, head in heads.items() for anchor in _settle_head(folder / name, head)]
        name = _find_free_name(folder, f"calls-{_compact_time(time)}-{process}")
        members = {
            "format": CALLS_FORMAT,
            "segment": name,
            "process": process,
            "before": [asdict(anchor) for anchor in anchors],
        }
        raw, link = build_line(KIND_BEGUN, ChainLink(-1, ""), time, json.dumps(members)[1:-1])
        heads.clear()
        ended = {anchor.segment for anchor in anchors if anchor.final}
        heads.update({anchor.segment: anchor for anchor in anchors if anchor.segment not in ended})
        write_heads(folder, heads | {name: Head(name, 0, link.hash, written=False)})
        segment = CallSegment.create(folder / name)
        segment.add(raw)
        heads[name] = Head(name, 0, link.hash)
    return segment, link


@contextmanager
def update_heads(folder: Path) -> Iterator[Heads]:
    """Yield the heads for changes, one process at a time, and write them unless an error is raised."""
    with wait_for_lock(folder / HEADS_LOCK):
        heads = read_heads(folder)
        yield heads
        write_heads(folder, heads)


def survey_heads(folder: Path) -> tuple[Heads | None, list[Path]]:
    """Return the heads and the segments at one moment; None for heads whose file is gone or changed.

    The lock is taken only where this process may write: a copy may be on a read-only disk.
    """
    with wait_for_lock(folder / HEADS_LOCK) if os.access(folder, os.W_OK) else nullcontext():
        try:
            heads: Heads | None = read_heads(folder)
        except CallsDamaged:
            heads = None
        return heads, list_segments(folder)


def list_segments(folder: Path) -> list[Path]:
    """Return the files of the segments, oldest first."""
    return sorted(folder.glob(f"calls-*{SEGMENT_SUFFIX}"), key=lambda path: path.stem)


def read_heads(folder: Path) -> Heads:
    """Return the heads in the head file; empty if there is no segment."""
    path = folder / HEADS_FILE
    if not path.exists():
        if list_segments(folder):
            raise _build_heads_error(path, "is gone")
        return {}
    try:
        body = read_json(path)
        if body["hash"] != compute_digest(body["heads"]):
            raise ValueError
        return decode_heads(body["heads"])
    except (ValueError, KeyError, TypeError):
        raise _build_heads_error(path, "was changed") from None


def write_heads(folder: Path, heads: Heads) -> None:
    """Write the head file atomically."""
    body = encode_heads(heads)
    write_json(folder / HEADS_FILE, {"format": CALLS_FORMAT, "heads": body, "hash": compute_digest(body)})


def encode_heads(heads: Heads) -> list[dict[str, Any]]:
    """Return heads as JSON."""
    return [asdict(heads[name]) for name in sorted(heads)]


def decode_heads(body: Sequence[Mapping[str, Any]]) -> Heads:
    """Return the heads from the output of `encode_heads`."""
    heads = [Head(**fields) for fields in body]
    return {head.segment: head for head in heads}


def _settle_head(path: Path, head: Head) -> list[Head]:
    """Return the anchors for an earlier segment, after repairing it if its process is dead.

    Where lines came after the head, both are anchored: the head existed before those lines could be changed.
    """
    if head.final:
        return [head]
    try:
        end = mend(path)
    except FileNotFoundError:
        return [replace(head, final=True)] if head.written else []
    if end is None:
        return [head]  # its process lives and may go on
    if end.line is None and not head.written:
        path.unlink()  # its process died before its first line was complete
        return []
    if end.line is None or end.line.link.sequence <= head.sequence:
        return [replace(head, final=True, written=True)]  # if the file differs, the head counts
    last = end.line.link
    return [replace(head, written=True), Head(head.segment, last.sequence, last.hash, final=True)]


def _compact_time(time: str) -> str:
    return time.replace("-", "").replace(":", "").replace("+0000", "Z")


def _find_free_name(folder: Path, stem: str) -> str:
    """Return an unused name: processes in containers may have equal numbers, and clocks in tests stand still."""
    number, name = 1, stem + SEGMENT_SUFFIX
    while (folder / name).exists():
        number += 1
        name = f"{stem}-{number}{SEGMENT_SUFFIX}"
    return name


def _build_heads_error(path: Path, what: str) -> CallsDamaged:
    return CallsDamaged(
        f"the head file {path} {what}",
        field="audit",
        hint="See what else is wrong: alphaloom audit verify. To go on, move the folder aside and keep it.",
    )
