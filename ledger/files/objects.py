"""A content-addressed store: bytes under their digest, written atomically and checked when they are read.

A workspace with a SQLite ledger uses a folder, one with a ledger in PostgreSQL a table of the database.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from ..database.protocol import Database, Transaction, explained
from ..digest import compute_digest
from ..errors import DamagedObject
from .private import file_mode, make_folder

PUBLIC_FILE_MODE = 0o644
"""Permissions of files that are written to be handed on."""


class Bodies(Protocol):
    """A store of bytes under their digest."""

    def put(self, body: bytes) -> str:
        """Store bytes and return their digest."""

    def get(self, name: str) -> bytes:
        """Return the bytes with this digest; `DamagedObject` if they are gone or changed."""

    def where(self, name: str) -> Path | None:
        """Return the file that holds the bytes with this digest; None where a database does."""

    def names(self) -> set[str]:
        """Return the digests of all that is stored."""

    def remove(self, names: Sequence[str]) -> None:
        """Remove what is stored under these digests."""


class StoredObjects:
    """A table of bytes, append-only like the rest of the record."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, body: bytes) -> str:
        """Store bytes and return their digest; storing them again does nothing."""
        name = compute_digest(body)
        if not self._database.rows("SELECT 1 FROM objects WHERE digest = ?", (name,)):
            self._database.write(lambda session: put_object(session, body))
        return name

    def where(self, name: str) -> None:
        """Return no file: the database holds them."""

    def names(self) -> set[str]:
        """Return the digests of all that is stored."""
        return {name for (name,) in self._database.rows("SELECT digest FROM objects")}

    def remove(self, names: Sequence[str]) -> None:
        """Remove what is stored under these digests."""

        def work(session: Transaction) -> None:
            for name in names:
                session.execute("DELETE FROM objects WHERE digest = ?", (name,))

        self._database.rewrite(("objects",), work)

    def get(self, name: str) -> bytes:
        """Return the bytes with this digest.

        Raises
        ------
        DamagedObject
            If they are gone or have another digest.
        """
        rows = self._database.rows("SELECT body FROM objects WHERE digest = ?", (name,))
        if not rows:
            raise DamagedObject(f"object {name} is not in the ledger", got=name, hint=_GONE_HINT)
        body = bytes(rows[0][0])
        if compute_digest(body) != name:
            raise DamagedObject(f"object {name} does not hold what its name says", got=name)
        return body


_GONE_HINT = "`alphaloom record verify` says whether somebody erased it, when and why."


def put_object(session: Transaction, body: bytes) -> str:
    """Store bytes in the table of objects, in a transaction; return their digest."""
    name = compute_digest(body)
    session.execute("INSERT INTO objects VALUES (?, ?) ON CONFLICT DO NOTHING", (name, body))
    return name


class Objects:
    """A folder of files, each under the SHA-256 of its bytes: ab/cdef..."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, name: str) -> Path:
        """Return where the bytes with this digest lie."""
        return self._folder / name[:2] / name[2:]

    def where(self, name: str) -> Path:
        """Return the file that holds the bytes with this digest."""
        return self.path(name)

    def names(self) -> set[str]:
        """Return the digests of all that is stored."""
        folders = [entry for entry in os.scandir(self._folder) if entry.is_dir()] if self._folder.is_dir() else []
        return {folder.name + file.name for folder in folders for file in os.scandir(folder.path)}

    def remove(self, names: Sequence[str]) -> None:
        """Remove the files with these digests."""
        with explained(self._folder):
            for name in names:
                self.path(name).unlink(missing_ok=True)

    def put(self, body: bytes) -> str:
        """Store bytes and return their digest; storing them again does nothing, or repairs a damaged copy."""
        name = compute_digest(body)
        path = self.path(name)
        with explained(self._folder):
            if not _has_body(path, body):
                make_folder(path.parent)
                write_whole(path, body)
        return name

    def get(self, name: str) -> bytes:
        """Return the bytes with this digest.

        Raises
        ------
        DamagedObject
            If the file is gone or its bytes have another digest.
        """
        try:
            body = self.path(name).read_bytes()
        except FileNotFoundError:
            raise DamagedObject(f"object {name} is not in {self._folder}", got=name, hint=_GONE_HINT) from None
        if compute_digest(body) != name:
            raise DamagedObject(f"{self.path(name)} does not hold what its name says", got=name)
        return body


def write_whole(path: Path, body: bytes, *, mode: int | None = None) -> None:
    """Write a file atomically: a crash leaves either the old or the new content.

    Without a `mode`, an existing file keeps its permissions, and a new one gets those of `private.file_mode`.
    """
    if mode is None:
        mode = stat.S_IMODE(path.stat().st_mode) if path.is_file() else file_mode(path.parent)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".draft-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, mode)
        os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_json(path: Path, record: Any, *, mode: int | None = None) -> bytes:
    """Write a record as indented JSON with sorted keys, and return the bytes; NaN is refused.

    `mode` is as for `write_whole`.
    """
    body = (json.dumps(record, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    write_whole(path, body, mode=mode)
    return body


def read_json(path: Path) -> Any:
    """Return the record that `write_json` wrote."""
    return json.loads(path.read_text(encoding="utf-8"))


# A run that scored 10,000 factors leaves 20 MB of results, of which a page needs a few lines. `write_json` begins each
# member on a line of its own, indented by its depth, and no text of JSON holds a line break. So a part can be found
# without parsing the rest.


def cut_member(body: bytes, name: str) -> Any:
    """Return one member of an object that `write_json` wrote, without parsing the others; None where it has none."""
    part = _cut_member_text(body, name)
    return json.loads(part) if part else None


def cut_listed(body: bytes, name: str, entry_id: str) -> Any:
    """Return the object with this `id` in a list that is a member, without parsing the others; None without one."""
    part = _cut_member_text(body, name)
    place = part.find(b'\n   "id": ' + json.dumps(entry_id, ensure_ascii=False).encode())
    if place < 0:
        return None
    return json.loads(part[part.rfind(b"\n  {", 0, place) : part.find(b"\n  }", place) + len(b"\n  }")])


def _cut_member_text(body: bytes, name: str) -> bytes:
    mark = b"\n " + json.dumps(name, ensure_ascii=False).encode() + b": "
    start = body.find(mark)
    if start < 0:
        return b""
    following = body.find(b'\n "', start + 1)
    end = following if following >= 0 else body.rfind(b"\n}")
    return body[start + len(mark) : end].removesuffix(b",")


def sync_folder(folder: Path) -> None:
    """Sync a folder's entries to the disk, so that they survive a power cut; Windows has no way to do it."""
    if sys.platform != "win32":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _has_body(path: Path, body: bytes) -> bool:
    """Return whether a file holds exactly these bytes."""
    try:
        return path.stat().st_size == len(body) and path.read_bytes() == body
    except FileNotFoundError:
        return False
