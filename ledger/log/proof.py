"""Proofs that one record is in the log, in one file that a stranger's tool verifies (C2SP tlog-proof)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from ..database.schema import TABLE_KEYS
from .checkpoint import Checkpoint, CheckpointPolicy, is_decimal
from .export import SignedLog
from .leaves import LoggedRow
from .note import NoteError, SignedNote, VerifierKey, decode_base64
from .tree import HASH_SIZE, compute_root_from_inclusion, hash_leaf, prove_inclusion

PROOF_HEADER = "c2sp.org/tlog-proof@v1"
PROOF_SUFFIX = ".tlog-proof"
IDENTIFYING_COLUMNS = {
    "verdicts": "factor_id",
    "library": "factor_id",
    "events": "key",
    "artefacts": "run",
    "calls": "key",
}
"""The column by which a person names a row, for the tables that are searched, in this order: the verdict on a factor,
the factor, a decision or another event, the results of a run, a model call."""
PROVEN_ARTEFACT = "results.json"


@dataclass(frozen=True)
class InclusionProof:
    """An entry of a log, its place, the hashes that lead to the root, and the checkpoint with the root."""

    entry: bytes
    index: int
    path: tuple[bytes, ...]
    note: SignedNote

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the file of a proof; `NoteError` if it is none."""
        head, blank, note = text.partition("\n\n")
        match head.split("\n"):
            case [first, extra, index, *path] if first == PROOF_HEADER and extra.startswith("extra "):
                entry, hashes = decode_base64(extra.removeprefix("extra ")), [decode_base64(line) for line in path]
                number = index.removeprefix("index ")
                known = [node for node in hashes if node is not None and len(node) == HASH_SIZE]
                if blank and entry is not None and is_decimal(number) and len(known) == len(hashes):
                    proof = cls(entry, int(number), tuple(known), SignedNote.parse(note))
                    if str(proof) == text:
                        return proof
        raise NoteError(
            "this is no proof of this format",
            field="FILE",
            allowed=f"{PROOF_HEADER}, with the entry as extra data, as `alphaloom record prove` writes it",
        )

    def __str__(self) -> str:
        """Return the text of the file."""
        lines = [PROOF_HEADER, f"extra {b64encode(self.entry).decode()}", f"index {self.index}"]
        lines += [b64encode(node).decode() for node in self.path]
        return "\n".join(lines) + f"\n\n{self.note}"

    def verify(self, policy: CheckpointPolicy) -> dict[VerifierKey, datetime | None]:
        """Return who signed the checkpoint that covers the entry.

        Raises
        ------
        NoteError
            If the entry is not in the tree of the checkpoint, or the policy does not accept its signatures.
        """
        checkpoint = Checkpoint.parse(self.note.text)
        root = compute_root_from_inclusion(hash_leaf(self.entry), self.index, checkpoint.size, self.path)
        if root != checkpoint.root:
            raise NoteError("the entry is not in the tree of the checkpoint: one of them was changed", field="FILE")
        signed = self.note.signers([*policy.logs, *policy.witnesses.values()])
        if not policy.accepts(signed, checkpoint.origin):
            raise NoteError("the checkpoint lacks the signatures that the policy asks for", field="--policy")
        return signed


def prove_row(log: SignedLog, name: str, cosigned: Sequence[SignedNote] = ()) -> tuple[LoggedRow, InclusionProof]:
    """Return the newest row with a name, and its proof under the newest checkpoint that a witness signed.

    Where no witness signed a checkpoint that covers the row, the last checkpoint of the log is taken. A name is the id
    of a factor, a decision, a run or a model call, the start of one, or `TABLE/NUMBER`.

    Raises
    ------
    NoteError
        If no row has this name.
    """
    index, row = _find_row(log, name)
    notes = [log.note, *sorted(cosigned, key=lambda note: Checkpoint.parse(note.text).size)]
    note = next((note for note in reversed(notes) if Checkpoint.parse(note.text).size > index), log.note)
    size = Checkpoint.parse(note.text).size
    path = prove_inclusion(log.hashes[:size], index)
    return row, InclusionProof(log.entries[index], index, tuple(path), note)


def _find_row(log: SignedLog, name: str) -> tuple[int, LoggedRow]:
    rows = [(index, LoggedRow.parse(entry.decode())) for index, entry in enumerate(log.entries)]
    for matches in (*_match(rows, name, str.__eq__), *_match(rows, name, str.startswith)):
        if matches:
            return matches[-1]
    raise NoteError(
        f"no signed record is named {name}",
        field="ID",
        got=name,
        allowed="the id of a factor, a decision, a run or a model call, the start of one, or TABLE/NUMBER",
        hint="What was recorded in the last second may not be signed yet.",
    )


def _match(
    rows: list[tuple[int, LoggedRow]], name: str, is_match: Callable[[str, str], bool]
) -> Iterator[list[tuple[int, LoggedRow]]]:
    table, _, number = name.partition("/")
    key = TABLE_KEYS[table][0][0] if table in TABLE_KEYS else ""
    yield [(index, row) for index, row in rows if row.table == table and str(row.columns.get(key, "")) == number != ""]
    for table, column in IDENTIFYING_COLUMNS.items():
        yield [
            (index, row)
            for index, row in rows
            if row.table == table
            and is_match(str(row.columns.get(column, "")), name)
            and row.columns.get("name", PROVEN_ARTEFACT) == PROVEN_ARTEFACT
        ]
