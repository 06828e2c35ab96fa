"""The commands by which others can verify a record: proofs, static files, and witnesses."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import DeskError
from ...facts.standing import DEFAULT_WORKSPACE
from ...figures import plural
from ..console import print_object, print_plain
from ..options import AsJson, Workspace, refuse_existing
from ..run_lookup import open_record
from .files import is_export, read_checkpoint_file

if TYPE_CHECKING:
    from ....ledger.log import SignedLog

WitnessFolder = Annotated[
    Path | None,
    typer.Argument(metavar="[FOLDER]", help="What the other desk exported; without it, this desk's key is printed."),
]
LogKey = Annotated[
    str | None,
    typer.Option("--log", metavar="VKEY", help="The key of the other desk's log, the first time: got from the desk."),
]
Force = Annotated[bool, typer.Option("--force", help="Write over a file that is there.")]


def _sign_and_read(workspace: Path) -> SignedLog:
    """Sign what waits for a checkpoint, and return the signed log."""
    from ....ledger.log import KeyFolder, read_signed_log

    with open_record(workspace) as ledger:
        ledger.signer.sign()
    return read_signed_log(workspace, KeyFolder.of_user())


def prove(
    name: Annotated[str, typer.Argument(metavar="ID", help="A factor, decision, run or model call; or TABLE/NUMBER.")],
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="ID.tlog-proof by default.")] = None,
    force: Force = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Write one file that proves that a record is in the log, for somebody who has neither the workspace nor our tool.

    A factor is proven by its verdict, a run by the digest of its results.json. The file holds the leaf, its place, the
    hashes up to the root, and a checkpoint: the newest one that a witness signed, if there is one, else the last. A
    leaf holds bodies as SHA-256 digests: hand over the body beside it where a reader needs it.
    """
    from ....ledger.log import COSIGNED, PROOF_SUFFIX, KeyFolder, prove_row

    log = _sign_and_read(workspace or DEFAULT_WORKSPACE)
    seen = [one.note for one in KeyFolder.of_user().recall(COSIGNED, log.key.name)]
    row, proof = prove_row(log, name, seen)
    file = out or Path(name.replace("/", "-") + PROOF_SUFFIX)
    refuse_existing(file, force=force)
    file.write_text(str(proof), encoding="utf-8")
    if as_json:
        print_object({"file": str(file), "leaf": proof.index, "table": row.table, "row": dict(row.columns)})
        return
    print_plain(f"leaf {proof.index}, a row of {row.table}, proven in {file}")
    print_plain(f"verify it with: alphaloom record verify {file} --policy FILE, where FILE holds `log {log.key}`")


def export(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the files go; they are updated there.")],
    entries: Annotated[
        bool, typer.Option("--entries", help="Also the leaves: they name runs, factors and people.")
    ] = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Write the log as static files for any web server: checkpoint, key and tiles of hashes (C2SP tlog-tiles).

    Hashes tell nothing of what was recorded, because each leaf holds 16 random bytes.
    """
    from ....ledger.log import Checkpoint, export_log

    if folder.exists() and any(folder.iterdir()) and not is_export(folder):
        raise DeskError(
            f"{folder} holds other files.", field="FOLDER", got=str(folder), hint="Name a new folder.", code="not_empty"
        )
    log = _sign_and_read(workspace or DEFAULT_WORKSPACE)
    written = export_log(log, folder, with_entries=entries)
    size = Checkpoint.parse(log.note.text).size
    if as_json:
        print_object({"folder": str(folder), "leaves": size, "files": written, "key": str(log.key)})
        return
    print_plain(f"{plural(size, 'leaf', 'leaves')} in {folder}, {plural(written, 'file')} new")
    print_plain(f"key of the log, to hand to a witness yourself: {log.key}")


def acknowledge(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The workspace.")],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is written into the record.")],
    as_json: AsJson = False,
) -> None:
    """Accept that this folder holds another or an older record than this desk signed here, or that a clock was wrong.

    The record goes on under a new name of its log, with your reason and what this desk remembered of the folder. What
    was signed here before, and steps of the clock until now, are notes of `record verify` from then on. Edited, dropped
    and added rows stay findings. A witness or a proof of the earlier record still shows it.
    """
    with open_record(folder) as ledger:
        said = ledger.signer.acknowledge(reason)
    if as_json:
        print_object({"workspace": str(folder), "recorded": said})
        return
    print_plain(f"recorded in {folder}: {said}")


def witness(
    folder: WitnessFolder = None,
    log: LogKey = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where the signed checkpoint goes; printed by default.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Sign the checkpoint of another desk, after a proof that its log continues what this desk saw before.

    The signed checkpoint goes back to the other desk, which keeps it: alphaloom record keep FILE. A log that became
    shorter, was changed, or shows two histories is refused with exit code 1. Keep both checkpoints then: they are the
    evidence.
    """
    from ....ledger.log import KeyFolder, LogWitness, trust_log

    keys = KeyFolder.of_user()
    desk = LogWitness(keys, lambda: datetime.now(UTC))
    if log:
        trust_log(keys, log)
    if folder is None:
        key = str(desk.find_key().verifier)
        if as_json:
            print_object({"witness": key})
        else:
            print_plain(f"key of this desk as a witness: {key}")
        return
    if out is not None:
        refuse_existing(out, force=force)
    signed = desk.sign_folder(folder)
    if out is not None:
        out.write_text(str(signed), encoding="utf-8")
    if as_json:
        print_object({"witness": str(desk.find_key().verifier), "checkpoint": str(signed), "file": str(out or "")})
    elif out is not None:
        print_plain(f"signed; hand {out} back, and this key: {desk.find_key().verifier}")
    else:
        print_plain(str(signed).rstrip("\n"))


def keep(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The checkpoint that a witness signed.")],
    key: Annotated[
        str | None, typer.Option("--witness", metavar="VKEY", help="The key of the witness, the first time.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Keep the checkpoint that a witness signed beside this desk's key; `record verify` compares the record with it."""
    from ....ledger.log import KeyFolder, keep_cosigned

    parts = keep_cosigned(KeyFolder.of_user(), read_checkpoint_file(file).note, key)
    if as_json:
        print_object({"kept": [part.record() for part in parts]})
        return
    for part in parts:
        print_plain(f"kept: {part.witness} saw {plural(part.size, 'leaf', 'leaves')} at {part.at.isoformat()}")
