"""The folder of a desk's keys, outside every workspace, and what the desk remembers beside them.

`log.key` signs the desk's own checkpoints, `witness.key` those of other desks. The folders hold checkpoints:

- `signed/`: the last one of each log of this desk, for each folder in which the desk signed it.
- `workspaces/`: for each folder, the last one of each log that was begun there or came there first. A record in that
  folder must hold one of them. A log of another name joins them only where the record holds one already.
- `witnessed/`: the last one of each other desk that this desk signed as a witness.
- `cosigned/`: those of this desk's logs that witnesses signed.
- `acknowledged/`: those up to which a person accepted what the verification found.

A file `.about` beside a checkpoint names the folder, log or witness. `witnesses` and `logs` list the keys that this
desk trusts.
"""

from __future__ import annotations

import json
import os
import secrets
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..database.locks import wait_for_lock
from ..digest import compute_digest
from ..files.objects import write_whole
from ..files.private import make_folder
from .checkpoint import Checkpoint
from .note import SEED_SIZE, NoteError, SignedNote, VerifierKey, decode_base64, read_log_text

KEYS_VARIABLE = "ALPHALOOM_KEYS"
"""Environment variable that names another folder, such as one on a removable disk."""
LOG_KEY, WITNESS_KEY = "log.key", "witness.key"
SIGNED, WITNESSED, COSIGNED, WORKSPACES = "signed", "witnessed", "cosigned", "workspaces"
ACKNOWLEDGED = "acknowledged"
WITNESS_LIST, LOG_LIST = "witnesses", "logs"
"""Files with the keys that this desk trusts: of witnesses, and of the logs that it witnesses; one a line."""


@dataclass(frozen=True)
class RememberedCheckpoint:
    """A checkpoint that the desk keeps outside the record.

    Attributes
    ----------
    note : SignedNote
        The checkpoint.
    about : str
        The folder, log or witness that it is about; empty if it is the only one of its log.
    is_branch : bool
        Whether the log of this name began as the continuation of a copy, beside the original.
    """

    note: SignedNote
    about: str = ""
    is_branch: bool = False

    @property
    def checkpoint(self) -> Checkpoint:
        """The text of the checkpoint, read."""
        return Checkpoint.parse(self.note.text)


