"""What the attacked host has: secrets in every place, a folder to write to, and links that lead out of it."""

from __future__ import annotations

import ctypes
import hashlib
import os
import pickle
import sqlite3
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

__all__ = ["KEYS", "Ground", "token"]

KEYS = ("CANARY_KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN")
"""Names in the host's environment; their values are tokens."""

PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/", "/run/lock", "/dev/mqueue")


def token(seed: str, kind: str) -> str:
    """Return a word that nobody can guess who does not know the seed."""
    return f"canary-{kind}-{hashlib.sha256(f'{seed} {kind}'.encode()).hexdigest()[:24]}"


@dataclass
class Ground:
    """Files, folders and secrets around the sandbox.

    Attributes
    ----------
    top : Path
        A new folder of the test; all else lies in it.
    seed : str
        From which every token is drawn.
    """

    top: Path
    seed: str
    memory: ctypes.Array[ctypes.c_char] = field(init=False)

    def __post_init__(self) -> None:
        """Lay everything out and go to a folder whose name is a secret, too."""
        self.folder.mkdir()
        self.folder.chmod(0o777)
        self.secret.write_text(f"{self.token('file')}\nsecond line\n")
        self.secret.chmod(0o600)
        self.link.symlink_to(self.secret)
        os.link(self.secret, self.hard)
        self._bait()
        self.home.mkdir()
        os.chdir(self.home)
        self.memory = ctypes.create_string_buffer(self.token("memory").encode())

    def token(self, kind: str) -> str:
        """Return the secret of one kind."""
        return token(self.seed, kind)

    @property
    def folder(self) -> Path:
        """Return the folder that everybody may write to."""
        return self.top / "folder"

    @property
    def secret(self) -> Path:
        """Return the file that only its owner may read."""
        return self.top / "secret.txt"

    @property
    def link(self) -> Path:
        """Return a link to the secret."""
        return self.folder / "link"

    @property
    def hard(self) -> Path:
        """Return the secret's other name."""
        return self.folder / "hard"

    @property
    def home(self) -> Path:
        """Return the host's working folder."""
        return self.top / self.token("cwd")

    @property
    def mark(self) -> str:
        """Return the word that snippets leave behind; it is no secret."""
        return f"mark-{hashlib.sha256(self.seed.encode()).hexdigest()[:12]}"

    @property
    def secrets(self) -> Mapping[str, bytes]:
        """Return every secret by where it lies, and lines that no factor can know."""
        kinds = ("file", "env", "argv", "memory", "cwd", "sibling", "typed", "bait")
        found = {kind: self.token(kind).encode() for kind in kinds}
        with open("/etc/passwd", "rb") as users:
            found["/etc/passwd"] = users.readline().strip()
        name = os.uname().nodename.encode()
        return {**found, "name of the machine": name} if len(name) > 5 else found

    def left(self) -> list[str]:
        """Return the files with the mark, wherever snippets try to leave them; and take them away."""
        folders = [*PLACES, str(self.home), str(self.top), *_packages()]
        paths = [Path(folder, self.mark + end) for folder in folders for end in ("", "x", "d")]
        inside = [path for path in self.folder.iterdir() if path.name not in self.laid]
        found = [path for path in (*paths, *inside) if path.is_symlink() or path.exists()]
        for path in found:
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        return [str(path) for path in found]

    def state(self) -> tuple[object, ...]:
        """Return what may not change: the secret's text as its size and times tell it, mode, owner, names."""
        about = self.secret.lstat()
        names = (
            about.st_mode,
            about.st_uid,
            about.st_gid,
            about.st_nlink,
            about.st_size,
            about.st_mtime_ns,
            about.st_ctime_ns,
        )
        folder = self.folder.lstat()
        return *names, folder.st_mode, folder.st_uid, bytes(self.memory)

    def _bait(self) -> None:
        """Put files into the folder that the doors of libraries would open."""
        text = self.token("bait")
        for name in ("canary.json", "canary.parquet", "libcanary.so", ".env", ".netrc", "canary.csv"):
            (self.folder / name).write_text(text)
        (self.folder / "canary.py").write_text(f"text = {text!r}\n")
        (self.folder / "canary.pickle").write_bytes(pickle.dumps(text))
        np.save(self.folder / "canary.npy", np.array([text], dtype=object), allow_pickle=True)
        with zipfile.ZipFile(self.folder / "canary.zip", "w") as packed:
            packed.writestr("canary.txt", text)
        base = sqlite3.connect(self.folder / "canary.db")
        base.execute("create table secrets (text)")
        base.close()
        self.laid = {path.name for path in self.folder.iterdir()}


def _packages() -> list[str]:
    found = []
    for name in ("numpy", "pandas", "os"):
        folder = Path(str(sys.modules[name].__file__)).parent
        found += [str(folder), str(folder / "__pycache__")]
    return found
