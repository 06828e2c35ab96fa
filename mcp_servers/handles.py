"""Panels handed over by handle: a file beside the server that one caller may fetch in parts until it expires.

A handle is the HMAC, with the server's key, of the caller, its last day and the content. So it cannot be guessed, and
it opens nothing for another caller or another last day. An unknown, a foreign and an expired handle get the same
refusal.
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

HANDLE_LIFETIME = timedelta(hours=1)
"""Lifetime of a handle."""
MAX_PART_BYTES = 480_000
"""Maximum file size of a part: a third more in base64, which is still below the limit of a client's event."""
COLUMN_OVERHEAD_BYTES = 48
"""Maximum bytes of a column in a part, beside its values and its metadata in the footer."""
MAX_TABLES_CACHED = 4
"""Tables kept in memory after a fetch, since their other parts are usually fetched next."""
MAX_CALLER_BYTES = 256 << 20
"""Maximum size of one caller's panels; the oldest are dropped."""
PREVIEW_ROWS = 8
KEY_BYTES, SWEEP_S = 32, 60.0


@dataclass(frozen=True)
class HandedFile:
    """Description of a file that a caller may fetch.

    Attributes
    ----------
    handle : str
        64 hexadecimal digits.
    sha256 : str
        Digest of the whole file.
    rows, columns, size_bytes : int
        Size of the whole table.
    names : tuple of str
        Names of the first columns.
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
    """Stores tables in a folder, by content, and checks who may open them.

    Parameters
    ----------
    folder : Path
        Folder of the files and the key; created if missing, readable by this user only.
    clock : callable
        Returns the time, UTC.
    """

    def __init__(self, folder: Path, clock: Callable[[], datetime]) -> None:
        self.folder = folder
        self.clock = clock
        self._swept = float("-inf")
        self._given: dict[str, OrderedDict[str, tuple[int, float]]] = {}
        """Valid handles by caller: size of the panel in bytes, and end in seconds since 1970."""

    @cached_property
    def _key(self) -> bytes:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return _load_key(self.folder / "key")

    def hand_over(self, table: pa.Table, caller: str, as_of: str) -> HandedFile:
        """Store a table, and return its description; the same table again prolongs its handle."""
        whole = _encode_parquet(table)
        content = hashlib.sha256(whole).hexdigest()
        handle = self._compute_handle(caller, as_of, content)
        parts = _split_parts(table, whole)
        names = tuple(table.column_names[:PREVIEW_ROWS])
        expires = self.clock() + HANDLE_LIFETIME
        file = HandedFile(handle, content, table.num_rows, table.num_columns, len(whole), names, parts, expires)
        record = {"content": content, "expires": expires.timestamp(), "parts": [list(part) for part in parts]}
        with wait_for_lock(self.folder / "lock"):
            dropped = self._make_room(caller, handle, len(whole), expires.timestamp())
            _write(self.folder / f"{content}.parquet", whole)
            _write(self.folder / f"{handle}.json", json.dumps(record).encode())
            self._sweep(at_once=dropped)
        return file

    def _make_room(self, caller: str, handle: str, size: int, expires: float) -> bool:
        """Drop a caller's oldest handles beyond `MAX_CALLER_BYTES`, so that no caller can fill the disk.

        Returns whether any was dropped. Their panels are deleted by the next sweep, unless another caller's handle
        opens them.
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
            The handle opens nothing for this caller and day, or the panel has no such part.
        """
        record = self._read_record(handle, caller, as_of)
        if record is None:
            raise McpServerError(
                "no panel of yours has this handle",
                field="handle",
                got=handle[:80],
                hint="Handles open for an hour, and for the one who asked. Ask get_history again.",
                code="unknown_handle",
            )
        parts = record["parts"]
        if not 0 <= part < len(parts):
            raise McpServerError(
                "the panel has no such part",
                field="part",
                got=part,
                allowed=f"0 to {len(parts) - 1}",
                hint="The answer that gave the handle lists its parts.",
                code="unknown_handle",
            )
        first, rows = parts[part]
        whole = _read_table(self.folder / f"{record['content']}.parquet")
        return bytes(_encode_parquet(whole.slice(first, rows)).to_pybytes())

    def _compute_handle(self, caller: str, as_of: str, content: str) -> str:
        message = json.dumps([caller, as_of, content]).encode()
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()

    def _read_record(self, handle: str, caller: str, as_of: str) -> dict[str, Any] | None:
        """Return the record of a handle; None where it does not open, after the same work whatever the reason."""
        plain = hashlib.sha256(handle.encode()).hexdigest() if not _is_handle(handle) else handle
        place = self.folder / f"{plain}.json"
        record: dict[str, Any] = json.loads(place.read_bytes()) if place.is_file() else {"content": "", "expires": 0.0}
        own = hmac.compare_digest(self._compute_handle(caller, as_of, record["content"]), plain)
        return record if own and record["expires"] > self.clock().timestamp() else None

    def _sweep(self, *, at_once: bool) -> None:
        """Delete expired handles, panels without a handle, and unfinished files of a crashed server.

        It runs at most once a minute, unless `at_once`. The caller holds the folder's lock, so no write is under way.
        """
        now, used = self.clock().timestamp(), set[str]()
        if not at_once and now < self._swept + SWEEP_S:
            return
        self._swept = now
        for place in [*self.folder.glob("*.json.*"), *self.folder.glob("*.parquet.*")]:
            place.unlink(missing_ok=True)
        for place in self.folder.glob("*.json"):
            record = json.loads(place.read_bytes())
            if record["expires"] <= now:
                place.unlink(missing_ok=True)
            else:
                used.add(record["content"])
        for place in self.folder.glob("*.parquet"):
            if place.stem not in used:
                place.unlink(missing_ok=True)


def _is_handle(text: str) -> bool:
    return len(text) == 2 * KEY_BYTES and all(letter in "0123456789abcdef" for letter in text)


def _encode_parquet(table: pa.Table) -> pa.Buffer:
    """Return a table as a Parquet file.

    The bytes of numbers are split by place, so that a fast compression gets them as small as a strong one would. With
    500 columns, Parquet's overhead of each column is what remains.
    """
    sink = pa.BufferOutputStream()
    numbers = [column.name for column in table.schema if pa.types.is_floating(column.type)]
    pq.write_table(
        table,
        sink,
        compression="snappy",
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
        use_byte_stream_split=numbers,
    )
    return sink.getvalue()


@lru_cache(maxsize=MAX_TABLES_CACHED)
def _read_table(place: Path) -> pa.Table:
    """Return the table of a file; it can be cached, since its name is the hash of its content."""
    with pq.ParquetFile(place) as file:
        return file.read(use_threads=False)  # threads cost more than they save with many short columns


def _split_parts(table: pa.Table, whole: pa.Buffer) -> tuple[tuple[int, int], ...]:
    """Return the first row and the number of rows of each part; the parts stay small for all values.

    Rows with many gaps compress better than others, so the size of the compressed whole gives no bound for a part.
    """
    end = int.from_bytes(whole[-8:-4].to_pybytes(), "little")  # length of the footer, which describes the columns
    spent, row = end + COLUMN_OVERHEAD_BYTES * table.num_columns, max(table.nbytes / max(table.num_rows, 1), 1.0)
    most = max(int((MAX_PART_BYTES - spent) / row), 1)
    return tuple((first, min(most, table.num_rows - first)) for first in range(0, max(table.num_rows, 1), most))


def _load_key(place: Path) -> bytes:
    """Return the key of a folder, created on first use; of two servers that start together, the first creates it."""
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
