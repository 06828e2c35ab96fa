"""The one file that says how far each segment has come, and what a new segment tells of those before it.

A segment's first line names the heads of all segments that no line names yet. So a segment that is gone is missed by a
later one, and the last ones by the head file; who can write to the folder could change both for the last ones, which is
what the summary of an export is for: it lies elsewhere.
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
from .segment import KIND_BEGUN, SEGMENT_SUFFIX, CallSegment, ChainLink, mend, written

CALLS_FORMAT = 1
HEADS_FILE, HEADS_LOCK = "heads.json", "heads.lock"


@dataclass(frozen=True, slots=True)
class Head:
    """How far a segment has come; `final` when nothing may follow, `written` once its file is there."""

    segment: str
    sequence: int
    hash: str
    final: bool = False
    written: bool = True


Heads = dict[str, Head]


def begin_segment(folder: Path, time: str, process: int) -> tuple[CallSegment, ChainLink]:
    """Begin this process's segment, anchoring those before it, and return it with its first link.

    Raises
    ------
    CallsDamaged
        If the head file is gone or changed while segments are there.
    """
    make_folder(folder)
    with update_heads(folder) as heads:
        anchors = [each for name, head in heads.items() for each in _settle_head(folder / name, head)]
        name = _find_free_name(folder, f"calls-{_compact(time)}-{process}")
        told = {
            "format": CALLS_FORMAT,
            "segment": name,
            "process": process,
            "before": [asdict(each) for each in anchors],
        }
        raw, link = written(KIND_BEGUN, ChainLink(-1, ""), time, json.dumps(told)[1:-1])
        heads.clear()
        ended = {each.segment for each in anchors if each.final}
        heads.update({each.segment: each for each in anchors if each.segment not in ended})
        write_heads(folder, heads | {name: Head(name, 0, link.hash, written=False)})
        segment = CallSegment.create(folder / name)
        segment.add(raw)
        heads[name] = Head(name, 0, link.hash)
    return segment, link


@contextmanager
def update_heads(folder: Path) -> Iterator[Heads]:
    """Yield the heads to be changed, one process at a time, and write them; not where something is raised."""
    with wait_for_lock(folder / HEADS_LOCK):
        heads = read_heads(folder)
        yield heads
        write_heads(folder, heads)


def survey_heads(folder: Path) -> tuple[Heads | None, list[Path]]:
    """Return heads and segments of one moment; None for a head file that is gone or changed.

    Where this process may not write, as in a copy on a read-only disk, nobody is asked to wait.
    """
    with wait_for_lock(folder / HEADS_LOCK) if os.access(folder, os.W_OK) else nullcontext():
        try:
            heads: Heads | None = read_heads(folder)
        except CallsDamaged:
            heads = None
        return heads, segments(folder)


def segments(folder: Path) -> list[Path]:
    """Return the files of the segments, the oldest first."""
    return sorted(folder.glob(f"calls-*{SEGMENT_SUFFIX}"), key=lambda path: path.stem)


def read_heads(folder: Path) -> Heads:
    """Return what the head file says; nothing where nothing was begun."""
    path = folder / HEADS_FILE
    if not path.exists():
        if segments(folder):
            raise _heads_error(path, "is gone")
        return {}
    try:
        body = read_json(path)
        if body["hash"] != compute_digest(body["heads"]):
            raise ValueError
        return decode_heads(body["heads"])
    except (ValueError, KeyError, TypeError):
        raise _heads_error(path, "was changed") from None


def write_heads(folder: Path, heads: Heads) -> None:
    """Write the head file, whole or not at all."""
    body = encode_heads(heads)
    write_json(folder / HEADS_FILE, {"format": CALLS_FORMAT, "heads": body, "hash": compute_digest(body)})


def encode_heads(heads: Heads) -> list[dict[str, Any]]:
    """Return heads as JSON."""
    return [asdict(heads[name]) for name in sorted(heads)]


def decode_heads(body: Sequence[Mapping[str, Any]]) -> Heads:
    """Return the heads that `encode_heads` wrote."""
    found = [Head(**each) for each in body]
    return {head.segment: head for head in found}


def _settle_head(path: Path, head: Head) -> list[Head]:
    """Return what a new segment shall say of one before it, which is mended where its process is dead.

    Where lines came after the head, both are said: the head was there before anybody could change those lines.
    """
    if head.final:
        return [head]
    try:
        end = mend(path)
    except FileNotFoundError:
        return [replace(head, final=True)] if head.written else []
    if end is None:
        return [head]  # at work: it may go on
    if end.line is None and not head.written:
        path.unlink()  # died before its first line was whole
        return []
    if end.line is None or end.line.link.sequence <= head.sequence:
        return [replace(head, final=True, written=True)]  # where the file says another thing, the head tells
    last = end.line.link
    return [replace(head, written=True), Head(head.segment, last.sequence, last.hash, final=True)]


def _compact(time: str) -> str:
    return time.replace("-", "").replace(":", "").replace("+0000", "Z")


def _find_free_name(folder: Path, stem: str) -> str:
    """Return a name that no file has: processes in containers share numbers, and clocks of tests stand still."""
    number, name = 1, stem + SEGMENT_SUFFIX
    while (folder / name).exists():
        number += 1
        name = f"{stem}-{number}{SEGMENT_SUFFIX}"
    return name


def _heads_error(path: Path, what: str) -> CallsDamaged:
    return CallsDamaged(
        f"the head file {path} {what}", field="audit",
        hint="See what else is wrong: alphaloom audit verify. To go on, move the folder aside and keep it.",
    )  # fmt: skip
