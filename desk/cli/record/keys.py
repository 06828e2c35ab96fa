"""The command that replaces the key of the log, and adds one against quantum computers."""

from __future__ import annotations

import secrets
from typing import Annotated

import typer

from ...errors import DeskError
from ...facts.standing import DEFAULT_WORKSPACE
from ..console import print_object, print_plain
from ..options import AsJson, Workspace
from ..run_lookup import open_record


def rekey(
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why the old key signs no more.")] = "",
    key: Annotated[
        str, typer.Option("--key", metavar="ID", help="The lost key, where it cannot be told: its 8 hex digits.")
    ] = "",
    ml_dsa: Annotated[
        bool, typer.Option("--ml-dsa", help="Also sign with ML-DSA-44, which a quantum computer does not forge.")
    ] = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Retire a lost or stolen key of the log with the time and the reason, and sign with a new one from now on.

    The first checkpoint with the new key covers everything before it. A checkpoint that the old key signs later is a
    finding of `record verify`. The desk's other workspaces record the retirement when the desk next writes to them.
    Hand the new key to the readers and witnesses of this log yourself. With --ml-dsa and no --reason, no key is
    replaced.
    """
    from ....ledger.log import KeyFolder, add_second_key, choose_lost, read_signed_log, replace_keys, verify_workspace

    place, keys = workspace or DEFAULT_WORKSPACE, KeyFolder.of_user()
    if not reason.strip() and not ml_dsa:
        raise DeskError("A key is retired for a reason.", field="--reason", allowed="a text", code="reason_missing")
    with open_record(place) as ledger:
        lost = choose_lost(ledger.signer.run_query, keys, key) if reason.strip() else []
        if lost:
            replace_keys(keys, lost, reason.strip(), secrets.token_bytes)
        added = ml_dsa and add_second_key(keys)
        ledger.signer.sign(anew=True)
    log, reading = read_signed_log(place, keys), verify_workspace(place, keys)
    retired = [one.id.hex() for one in lost]
    in_use = [str(one) for one, _, _ in reading.keys if one in log.note.signers([one])]
    if as_json:
        print_object({"retired": retired, "keys": in_use, "added_ml_dsa": added, "leaves": reading.signed})
        return
    for one in retired:
        print_plain(f"retired: key {one}: {reason.strip()}")
    print_plain(f"the checkpoint of {reading.signed:,} leaves, all so far, is signed by:")
    for vkey in in_use:
        print_plain(f"  {vkey}")
    print_plain("hand these keys to readers and witnesses yourself; they replace the retired ones in a policy.")
