"""What the record hands out as files: reading them, and verifying them without the workspace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ...errors import DeskError
from ...figures import plural
from ..console import print_object, print_plain

if TYPE_CHECKING:
    from ....ledger.log import CheckpointPolicy, OutsideCheckpoint


def read_checkpoint_file(file: Path) -> OutsideCheckpoint:
    """Return the checkpoint in a file."""
    from ....ledger.log import OutsideCheckpoint, SignedNote, read_log_text

    return OutsideCheckpoint(SignedNote.parse(read_log_text(file)), str(file))


def read_policy_file(file: Path | None) -> CheckpointPolicy | None:
    """Return the policy in a file, if one is given."""
    from ....ledger.log import CheckpointPolicy, read_log_text

    return CheckpointPolicy.parse(read_log_text(file)) if file else None


def is_export(folder: Path) -> bool:
    """Return whether a folder is a log as static files, and no workspace."""
    from ....ledger.database import has_record

    return (folder / "checkpoint").is_file() and not has_record(folder)


def verify_folder(folder: Path, policy: Path | None, *, as_json: bool) -> None:
    """Verify a folder of static files; exit code 1 if a file is not that of the log."""
    from ....ledger.log import verify_export

    reading = verify_export(folder, read_policy_file(policy))
    if as_json:
        facts = {"log": reading.checkpoint.origin, "leaves": reading.checkpoint.size, "signers": list(reading.signers)}
        findings = [finding.record() for finding in reading.findings]
        print_object({"ok": not findings, **facts, "with_entries": reading.with_entries, "findings": findings})
    else:
        leaves = plural(reading.checkpoint.size, "leaf", "leaves")
        print_plain(f"log {reading.checkpoint.origin}: {leaves}, signed by {', '.join(reading.signers)}")
        print_plain(plural(len(reading.findings), "finding") if reading.findings else "every file is that of the log")
        for finding in reading.findings:
            print_plain(f"  {finding.what}: {finding.message}")
        if policy is None:
            print_plain(
                "cannot be told: who signed it, because the key was taken from the same folder. "
                "Name the keys that you trust: --policy FILE."
            )
        if not reading.with_entries:
            print_plain("cannot be told: what was recorded, because the folder holds hashes without entries.")
    if reading.findings:
        raise typer.Exit(1)


def verify_proof(file: Path, policy: Path | None, *, as_json: bool) -> None:
    """Verify a proof against the logs and witnesses of a policy, and show the record that it proves."""
    from ....ledger.log import InclusionProof, read_log_text

    trusted = read_policy_file(policy)
    if trusted is None:
        raise DeskError(
            "A proof is verified against the keys that you trust.",
            field="--policy",
            allowed="a file with the lines `log VKEY` and `quorum none`, or with witnesses and their quorum",
            hint="`alphaloom record export` prints the key of a log; get it from the desk itself, not from the proof.",
            code="policy_missing",
        )
    proof = InclusionProof.parse(read_log_text(file))
    signed = {key.name: at for key, at in proof.verify(trusted).items()}
    entry = proof.entry.decode("utf-8", errors="replace")
    if as_json:
        times = {name: at.isoformat() if at else None for name, at in signed.items()}
        print_object({"ok": True, "leaf": proof.index, "entry": entry, "signed": times})
        return
    print_plain(f"leaf {proof.index} is in the log")
    for name, at in signed.items():
        print_plain(f"signed by {name}" + (f" at {at.isoformat()}" if at else ""))
    print_plain(entry)
