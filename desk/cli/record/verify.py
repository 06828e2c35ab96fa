"""The command that verifies a record against its transparency log, and says what cannot be told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...facts.standing import DEFAULT_WORKSPACE
from ...figures import plural
from ..console import print_object, print_plain
from ..options import AsJson
from .files import is_export, read_checkpoint_file, read_policy_file, verify_folder, verify_proof

if TYPE_CHECKING:
    from ....ledger.log import LogReading

MAX_FINDINGS_SHOWN = 50
"""Findings that are printed; `--json` has all."""
PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", help="Logs and witnesses that you trust, in the C2SP policy format."),
]
CheckpointFiles = Annotated[
    list[Path] | None,
    typer.Option("--checkpoint", metavar="FILE", help="A checkpoint that you kept elsewhere. Repeatable."),
]


def verify(
    place: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR|FOLDER|FILE]", help="A workspace, .alphaloom by default; an exported folder; or a proof."
        ),
    ] = None,
    policy: PolicyFile = None,
    checkpoint: CheckpointFiles = None,
    as_json: AsJson = False,
) -> None:
    """Verify offline that the record is as it was written, down to the row, and say what cannot be told.

    Every row is compared with its leaf in the log, the leaves with every signed checkpoint, and the checkpoints with
    those that were kept elsewhere: beside this desk's key, by witnesses, and in the given files. The record of tool
    calls is verified, too. A folder of `alphaloom record export` and a .tlog-proof file are verified without the
    workspace. Exit code 1 if anything differs or the policy is not met.
    """
    from ....ledger.database import EXEMPT_TABLES

    workspace = place or DEFAULT_WORKSPACE
    if workspace.is_file():
        verify_proof(workspace, policy, as_json=as_json)
        return
    if is_export(workspace):
        verify_folder(workspace, policy, as_json=as_json)
        return
    reading = _verify_workspace(workspace, policy, checkpoint or [])
    calls = _verify_calls(workspace)
    if as_json:
        facts = {**reading.record(), "calls": calls, "exempt": EXEMPT_TABLES}
        print_object({"ok": not reading.findings and not calls, **facts})
    else:
        for line in describe_reading(workspace, reading, calls):
            print_plain(line.replace("\n", " "))  # a recorded text must not look like a line of ours
    if reading.findings or calls:
        raise typer.Exit(1)


def _verify_workspace(workspace: Path, policy: Path | None, checkpoints: list[Path]) -> LogReading:
    from ....ledger.log import KeyFolder, verify_workspace

    given = [read_checkpoint_file(file) for file in checkpoints]
    return verify_workspace(workspace, KeyFolder.of_user(), given, read_policy_file(policy))


def _verify_calls(workspace: Path) -> list[dict[str, Any]]:
    """Return the findings in the record of tool calls, which must hold the lines that the log names."""
    from ....ledger.calls import CALLS_FOLDER, RecordFinding, verify_calls
    from ....ledger.log import read_call_heads

    folder, heads = workspace / CALLS_FOLDER, read_call_heads(workspace)
    if folder.is_dir():
        findings = list(verify_calls(folder, heads).findings)
    else:
        gone = sorted({head.segment for head in heads})
        findings = [RecordFinding("removed", name, None, "the folder is gone; the log names it") for name in gone]
    return [finding.record() for finding in findings]


def describe_reading(workspace: Path, reading: LogReading, calls: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the first screen: what was read, what is wrong, who saw it, what cannot be told."""
    from ....ledger.log import spell_path

    signed = f"{reading.signed:,} of them signed in {plural(reading.checkpoints, 'checkpoint')}"
    leaves = plural(reading.size, "leaf", "leaves")
    yield f"record of {spell_path(workspace)}: {leaves}, {signed} as {reading.origin or 'no log yet'}"
    count = len(reading.findings) + len(calls)
    yield plural(count, "finding") if count else "every row is as it was written"
    for finding in reading.findings[:MAX_FINDINGS_SHOWN]:
        yield f"  {finding.kind}: {finding.what}: {finding.message}"
    for call in calls[:MAX_FINDINGS_SHOWN]:
        yield f"  {call['kind']}: tool calls, {call['segment']}: {call['message']}"
    if count > MAX_FINDINGS_SHOWN:
        yield f"  {count:,} in all; --json lists every one"
    yield from _describe_witnesses(reading)
    for where, size in reading.kept:
        yield f"kept: the checkpoint of {size:,} leaves, {where}, is part of this history"
    for note in reading.notes:
        yield f"note: {note}"
    yield from _describe_limits(reading)


def _describe_witnesses(reading: LogReading) -> Iterator[str]:
    for part in reading.witnessed:
        since = reading.size - part.size
        rest = f"; the {plural(since, 'leaf', 'leaves')} since then rest on the key alone" if since else ""
        yield f"witness: {part.witness} saw the first {part.size:,} leaves at {part.at.isoformat()}{rest}"
    if not reading.witnessed:
        yield "witness: none has seen this history"


def _describe_limits(reading: LogReading) -> Iterator[str]:
    """Yield what this verification cannot tell, and what would let it."""
    if not reading.witnessed:
        yield (
            "cannot be told: whether somebody who holds this record and its key wrote the history anew. "
            "A witness would show it: `alphaloom record export FOLDER`, then, on another desk, "
            "`alphaloom record witness FOLDER`."
        )
    waiting = reading.size - reading.signed
    if waiting:
        yield (
            f"cannot be told: whether the {plural(waiting, 'leaf', 'leaves')} without a signature are as they were "
            "written. The next run signs what it finds then."
        )
    if reading.late:
        yield (
            f"cannot be told: whether {plural(reading.late, 'leaf', 'leaves')} that had no signature for more than a "
            "minute were changed before they were signed."
        )
    yield (
        "cannot be told: whether somebody who can write to the database added records with leaves: the next run signs "
        "them with its own. Who may write to it decides who may add to it."
    )
    if not reading.kept:
        yield (
            "cannot be told: whether this is the newest copy. A checkpoint that was kept elsewhere would show it: "
            "--checkpoint FILE."
        )
    yield "cannot be told, ever: whether what was recorded was true when it was written."
