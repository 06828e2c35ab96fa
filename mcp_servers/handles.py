"""Panels handed over by handle: a file beside the server, which one caller may fetch in parts until it expires.

A handle is the HMAC of the server's key over who asked, the caller's last day and the content. So it cannot be guessed, and
in another caller's hands, or under another last day, it opens nothing: what is refused is refused in the same words, whether
it is unknown, foreign or expired.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..ledger.database import wait_for_lock
from .errors import McpServerError

__all__ = ["HandedFile", "Handles"]

HANDLE_LIFETIME = timedelta(hours=1)
"""How long a handle opens."""
MAX_PART_BYTES = 480_000
"""Of a part as a file: a third more in base64, and still below what a client's event may hold."""
COLUMN_OVERHEAD_BYTES = 48
"""Bytes at most that a part spends on a column beside its values and what the end of the file says of it."""
MAX_TABLES_CACHED = 4
"""Tables that are kept in memory after a part of them was asked for: the others are asked for next."""
MAX_CALLER_BYTES = 256 << 20
"""Of the panels that one caller may hold at a time; the oldest make room."""
PREVIEW_ROWS = 8
KEY_BYTES, SWEEP_S = 32, 60.0


@dataclass(frozen=True)
class HandedFile:
    """What a caller is told of a file that it may fetch.

    Attributes
    ----------
    handle : str
        64 hexadecimal digits.
    sha256 : str
        Of the whole file.
    rows, columns, size_bytes : int
        Of the whole table.
    names : tuple of str
        The first columns.
    parts : tuple of (int, int)
        First row and number of rows of each part.
    expires : datetime
        UTC.
    """

    handle: str
    sha256: str
    rows: int
    columns: int
    size_bytes: int
    names: tuple[str, ...]
    parts: tuple[tuple[int, int], ...]
    expires: datetime

    def uri(self, part: int) -> str:
        """Return the address of one part as a resource."""
        return f"alphaloom://panels/{self.handle}/{part}"

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "handle": self.handle,
            "format": "parquet",
            "sha256": self.sha256,
            "rows": self.rows,
            "columns": self.columns,
            "bytes": self.size_bytes,
            "first_columns": list(self.names),
            "parts": [{"uri": self.uri(at), "rows": rows} for at, (_, rows) in enumerate(self.parts)],
            "expires": self.expires.isoformat(timespec="seconds"),
        }


class Handles:
    """Keeps tables under a folder, each by its content, and says who may open them.

    Parameters
    ----------
    folder : Path
        Where files and the key lie; made if it is not there. Only this user reads it.
    clock : callable
        Returns the time, UTC.
    """

    def __init__(self, folder: Path, clock: Callable[[], datetime]) -> None:
        self.folder = folder
        self.clock = clock
        self._swept = float("-inf")
        self._given: dict[str, OrderedDict[str, tuple[int, float]]] = {}
        """Of each caller, the handles that open: size of the panel in bytes, and the end in seconds since 1970."""

    @cached_property
    def _key(self) -> bytes:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return _key(self.folder / "key")

    def hand_over(self, table: pa.Table, caller: str, as_of: str) -> HandedFile:
        """Keep a table, and return what the caller may fetch; the same table again is the same handle, for longer."""
        whole = _encode_parquet(table)
        content = hashlib.sha256(whole).hexdigest()
        handle = self._handle(caller, as_of, content)
        parts = _parts(table, whole)
        shown = tuple(table.column_names[:PREVIEW_ROWS])
        expires = self.clock() + HANDLE_LIFETIME
        handed = HandedFile(handle, content, table.num_rows, table.num_columns, len(whole), shown, parts, expires)
        told = {"content": content, "expires": expires.timestamp(), "parts": [list(part) for part in parts]}
        with wait_for_lock(self.folder / "lock"):
            dropped = self._make_room(caller, handle, len(whole), expires.timestamp())
            _write(self.folder / f"{content}.parquet", whole)
            _write(self.folder / f"{handle}.json", json.dumps(told).encode())
            self._sweep(at_once=dropped)
        return handed

    def _make_room(self, caller: str, handle: str, size: int, expires: float) -> bool:
        """Take back a caller's oldest handles where it holds too much with this one: disks are not filled by asking.

        Returns whether any was taken back. The panels go with the next sweep, unless somebody else's handle opens them.
        """
        now, own = self.clock().timestamp(), self._given.setdefault(caller, OrderedDict())
        own.pop(handle, None)
        while own and next(iter(own.values()))[1] <= now:
            own.popitem(last=False)
        own[handle] = (size, expires)
        dropped = False
        while len(own) > 1 and sum(bytes_ for bytes_, _ in own.values()) > MAX_CALLER_BYTES:
            (self.folder / f"{own.popitem(last=False)[0]}.json").unlink(missing_ok=True)
            dropped = True
        return dropped

    def fetch(self, handle: str, part: int, caller: str, as_of: str) -> bytes:
        """Return one part as a Parquet file.

        Raises
        ------
        McpServerError
            Nothing of this handle is there for this caller and day, or it has no such part.
        """
        told = self._told(handle, caller, as_of)
        if told is None:
            raise McpServerError(
                "no panel of yours has this handle", field="handle", got=handle[:80],
                hint="Handles open for an hour, and for the one who asked. Ask get_history again.", code="unknown_handle",
            )  # fmt: skip
        parts = told["parts"]
        if not 0 <= part < len(parts):
            raise McpServerError(
                "the panel has no such part", field="part", got=part, allowed=f"0 to {len(parts) - 1}",
                hint="The answer that gave the handle lists its parts.", code="unknown_handle",
            )  # fmt: skip
        first, rows = parts[part]
        whole = _table(self.folder / f"{told['content']}.parquet")
        return bytes(_encode_parquet(whole.slice(first, rows)).to_pybytes())

    def _handle(self, caller: str, as_of: str, content: str) -> str:
        said = json.dumps([caller, as_of, content]).encode()
        return hmac.new(self._key, said, hashlib.sha256).hexdigest()

    def _told(self, handle: str, caller: str, as_of: str) -> dict[str, Any] | None:
        """Return what was written of a handle, None where it does not open: same work and same answer, whatever the reason."""
        plain = hashlib.sha256(handle.encode()).hexdigest() if not _is_handle(handle) else handle
        place = self.folder / f"{plain}.json"
        told: dict[str, Any] = json.loads(place.read_bytes()) if place.is_file() else {"content": "", "expires": 0.0}
        own = hmac.compare_digest(self._handle(caller, as_of, told["content"]), plain)
        return told if own and told["expires"] > self.clock().timestamp() else None

    def _sweep(self, *, at_once: bool) -> None:
        """Remove what nobody may open any more, panels that no handle opens, and what a server that died left half written.

        Once a minute is enough, unless room is wanted at once. Who sweeps holds the folder's lock, so that nobody writes.
        """
        now, used = self.clock().timestamp(), set[str]()
        if not at_once and now < self._swept + SWEEP_S:
            return
        self._swept = now
        for place in [*self.folder.glob("*.json.*"), *self.folder.glob("*.parquet.*")]:
            place.unlink(missing_ok=True)
        for place in self.folder.glob("*.json"):
            told = json.loads(place.read_bytes())
            if told["expires"] <= now:
                place.unlink(missing_ok=True)
            else:
                used.add(told["content"])
        for place in self.folder.glob("*.parquet"):
            if place.stem not in used:
                place.unlink(missing_ok=True)


