"""The record compared with its log: what was read, what is wrong, who saw the history, and what cannot be told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..figures import plural

if TYPE_CHECKING:
    from ...ledger.log import CheckpointPolicy, LogReading, OutsideCheckpoint

MAX_FINDINGS_SHOWN: Final = 50
"""Findings that are shown; `alphaloom record verify --json` has all."""


@dataclass(frozen=True)
class RecordCheck:
    """What a verification of a workspace found, in words.

    Attributes
    ----------
    sound
        Whether every row is as it was written.
    read, verdict
        What was read; and in one sentence whether anything differs.
    findings, witnesses, notes, limits
        Lines: what is wrong; which witness saw how much, or that none did; what a reader should know; what cannot be
        told.
    """

    sound: bool
    read: str
    verdict: str
    findings: tuple[str, ...]
    witnesses: tuple[str, ...]
    notes: tuple[str, ...]
    limits: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """Yield all of it, as the command prints it."""
        yield self.read
        yield self.verdict
        yield from (f"  {line}" for line in self.findings)
        yield from (f"witness: {line}" for line in self.witnesses)
        yield from self.notes
        yield from (f"cannot be told{line}" for line in self.limits)


def read_record_log(
    workspace: Path, given: Sequence[OutsideCheckpoint] = (), policy: CheckpointPolicy | None = None
) -> tuple[LogReading, list[dict[str, Any]]]:
    """Verify a workspace's record and its log of tool calls; return the reading and the findings in the calls.

    Raises
    ------
    WorkspaceError
        There is no record, or it cannot be read.
    """
    from ...ledger.log import KeyFolder, verify_workspace

    reading = verify_workspace(workspace, KeyFolder.of_user(), given, policy)
    return reading, _verify_calls(workspace)


def _verify_calls(workspace: Path) -> list[dict[str, Any]]:
    """Return the findings in the record of tool calls, which must hold the lines that the log names."""
    from ...ledger.calls import CALLS_FOLDER, RecordFinding, verify_calls
    from ...ledger.log import read_call_heads

    folder, heads = workspace / CALLS_FOLDER, read_call_heads(workspace)
    if folder.is_dir():
        findings = list(verify_calls(folder, heads).findings)
    else:
        gone = sorted({head.segment for head in heads})
        findings = [RecordFinding("removed", name, None, "the folder is gone; the log names it") for name in gone]
    return [finding.record() for finding in findings]


def describe_record_log(workspace: Path, reading: LogReading, calls: Sequence[dict[str, Any]]) -> RecordCheck:
    """Return what a verification found, in words."""
    from ...ledger.log import spell_path

    signed = f"{reading.signed:,} of them signed in {plural(reading.checkpoints, 'checkpoint')}"
    leaves = plural(reading.size, "leaf", "leaves")
    count = len(reading.findings) + len(calls)
    findings = [f"{one.kind}: {one.what}: {one.message}" for one in reading.findings[:MAX_FINDINGS_SHOWN]]
    findings += [f"{one['kind']}: tool calls, {one['segment']}: {one['message']}" for one in calls[:MAX_FINDINGS_SHOWN]]
    if count > MAX_FINDINGS_SHOWN:
        findings.append(f"{count:,} in all; --json lists every one")
    kept = (
        f"kept: the checkpoint of {size:,} leaves, {where}, is part of this history" for where, size in reading.kept
    )
    return RecordCheck(
        sound=not count,
        read=f"record of {spell_path(workspace)}: {leaves}, {signed} as {reading.origin or 'no log yet'}",
        verdict=plural(count, "finding") if count else "every row is as it was written",
        findings=tuple(findings),
        witnesses=tuple(_describe_witnesses(reading)),
        notes=(*kept, *(f"note: {note}" for note in reading.notes)),
        limits=tuple(_describe_limits(reading)),
    )


def _describe_witnesses(reading: LogReading) -> Iterator[str]:
    for part in reading.witnessed:
        since = reading.size - part.size
        rest = f"; the {plural(since, 'leaf', 'leaves')} since then rest on the key alone" if since else ""
        yield f"{part.witness} saw the first {part.size:,} leaves at {part.at.isoformat()}{rest}"
    if not reading.witnessed:
        yield "none has seen this history"


def _describe_limits(reading: LogReading) -> Iterator[str]:
    """Yield what this verification cannot tell, and what would let it."""
    if not reading.witnessed:
        yield (
            ": whether somebody who holds this record and its key wrote the history anew. "
            "A witness would show it: `alphaloom record export FOLDER`, then, on another desk, "
            "`alphaloom record witness FOLDER`."
        )
    waiting = reading.size - reading.signed
    if waiting:
        yield (
            f": whether the {plural(waiting, 'leaf', 'leaves')} without a signature are as they were written. "
            "The next run signs what it finds then."
        )
    if reading.late:
        yield (
            f": whether {plural(reading.late, 'leaf', 'leaves')} that had no signature for more than a minute were "
            "changed before they were signed."
        )
    yield (
        ": whether somebody who can write to the database added records with leaves: the next run signs them with its "
        "own. Who may write to it decides who may add to it."
    )
    if not reading.kept:
        yield (
            ": whether this is the newest copy. A checkpoint that was kept elsewhere would show it: --checkpoint FILE."
        )
    yield ", ever: whether what was recorded was true when it was written."
