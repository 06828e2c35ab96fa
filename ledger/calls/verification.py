"""Verify the record of calls: lines that were changed, removed, inserted or moved, and missing segments.

Hashes without a key detect edits that do not rebuild the chain. Whoever may write to the folder can rebuild all of it
without some lines; only a head that was noted elsewhere before detects that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..digest import compute_digest
from .heads import HEADS_FILE, Head, encode_heads, survey_heads
from .segment import KIND_BEGUN, KIND_CALL, KIND_ENDED, ChainedLine, ChainLink, read_line, read_lines

REMADE_MESSAGE = "the record was written anew, or lines were taken back, since it was noted"
MAX_SEGMENT_FINDINGS = 100
"""Limit on the findings reported for one segment."""


@dataclass(frozen=True)
class RecordFinding:
    """One line or segment that was changed, removed, inserted or moved."""

    kind: str
    segment: str
    line: int | None
    message: str

    def record(self) -> dict[str, Any]:
        """Return the finding as JSON."""
        return {"kind": self.kind, "segment": self.segment, "line": self.line, "message": self.message}


@dataclass(frozen=True)
class Verified:
    """The result of a verification: the head of each segment, findings, and notes on irregularities that are no damage.

    `tips` are the heads that no later segment names: their hashes, noted elsewhere, cover all lines.
    """

    heads: Mapping[str, Head]
    tips: tuple[Head, ...]
    calls: int
    findings: tuple[RecordFinding, ...]
    notes: tuple[str, ...]

    @property
    def root(self) -> str:
        """One digest of the whole record: the SHA-256 of every segment's head."""
        return compute_digest(encode_heads(dict(self.heads)))

    def record(self) -> dict[str, Any]:
        """Return the result as JSON."""
        return {
            "segments": len(self.heads),
            "calls": self.calls,
            "root": self.root,
            "tips": [{"segment": tip.segment, "sequence": tip.sequence, "hash": tip.hash} for tip in self.tips],
            "findings": [finding.record() for finding in self.findings],
            "notes": list(self.notes),
        }


def verify_calls(folder: Path, anchors: Sequence[Head] = (), noted: Collection[str] = ()) -> Verified:
    """Read every segment of a folder and compare it with its chain, the head file and the later segments.

    Parameters
    ----------
    folder : Path
        The folder of the segments. It may be written to meanwhile.
    anchors : sequence of Head
        Heads from the summary of an earlier export: they reveal lines that someone with write access has removed.
    noted : collection of str
        Hashes of `tips` that were noted elsewhere: each must still be the hash of a line, which proves all lines before
        it.
    """
    heads, paths = survey_heads(folder)
    walks = {path.name: _SegmentWalk(path, noted) for path in paths}
    known_heads = [*anchors, *(heads or {}).values(), *(head for walk in walks.values() for head in walk.anchors or ())]
    by_segment: dict[str, list[Head]] = {}
    for head in known_heads:
        by_segment.setdefault(head.segment, []).append(head)
    findings = (
        []
        if heads is not None
        else [RecordFinding("changed", HEADS_FILE, None, "the head file is gone or was changed")]
    )
    notes: list[str] = []
    gone = {
        name for name, heads_of in by_segment.items() if name not in walks and any(head.written for head in heads_of)
    }
    complete = heads is not None and not gone and all(walk.anchors is not None for walk in walks.values())
    for name in sorted({*walks, *by_segment}):
        if name in walks:
            findings += walks[name].check(by_segment.get(name, []), complete=complete)
            notes += walks[name].notes
        elif name in gone:
            findings.append(RecordFinding("removed", name, None, "the segment is gone; others name it"))
        else:
            notes.append(f"{name} was announced and never written: its process died in that moment")
    missing = {*noted}.difference(*(walk.met for walk in walks.values()))
    findings += [
        RecordFinding("removed", HEADS_FILE, None, f"no line has the noted head {digest}: {REMADE_MESSAGE}")
        for digest in sorted(missing)
    ]
    ends = {name: walk.head for name, walk in walks.items() if walk.head is not None}
    covered = {head.segment for walk in walks.values() for head in walk.anchors or () if head.final}
    tips = tuple(ends[name] for name in sorted(ends) if name not in covered)
    return Verified(ends, tips, sum(walk.calls for walk in walks.values()), tuple(findings), tuple(notes))


