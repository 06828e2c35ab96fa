"""A witness: signs the checkpoint of another log once it is shown to continue the last one that was signed.

It follows `add-checkpoint` of C2SP tlog-witness, and so refuses six kinds of bad history: an unknown log, a bad
signature, a start that is not the last checkpoint, a log that became shorter, a changed history, and a second history
of equal length.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from ..database.locks import hold_lock
from ..digest import compute_digest
from ..errors import LedgerError
from .checkpoint import Checkpoint, is_decimal
from .export import CHECKPOINT_FILE
from .keys import COSIGNED, LOG_LIST, WITNESS_KEY, WITNESS_LIST, WITNESSED, KeyFolder
from .note import (
    KIND_LOG,
    KIND_WITNESS,
    NoteError,
    Signature,
    SignedNote,
    SigningKey,
    VerifierKey,
    decode_base64,
    read_log_text,
)
from .tiles import read_leaves
from .tree import HASH_SIZE, check_consistency, compute_root, prove_consistency
from .verification import WitnessedPart

MAX_PROOF_LINES = 63
MALFORMED, BAD_SIGNATURE, UNKNOWN_LOG, CONFLICT, BAD_PROOF = 400, 403, 404, 409, 422


class WitnessRefusal(LedgerError):
    """A witness does not sign a checkpoint; `status` is the HTTP status of the protocol."""

    code = "witness_refusal"
    exit_code = 1

    def __init__(self, status: int, message: str, *, got: object = None, allowed: object = None) -> None:
        super().__init__(message, field="checkpoint", got=got, allowed=allowed)
        self.status = status


class LogWitness:
    """Signs checkpoints of the logs that this desk watches, with the time of `clock`."""

    def __init__(self, keys: KeyFolder, clock: Callable[[], datetime]) -> None:
        self._keys, self._clock = keys, clock

    def find_key(self) -> SigningKey:
        """Return the key of this desk as a witness; made when it is first needed."""
        seed = self._keys.make_seed(WITNESS_KEY)
        public = SigningKey("", KIND_WITNESS, seed).verifier.public
        return SigningKey(f"alphaloom/witness-{compute_digest(public)[:16]}", KIND_WITNESS, seed)

    def find_last(self, origin: str) -> Checkpoint:
        """Return the last checkpoint of a log that this desk signed; one of size 0 if it has signed none."""
        kept = self._keys.recall(WITNESSED, origin)
        return kept[-1].checkpoint if kept else Checkpoint(origin, 0, b"")

    def sign_folder(self, folder: Path) -> SignedNote:
        """Return the checkpoint of an exported folder with this desk's signature added.

        Raises
        ------
        WitnessRefusal
            As `add_checkpoint` does; also if the tiles of the folder cannot be read.
        """
        note = SignedNote.parse(read_log_text(folder / CHECKPOINT_FILE))
        checkpoint = Checkpoint.parse(note.text)
        try:
            leaves = read_leaves(folder, checkpoint.size)
        except (OSError, ValueError) as error:
            raise WitnessRefusal(MALFORMED, f"the tiles cannot be read: {error}", got=str(folder)) from error
        signature = self.add_checkpoint(build_request(note, leaves, self.find_last(checkpoint.origin).size))
        return note.with_signatures([signature])

    def add_checkpoint(self, request: str) -> Signature:
        """Check a request and sign its checkpoint.

        Raises
        ------
        WitnessRefusal
            With the status and the reason. A refusal that shows a bad history names both checkpoints.
        """
        old, proof, note = _parse_request(request)
        checkpoint = Checkpoint.parse(note.text)
        logs = [key for key in self._keys.trusted(LOG_LIST) if key.name == checkpoint.origin]
        if not logs:
            raise WitnessRefusal(UNKNOWN_LOG, "this desk does not watch this log", got=checkpoint.origin)
        try:
            signed = note.signers(logs)
        except NoteError as error:
            raise WitnessRefusal(BAD_SIGNATURE, error.message) from error
        if not signed:
            raise WitnessRefusal(BAD_SIGNATURE, "no key that this desk trusts for this log has signed the checkpoint")
        with hold_lock(self._keys.folder / "witness.lock", "witness"):
            self._compare(old, proof, checkpoint)
            self._keys.remember(WITNESSED, checkpoint.origin, note)
        return self.find_key().sign(note.text, self._clock())

    def _compare(self, old: int, proof: Sequence[bytes], checkpoint: Checkpoint) -> None:
        """Refuse a checkpoint that does not continue the last one."""
        last = self.find_last(checkpoint.origin)
        if not checkpoint.size and checkpoint.root != compute_root(()):
            raise WitnessRefusal(MALFORMED, "a log of no leaves has another root than that of an empty tree")
        if old > checkpoint.size:
            raise WitnessRefusal(MALFORMED, "the log became shorter", got=checkpoint.size, allowed=f"at least {old}")
        if old != last.size:
            raise WitnessRefusal(CONFLICT, "the proof begins at another checkpoint", got=old, allowed=last.size)
        if old == checkpoint.size and old and last.root != checkpoint.root:
            raise WitnessRefusal(
                CONFLICT,
                "two histories of equal length: this log shows different readers different records",
                got=b64encode(checkpoint.root).decode(),
                allowed=b64encode(last.root).decode(),
            )
        if not check_consistency(old, last.root, checkpoint.size, checkpoint.root, proof):
            raise WitnessRefusal(
                BAD_PROOF,
                f"the history was changed: it does not continue the {old} leaves that this desk saw",
                got=b64encode(checkpoint.root).decode(),
            )


def trust_log(keys: KeyFolder, vkey: str) -> None:
    """Watch a log from now on; `NoteError` if this is no key of a log."""
    key = VerifierKey.parse(vkey)
    if key.kind != KIND_LOG:
        raise NoteError("this is the key of a witness, not of a log", field="--log", got=vkey)
    keys.trust(LOG_LIST, key)


def keep_cosigned(keys: KeyFolder, note: SignedNote, vkey: str | None) -> list[WitnessedPart]:
    """Keep a checkpoint of this desk's log that a witness signed; `vkey` is the key of a witness trusted from now on.

    Raises
    ------
    NoteError
        If no witness that this desk trusts has signed it.
    """
    if vkey is not None:
        key = VerifierKey.parse(vkey)
        if key.kind != KIND_WITNESS:
            raise NoteError("this is the key of a log, not of a witness", field="--witness", got=vkey)
        keys.trust(WITNESS_LIST, key)
    checkpoint = Checkpoint.parse(note.text)
    seen = {key.name: at for key, at in note.signers(keys.trusted(WITNESS_LIST)).items() if at}
    if not seen:
        raise NoteError(
            "no witness that this desk trusts has signed this checkpoint",
            field="FILE",
            hint="Name the witness's key with --witness VKEY; `alphaloom record witness` prints it on the other desk.",
        )
    for name in seen:
        keys.remember(COSIGNED, checkpoint.origin, note, name)
    return [WitnessedPart(name, checkpoint.size, at) for name, at in seen.items()]


def build_request(note: SignedNote, leaves: Sequence[bytes], old: int) -> str:
    """Return the request to sign a checkpoint after one of `old` leaves; without a proof if there are fewer."""
    proof = prove_consistency(leaves, old) if old <= len(leaves) else []
    lines = [f"old {old}", *(b64encode(node).decode() for node in proof)]
    return "\n".join(lines) + f"\n\n{note}"


def _parse_request(request: str) -> tuple[int, list[bytes], SignedNote]:
    head, _, note = request.partition("\n\n")
    first, *lines = head.split("\n")
    number = first.removeprefix("old ")
    proof = [node for line in lines if (node := decode_base64(line)) is not None and len(node) == HASH_SIZE]
    is_whole = len(proof) == len(lines) <= MAX_PROOF_LINES
    if not first.startswith("old ") or not is_decimal(number) or not is_whole:
        raise WitnessRefusal(MALFORMED, "this is no request to sign a checkpoint")
    try:
        parsed = SignedNote.parse(note)
        Checkpoint.parse(parsed.text)
    except NoteError as error:
        raise WitnessRefusal(MALFORMED, error.message) from error
    return int(number), proof, parsed
