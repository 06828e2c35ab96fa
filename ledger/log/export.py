"""Writes a log as static files that any web server can hand out, and verifies such a folder.

The hashes may be public: 16 random bytes in each leaf keep its content from being guessed. The entries name runs,
factors and people, so they are written only when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..files.objects import PUBLIC_FILE_MODE, write_whole
from .checkpoint import Checkpoint, CheckpointPolicy, is_decimal
from .comparison import LogFinding
from .keys import COSIGNED, KeyFolder
from .note import NoteError, SignedNote, VerifierKey, read_log_text
from .reader import RunQuery, read_record
from .tiles import ENTRIES_LEVEL, build_bundles, build_tiles, read_leaves, split_bundle
from .tree import HASH_SIZE, compute_root, hash_leaf

CHECKPOINT_FILE, KEY_FILE = "checkpoint", "vkey"


@dataclass(frozen=True)
class SignedLog:
    """The signed part of a log: its last checkpoint, the key that signed it, and all entries that it covers."""

    note: SignedNote
    key: VerifierKey
    entries: tuple[bytes, ...]

    @property
    def hashes(self) -> list[bytes]:
        """The hashes of the leaves."""
        return [hash_leaf(entry) for entry in self.entries]


def read_signed_log(workspace: Path, keys: KeyFolder) -> SignedLog:
    """Read the signed part of a workspace's log, with the signatures of witnesses that this desk keeps of it.

    Raises
    ------
    NoteError
        If there is no checkpoint yet, or no key that the log names has signed the last one.
    """

    def work(run_query: RunQuery, _: object) -> SignedLog:
        notes = run_query("SELECT note FROM log_checkpoints ORDER BY id DESC LIMIT 1")
        if not notes:
            raise NoteError("the log of this workspace has no checkpoint yet", hint="The next run signs one.")
        note = SignedNote.parse(notes[0][0])
        checkpoint = Checkpoint.parse(note.text)
        named = [VerifierKey.parse(vkey) for (vkey,) in run_query("SELECT vkey FROM log_keys ORDER BY id")]
        signers = list(note.signers(named))
        if not signers:
            raise NoteError("no key that the log names has signed its last checkpoint")
        rows = run_query(f"SELECT entry FROM leaves WHERE id <= {checkpoint.size} ORDER BY id")
        seen = [one.note for one in keys.recall(COSIGNED, checkpoint.origin) if one.note.text == note.text]
        note = note.with_signatures([signature for kept in seen for signature in kept.signatures])
        return SignedLog(note, signers[-1], tuple(entry.encode() for (entry,) in rows))

    return read_record(workspace, work)


def export_log(log: SignedLog, folder: Path, *, with_entries: bool) -> int:
    """Write a log as static files, the checkpoint last; return the number of files that were new or changed."""
    files = [*build_tiles(log.hashes), *(build_bundles(log.entries) if with_entries else ())]
    files += [(KEY_FILE, f"{log.key}\n".encode()), (CHECKPOINT_FILE, str(log.note).encode())]
    written = 0
    for name, body in files:
        path = folder / name
        if not path.is_file() or path.read_bytes() != body:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, body, mode=PUBLIC_FILE_MODE)
            written += 1
    return written


@dataclass(frozen=True)
class ExportReading:
    """The result of verifying a folder: its checkpoint, who signed it, and what is wrong."""

    checkpoint: Checkpoint
    signers: tuple[str, ...]
    with_entries: bool
    findings: tuple[LogFinding, ...]


def verify_export(folder: Path, policy: CheckpointPolicy | None = None) -> ExportReading:
    """Verify a folder of static files: the signature, and every file against the leaves.

    Without a policy, the key that lies in the folder is taken: that shows damage, and not who signed.

    Raises
    ------
    NoteError
        If the checkpoint cannot be read or is not signed as it must be.
    """
    note = SignedNote.parse(read_log_text(folder / CHECKPOINT_FILE))
    checkpoint = Checkpoint.parse(note.text)
    keys = [*policy.logs, *policy.witnesses.values()] if policy else [_read_key(folder)]
    signed = note.signers(keys)
    if not (policy.accepts(signed, checkpoint.origin) if policy else signed):
        raise NoteError("the checkpoint lacks the signatures that the policy asks for", field="checkpoint")
    if policy is None and any(key.name != checkpoint.origin for key in signed):
        raise NoteError("the checkpoint is of another log than its key", field="checkpoint", got=checkpoint.origin)
    with_entries = (folder / "tile" / ENTRIES_LEVEL).is_dir()
    findings = tuple(_check_files(folder, checkpoint, with_entries=with_entries))
    return ExportReading(checkpoint, tuple(sorted(key.name for key in signed)), with_entries, findings)


def _read_key(folder: Path) -> VerifierKey:
    return VerifierKey.parse(read_log_text(folder / KEY_FILE))


def _check_files(folder: Path, checkpoint: Checkpoint, *, with_entries: bool) -> Iterator[LogFinding]:
    try:
        leaves = read_leaves(folder, checkpoint.size)
    except (OSError, ValueError) as error:
        yield LogFinding("log", "tile/0", str(error))
        return
    if compute_root(leaves) != checkpoint.root:
        yield LogFinding("log", "tile/0", "the leaves have another root than the checkpoint")
    expected = dict(build_tiles(leaves))
    for name, body in expected.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != body:
            yield LogFinding("log", name, "it is missing, or is not what the leaves give")
    if with_entries:
        yield from _check_entries(folder, leaves)
    bundles = {name for name, _ in build_bundles([b""] * len(leaves))} if with_entries else set()
    full = {name.partition(".p/")[0]: tile for name, tile in expected.items()}
    for path in sorted((folder / "tile").rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in expected and name not in bundles:
            body, (stem, _, width) = path.read_bytes(), name.partition(".p/")
            if name.startswith(f"tile/{ENTRIES_LEVEL}/"):
                known = full.get(stem.replace(f"tile/{ENTRIES_LEVEL}/", "tile/0/"), b"")
                body = _hash_entries(body)
            else:
                known = full.get(stem, b"")
            if not is_decimal(width) or not body or len(body) != int(width) * HASH_SIZE or not known.startswith(body):
                yield LogFinding("log", name, "it is no file of this log")


def _hash_entries(bundle: bytes) -> bytes:
    """Return the hashes of the entries of a bundle, one after the other; empty if it is none."""
    try:
        return b"".join(hash_leaf(entry) for entry in split_bundle(bundle))
    except ValueError:
        return b""


def _check_entries(folder: Path, leaves: Sequence[bytes]) -> Iterator[LogFinding]:
    for name, _ in build_bundles([b""] * len(leaves)):
        index = int(name.removeprefix(f"tile/{ENTRIES_LEVEL}/").partition(".p/")[0].replace("x", "").replace("/", ""))
        own = leaves[index * 256 : (index + 1) * 256]
        try:
            entries = split_bundle((folder / name).read_bytes())
        except (OSError, ValueError) as error:
            yield LogFinding("log", name, str(error))
            continue
        if [hash_leaf(entry) for entry in entries] != own:
            yield LogFinding("log", name, "its entries are not those of the leaves")