class _SegmentWalk:
    """One pass over one segment."""

    def __init__(self, path: Path, noted: Collection[str] = ()) -> None:
        self.path, self.name, self._noted = path, path.name, noted
        self.met: set[str] = set()
        self._latest = ""
        self.anchors = _read_anchors(path)
        self.calls = 0
        self.head: Head | None = None
        self.notes: list[str] = []
        self._found: list[RecordFinding] = []
        self._seen: dict[int, str] = {}
        # None after an unreadable line: the line that follows cannot be compared.
        self._at: ChainLink | None = ChainLink(-1, "")
        self._ended = False

    def check(self, anchors: Sequence[Head], *, complete: bool) -> list[RecordFinding]:
        """Return the findings; in a `complete` record, a segment that no anchor names is one."""
        sequences = {head.sequence for head in anchors}
        for number, raw in enumerate(read_lines(self.path), start=1):
            if not raw.endswith(b"\n"):
                self._note_torn(number, raw)
                break
            line = read_line(raw[:-1])
            if line is None:
                self._add_finding("changed", number, "the line is not what was written")
                self._at = None
            else:
                self._follow(number, line, sequences)
        for head in anchors:
            self._compare(head)
        if complete and not anchors:
            self._add_finding("inserted", None, "no other segment and no head file names it")
        if self.head is None and any(head.written for head in anchors):
            self._add_finding("changed", None, "no line of the segment can be read")
        elif not self._ended:
            self.notes.append(f"{self.name} was not closed: its process is at work or was killed")
        return self._found[:MAX_SEGMENT_FINDINGS]

    def _follow(self, number: int, line: ChainedLine, sequences: set[int]) -> None:
        """Compare a line with the one before it."""
        at = self._at
        if at is not None:
            for kind, message in _find_breaks(at, line):
                self._add_finding(kind, number, message)
        if self._ended:
            self._add_finding("inserted", number, "the line stands after the end of the segment")
        if line.kind == KIND_BEGUN and line.record.get("segment") != self.name:
            self._add_finding("moved", number, f"it was begun under another name: {line.record.get('segment')}")
        if line.link.hash in self._noted:
            self.met.add(line.link.hash)
        self._check_time(number, str(line.record.get("time", "")))
        if line.link.sequence in sequences:
            self._seen[line.link.sequence] = line.link.hash
        self._ended = line.kind == KIND_ENDED
        self.calls += line.kind == KIND_CALL
        self._at = line.link
        self.head = Head(self.name, line.link.sequence, line.link.hash, self._ended)

    def _check_time(self, number: int, time: str) -> None:
        """Note a time on an earlier day than a time before it; times are UTC texts of one length."""
        if time[:10] < self._latest[:10]:
            self.notes.append(
                f"{self.name}, line {number}: its time {time} is before {self._latest} of an earlier line"
            )
        self._latest = max(self._latest, time)

    def _note_torn(self, number: int, raw: bytes) -> None:
        """Note a last line without newline as cut short; it is a finding if only its newline was changed."""
        if self._ended or read_line(raw[:-1]):
            self._add_finding("changed", number, "no newline ends the line")
        else:
            self.notes.append(f"{self.name}: a last line of {len(raw)} bytes was cut short, or is being written")

    def _compare(self, head: Head) -> None:
        """Compare the segment with a head stored elsewhere."""
        last = self.head.sequence if self.head else -1
        if not head.written and self.head is None:
            return
        if head.sequence > last:
            self._add_finding(
                "removed", None, f"{head.sequence - last} last lines are gone: it went on to {head.sequence}"
            )
        elif self._seen.get(head.sequence) != head.hash:
            self._add_finding("changed", None, f"line number {head.sequence} is not the one that is named elsewhere")
        elif head.final and last > head.sequence:
            self._add_finding("inserted", None, f"{last - head.sequence} lines were added after it ended")

    def _add_finding(self, kind: str, line: int | None, message: str) -> None:
        self._found.append(RecordFinding(kind, self.name, line, message))


def _find_breaks(at: ChainLink, line: ChainedLine) -> Iterator[tuple[str, str]]:
    """Yield the reasons why a line cannot follow another."""
    sequence, expected = line.link.sequence, at.sequence + 1
    if sequence > expected:
        gone = f"line number {expected} is" if sequence == expected + 1 else f"lines {expected} to {sequence - 1} are"
        yield "removed", f"{gone} gone before number {sequence}"
    elif sequence < expected:
        yield "moved", f"number {sequence} stands after number {at.sequence}: it was moved here or inserted"
    elif line.previous != at.hash:
        yield "changed", f"number {sequence} does not follow from the line before it, which was exchanged"
    if (line.kind == KIND_BEGUN) != (sequence == 0):
        yield "inserted", f"number {sequence} cannot be a line of this kind"


def _read_anchors(path: Path) -> tuple[Head, ...] | None:
    """Return the anchors in a segment's first line; None if it cannot be read."""
    first = next(read_lines(path), b"")
    line = read_line(first.removesuffix(b"\n"))
    try:
        return tuple(Head(**fields) for fields in line.record["before"]) if line else None
    except (KeyError, TypeError):
        return None
