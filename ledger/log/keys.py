"""The folder of a desk's keys, outside every workspace, and what the desk remembers beside them.

`log.key` signs the desk's own checkpoints, `witness.key` those of other desks. `signed/` holds the last checkpoint that
this desk signed of each of its logs, for each folder in which it signed: a copy of a workspace that is put back cannot
take it back, and two copies that both go on are told apart. `witnessed/` holds the
last checkpoint of each other desk that this desk signed as a witness. `cosigned/` holds, of each log of this desk, the
checkpoints that witnesses signed. `workspaces/` holds the last checkpoint that was signed in each folder, so that the
record of another workspace is not taken for this one's. `witnesses` lists the keys of witnesses that this desk trusts.
"""

from __future__ import annotations

import os
import secrets
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ..digest import compute_digest
from ..files.objects import write_whole
from ..files.private import make_folder
from .note import SEED_SIZE, NoteError, SignedNote, VerifierKey, decode_base64, read_log_text

KEYS_VARIABLE = "ALPHALOOM_KEYS"
"""Environment variable that names another folder, such as one on a removable disk."""
LOG_KEY, WITNESS_KEY = "log.key", "witness.key"
SIGNED, WITNESSED, COSIGNED, WORKSPACES = "signed", "witnessed", "cosigned", "workspaces"
WITNESS_LIST, LOG_LIST = "witnesses", "logs"
"""Files with the keys that this desk trusts: of witnesses, and of the logs that it witnesses; one a line."""


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
        make_folder(self.folder)
        seed = self._draw_seed(SEED_SIZE)
        with suppress(FileExistsError):  # another process made it meanwhile: its key counts
            handle = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(b64encode(seed).decode() + "\n")
                file.flush()
                os.fsync(file.fileno())
            return seed
        return self.find_seed(name) or seed

    def remember(self, kind: str, origin: str, note: SignedNote, about: str = "") -> None:
        """Keep a checkpoint of a log, in the place of an earlier one about the same folder or witness."""
        file = self._find_file(kind, origin, about)
        make_folder(file.parent)
        if about and not (named := file.with_suffix(".about")).is_file():
            write_whole(named, about.encode())
        write_whole(file, str(note).encode())

    def recall(self, kind: str, origin: str) -> list[SignedNote]:
        """Return the checkpoints that are kept of a log; what cannot be read is left out."""
        return [note for _, note in self.recall_by_place(kind, origin)]

    def recall_by_place(self, kind: str, origin: str) -> list[tuple[str, SignedNote]]:
        """Return the checkpoints that are kept of a log, each with the folder or witness that it is about."""
        notes = []
        for file in sorted(self._find_file(kind, origin, "").parent.glob("*.checkpoint")):
            with suppress(OSError, ValueError, NoteError):
                note = SignedNote.parse(file.read_text(encoding="utf-8"))
                named = file.with_suffix(".about")
                notes.append((named.read_text(encoding="utf-8") if named.is_file() else "", note))
        return notes

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
        name = compute_digest(about)[:16] if about else "last"
        return self.folder / kind / compute_digest(origin)[:32] / f"{name}.checkpoint"