def _is_handle(text: str) -> bool:
    return len(text) == 2 * KEY_BYTES and all(letter in "0123456789abcdef" for letter in text)


def _encode_parquet(table: pa.Table) -> pa.Buffer:
    """Return a table as a Parquet file.

    The bytes of numbers are told apart by place, so that a compression that takes no time makes them as small as a strong
    one would; with 500 columns what is left is what Parquet spends on each.
    """
    sink = pa.BufferOutputStream()
    numbers = [column.name for column in table.schema if pa.types.is_floating(column.type)]
    pq.write_table(
        table, sink, compression="snappy", use_dictionary=False, write_statistics=False, store_schema=False,
        use_byte_stream_split=numbers,
    )  # fmt: skip
    return sink.getvalue()


@lru_cache(maxsize=MAX_TABLES_CACHED)
def _table(place: Path) -> pa.Table:
    """Return a table that lies under its content: what was read once stays true."""
    with pq.ParquetFile(place) as file:
        return file.read(use_threads=False)  # threads cost more than they save where columns are many and short


def _parts(table: pa.Table, whole: pa.Buffer) -> tuple[tuple[int, int], ...]:
    """Return the first row and the number of rows of parts that stay small whatever their values are.

    Rows of many gaps shrink more than others, so that nothing follows for one part from the size of the whole.
    """
    end = int.from_bytes(whole[-8:-4].to_pybytes(), "little")  # what the end of the file says of its columns
    spent, row = end + COLUMN_OVERHEAD_BYTES * table.num_columns, max(table.nbytes / max(table.num_rows, 1), 1.0)
    most = max(int((MAX_PART_BYTES - spent) / row), 1)
    return tuple((first, min(most, table.num_rows - first)) for first in range(0, max(table.num_rows, 1), most))


def _key(place: Path) -> bytes:
    """Return the key of a folder, made on first use; two servers that start together agree on the one that came first."""
    if not place.exists():
        fresh = place.with_name(f"key-{secrets.token_hex(8)}")
        fresh.touch(mode=0o600)
        fresh.write_bytes(secrets.token_bytes(KEY_BYTES))
        try:
            os.link(fresh, place)
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    return place.read_bytes()


def _write(place: Path, content: bytes | pa.Buffer) -> None:
    unfinished = place.with_name(f"{place.name}.{secrets.token_hex(4)}")
    unfinished.write_bytes(content)
    unfinished.replace(place)