class KeyFolder:
    """Keys and remembered checkpoints of one desk."""

    def __init__(self, folder: Path, draw_seed: Callable[[int], bytes] = secrets.token_bytes) -> None:
        self.folder = folder
        self._draw_seed = draw_seed

    @classmethod
    def of_user(cls) -> KeyFolder:
        """Return the folder of the person at this machine; nothing is made yet."""
        from platformdirs import user_config_path

        given = os.environ.get(KEYS_VARIABLE, "")
        return cls(Path(given).expanduser() if given else user_config_path("alphaloom") / "keys")

    def find_seed(self, name: str) -> bytes | None:
        """Return the private key of a file; None if there is none.

        Raises
        ------
        NoteError
            If the file holds something else.
        """
        file = self.folder / name
        try:
            seed = decode_base64(file.read_text(encoding="ascii").strip())
        except FileNotFoundError:
            return None
        except ValueError:
            seed = None
        if seed is None or len(seed) != SEED_SIZE:
            raise NoteError(
                f"{file} holds no key",
                field=KEYS_VARIABLE,
                hint="Restore it from a copy. If it is lost, remove it: the next run makes a new key, "
                "and the log says since when it signs.",
            )
        return seed

    def make_seed(self, name: str) -> bytes:
        """Return the private key of a file, which is made if it is not there; readable by its owner alone.

        Raises
        ------
        NoteError
            If the file holds something else, or cannot be read or made.
        """
        try:
            return self.find_seed(name) or self._make_seed(name)
        except OSError as error:
            raise NoteError(
                f"no key can be kept in {self.folder}: {error.strerror}",
                field=KEYS_VARIABLE,
                hint=f"Name a folder that you can write to with {KEYS_VARIABLE}.",
            ) from error

    def _make_seed(self, name: str) -> bytes:
        """Make a key: whole under another name first, because a crash must not leave an empty file under this one."""
        make_folder(self.folder)
        file, draft = self.folder / name, self.folder / f".{name}.{secrets.token_hex(8)}"
        seed = self._draw_seed(SEED_SIZE)
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="ascii") as stream:
                stream.write(b64encode(seed).decode() + "\n")
                stream.flush()
                os.fsync(stream.fileno())
            with suppress(FileExistsError):  # another process made it meanwhile: its key counts
                _link(draft, file)
        finally:
            draft.unlink(missing_ok=True)
        return self.find_seed(name) or seed

    def remember(
        self, kind: str, origin: str, note: SignedNote, about: str = "", *, is_branch: bool | None = None
    ) -> None:
        """Keep a checkpoint of a log, in the place of a smaller one about the same folder, log or witness.

        Two processes may sign one after the other and come here in the other order: the larger checkpoint stays.

        Raises
        ------
        NoteError
            If the folder cannot be written.
        """
        file = self._find_file(kind, origin, about)
        with self._changing(file.parent):
            last = _read_remembered(file)
            if last is not None and last.checkpoint.size > Checkpoint.parse(note.text).size:
                return
            branch = is_branch if is_branch is not None else last is not None and last.is_branch
            if about and (last is None or last.is_branch != branch):
                write_whole(file.with_suffix(".about"), json.dumps({"about": about, "branch": branch}).encode())
            write_whole(file, str(note).encode())

    def forget(self, kind: str, origin: str, about: str) -> None:
        """Drop the checkpoint about a folder, log or witness."""
        file = self._find_file(kind, origin, about)
        with self._changing(file.parent):
            file.unlink(missing_ok=True)
            file.with_suffix(".about").unlink(missing_ok=True)

    @contextmanager
    def _changing(self, folder: Path) -> Iterator[None]:
        try:
            make_folder(self.folder)
            make_folder(folder)
            with wait_for_lock(self.folder / "memory.lock"):
                yield
        except OSError as error:
            raise NoteError(
                f"no checkpoint can be kept in {folder}: {error.strerror}",
                field=KEYS_VARIABLE,
                hint=f"Make the folder writable, or name another one with {KEYS_VARIABLE}.",
            ) from error

    def recall(self, kind: str, origin: str) -> list[RememberedCheckpoint]:
        """Return the checkpoints that are kept of a log, or of a folder; what cannot be read is left out."""
        files = sorted(self._find_file(kind, origin, "").parent.glob("*.checkpoint"))
        return [one for file in files if (one := _read_remembered(file)) is not None]

    def trusted(self, listed: str) -> list[VerifierKey]:
        """Return the keys of a list; `NoteError` if a line is none."""
        file = self.folder / listed
        return [VerifierKey.parse(line) for line in read_log_text(file).split()] if file.is_file() else []

    def trust(self, listed: str, key: VerifierKey) -> None:
        """Add a key to a list, unless it is there."""
        keys = self.trusted(listed)
        if key not in keys:
            make_folder(self.folder)
            write_whole(self.folder / listed, "".join(f"{one}\n" for one in (*keys, key)).encode())

    def _find_file(self, kind: str, origin: str, about: str) -> Path:
        name = _digest_name(about)[:16] if about else "last"
        return self.folder / kind / _digest_name(origin)[:32] / f"{name}.checkpoint"


def _digest_name(name: str) -> str:
    """Return the digest of a name, which may be a path that is no UTF-8."""
    return compute_digest(name.encode("utf-8", "surrogateescape"))


def _link(draft: Path, file: Path) -> None:
    """Give a file its name, unless that is taken; `FileExistsError` then."""
    try:
        os.link(draft, file)
    except FileExistsError:
        raise
    except OSError:  # a removable disk may know no links
        if file.exists():
            raise FileExistsError from None
        draft.rename(file)


def _read_remembered(file: Path) -> RememberedCheckpoint | None:
    try:
        note = SignedNote.parse(file.read_text(encoding="utf-8"))
        Checkpoint.parse(note.text)
    except (OSError, ValueError, NoteError):
        return None
    about = {}
    with suppress(OSError, ValueError):
        about = json.loads(file.with_suffix(".about").read_text(encoding="utf-8"))
    if not isinstance(about, dict):
        about = {}
    return RememberedCheckpoint(note, str(about.get("about", "")), about.get("branch") is True)
