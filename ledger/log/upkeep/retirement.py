"""Keys that come and go: a lost or stolen key is retired with the time and reason, and the desk signs with a new one.

The desk's folder lists the public keys that it retired, so that every log that one of them signed learns of it when the
desk next signs there: as a row with its leaf. The checkpoint over that row has the new key's signature. A checkpoint
that covers the row and has a signature of the retired key is a finding: somebody else holds the key.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ...errors import LedgerError
from ...files.objects import write_whole
from ...files.private import make_folder
from ..checkpoint import Checkpoint
from ..comparison import LogFinding
from ..keys import LOG_KEY, SIGNED, KeyFolder
from ..leaves import LoggedRow, LoggedTransaction
from ..note import KIND_LOG, KIND_ML_DSA, SEED_SIZE, NoteError, SignedNote, SigningKey, VerifierKey, derive_public
from ..reader import RunQuery

ML_DSA_KEY = "log.ml-dsa.key"
"""File of the second key that signs the desk's checkpoints, where there is one."""
KEY_FILES = {KIND_LOG: LOG_KEY, KIND_ML_DSA: ML_DSA_KEY}
RETIRED_LIST = "retired"
"""File of the public keys that this desk retired: JSON, one a line."""


class KeyRefused(LedgerError):
    """A key cannot be retired or used."""

    code = "key_refused"
    exit_code = 1


@dataclass(frozen=True)
class RetiredKey:
    """A public key, and why it signs no more."""

    kind: int
    public: bytes
    why: str

    def record(self) -> dict[str, Any]:
        """Return the key as JSON."""
        return {"kind": self.kind, "public": self.public.hex(), "why": self.why}


def read_retired(keys: KeyFolder) -> list[RetiredKey]:
    """Return the keys that a desk retired; `NoteError` if the list cannot be read."""
    file = keys.folder / RETIRED_LIST
    try:
        records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        return [RetiredKey(one["kind"], bytes.fromhex(one["public"]), one["why"]) for one in records]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NoteError(f"{file} cannot be read", field=str(file), hint="Restore it from a copy.") from error


def replace_keys(keys: KeyFolder, lost: Sequence[VerifierKey], why: str, draw_seed: Callable[[int], bytes]) -> None:
    """Retire keys, and replace the desk's own among them by new ones.

    The list is written first: were the process killed in between, the old key would sign nothing more.
    """
    known = read_retired(keys)
    gone = [RetiredKey(key.kind, key.public, why) for key in lost]
    new = [key for key in gone if (key.kind, key.public) not in {(one.kind, one.public) for one in known}]
    make_folder(keys.folder)
    lines = "".join(json.dumps(key.record(), ensure_ascii=False) + "\n" for key in (*known, *new))
    write_whole(keys.folder / RETIRED_LIST, lines.encode())
    for kind, file in KEY_FILES.items():
        seed = keys.find_seed(file)
        if seed is not None and find_retired(read_retired(keys), kind, seed):
            write_whole(keys.folder / file, b64encode(draw_seed(len(seed))) + b"\n", mode=0o600)


def add_second_key(keys: KeyFolder) -> bool:
    """Make an ML-DSA key that signs beside the Ed25519 key from now on; return whether there was none.

    Raises
    ------
    NoteError
        If the folder cannot be written; `SignatureUnavailable` if cryptography has no ML-DSA.
    """
    derive_public(bytes(SEED_SIZE))  # refuses before a key is made that nothing can use
    known = keys.find_seed(ML_DSA_KEY) is not None
    keys.make_seed(ML_DSA_KEY)
    return not known


def find_retired(retired: Sequence[RetiredKey], kind: int, seed: bytes) -> RetiredKey | None:
    """Return the retired key that a private key belongs to; None if it is in use."""
    if not any(key.kind == kind for key in retired):
        return None
    public = SigningKey("", kind, seed).verifier.public
    return next((key for key in retired if (key.kind, key.public) == (kind, public)), None)


def refuse_retired(keys: KeyFolder, seed: bytes) -> None:
    """Refuse to sign with a key that was retired and put back; `KeyRefused`."""
    if retired := find_retired(read_retired(keys), KIND_LOG, seed):
        raise KeyRefused(
            f"the key {keys.folder / LOG_KEY} was retired: {retired.why}",
            field=LOG_KEY,
            hint="Make a new one: alphaloom record rekey --reason TEXT.",
        )


