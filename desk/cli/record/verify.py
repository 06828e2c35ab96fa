"""The command that verifies a record against its transparency log, and says what cannot be told."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...facts.record_log import describe_record_log, read_record_log
from ...facts.standing import DEFAULT_WORKSPACE
from ..console import print_object, print_plain
from ..options import AsJson
from .files import is_export, read_checkpoint_file, read_policy_file, verify_folder, verify_proof

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
    given = [read_checkpoint_file(file) for file in checkpoint or []]
    reading, calls = read_record_log(workspace, given, read_policy_file(policy))
    if as_json:
        facts = {**reading.record(), "calls": calls, "exempt": EXEMPT_TABLES}
        print_object({"ok": not reading.findings and not calls, **facts})
    else:
        for line in describe_record_log(workspace, reading, calls).lines():
            print_plain(line.replace("\n", " "))  # a recorded text must not look like a line of ours
    if reading.findings or calls:
        raise typer.Exit(1)