def record_retirements(session: LoggedTransaction, keys: KeyFolder, now: Callable[[], str]) -> str:
    """Record in a log that keys of it were retired; return why the last one was, "" if none is new."""
    retired = {(key.kind, key.public): key.why for key in read_retired(keys)}
    recorded = {vkey for (vkey,) in session.execute("SELECT vkey FROM retirements").fetchall()}
    why = ""
    for (vkey,) in session.execute("SELECT vkey FROM log_keys ORDER BY id").fetchall() if retired else ():
        key = VerifierKey.parse(vkey)
        if vkey not in recorded and (key.kind, key.public) in retired:
            why = retired[key.kind, key.public]
            session.append("retirements", {"vkey": vkey, "why": why, "at": now()})
    return why


def find_second_key(session: LoggedTransaction, keys: KeyFolder, name: str, now: Callable[[], str]) -> list[SigningKey]:
    """Return the desk's ML-DSA key under the name of a log, if it has one; a key new to the log is written into it."""
    seed = keys.find_seed(ML_DSA_KEY)
    if seed is None or find_retired(read_retired(keys), KIND_ML_DSA, seed):
        return []
    key = SigningKey(name, KIND_ML_DSA, seed)
    vkey = str(key.verifier)
    if not session.execute("SELECT 1 FROM log_keys WHERE vkey = ?", (vkey,)).fetchall():
        session.append("log_keys", {"vkey": vkey, "why": "it signs beside the Ed25519 key", "at": now()})
    return [key]


def choose_lost(run_query: RunQuery, keys: KeyFolder, key_id: str) -> list[VerifierKey]:
    """Return the keys of a log that should be retired.

    With an id, the key with it. Else those of this desk: by its private keys, or, where they are lost, by the last
    checkpoint that it remembers having signed. Else the only key that the log has.

    Raises
    ------
    KeyRefused
        If no key, or more than one desk's, can be meant.
    """
    gone = {vkey for (vkey,) in run_query("SELECT vkey FROM retirements")}
    named = [
        VerifierKey.parse(vkey) for (vkey,) in run_query("SELECT vkey FROM log_keys ORDER BY id") if vkey not in gone
    ]
    if key_id:
        found = [key for key in named if key.id.hex() == key_id]
    else:
        seeds = {kind: keys.find_seed(file) for kind, file in KEY_FILES.items()}
        own = {SigningKey("", kind, seed).verifier.public for kind, seed in seeds.items() if seed}
        notes = [one.note for key in named for one in keys.recall(SIGNED, key.name)]
        found = [key for key in named if key.public in own]
        found = found or list({key: None for note in notes for key in note.signers(named)})
        found = found or (named if len({key.kind for key in named}) == len(named) else [])
    if not found:
        raise KeyRefused(
            "it cannot be told which key of the log was this desk's",
            field="--key",
            got=key_id,
            allowed=[key.id.hex() for key in named] or "the log has no key in use",
            hint="Name it by its id: --key ID. `alphaloom record verify --json` lists the keys with their times.",
        )
    return found


def describe_retirements(run_query: RunQuery) -> Iterator[str]:
    """Yield who signs no more, since when and why, one line for each retired key."""
    for vkey, why, at in run_query("SELECT vkey, why, at FROM retirements ORDER BY id"):
        name, _, rest = str(vkey).partition("+")
        yield f"the key {rest[:8]} of {name} was retired at {at}: {why}"


def find_late_signatures(
    run_query: RunQuery, notes: Iterable[SignedNote], leaves: Mapping[Any, tuple[int, LoggedRow]]
) -> Iterator[LogFinding]:
    """Yield the checkpoints that a key signed after it was retired; `leaves` are those of the retirements."""
    retired = []
    for number, vkey in run_query("SELECT id, vkey FROM retirements ORDER BY id"):
        name, _, rest = str(vkey).partition("+")
        if number in leaves:
            retired.append((name, rest[:8], leaves[number][0]))
    for note in notes if retired else ():
        size = Checkpoint.parse(note.text).size
        for name, key_id, index in retired:
            if size > index and any((one.name, one.key_id.hex()) == (name, key_id) for one in note.signatures):
                message = f"the key {key_id} signed it after it was retired in leaf {index}: somebody else may hold it"
                yield LogFinding("log", f"checkpoint of {size} leaves", message, index)


def read_notes(texts: Iterable[str]) -> Iterator[SignedNote]:
    """Yield the checkpoints that can be read."""
    for text in texts:
        with suppress(NoteError):
            note = SignedNote.parse(text)
            Checkpoint.parse(note.text)
            yield note
