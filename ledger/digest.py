"""Canonical JSON and SHA-256 digests: equal values have equal digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

JSON: TypeAlias = Mapping[str, "JSON"] | Sequence["JSON"] | str | int | float | bool | None

SCALARS = frozenset({str, int, float, bool, type(None)})
"""Types that hold nothing: most cells of a large record, where a call for each would take most of the time."""


def canonical_json(value: JSON) -> str:
    """Return the canonical JSON of a value, the only spelling that is hashed and compared.

    Keys are sorted, there is no white space, text is not escaped to ASCII, and floats are written as `repr` does.

    Raises
    ------
    ValueError
        If a number is NaN or infinite: neither is JSON, and neither equals itself in a record.
    TypeError
        If a key is not text (1 and "1" would collide), or a value is no JSON.
    """
    check_keys(value)
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_to_builtin
    )


def list_texts(value: JSON) -> Iterator[str]:
    """Yield every text of a JSON value, and no key."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from list_texts(part)
    elif isinstance(value, Sequence):
        for part in value:
            yield from list_texts(part)


def compute_digest(value: bytes | JSON) -> str:
    """Return the SHA-256, in hex, of bytes, of a text's UTF-8, or of the canonical JSON of anything else."""
    if isinstance(value, bytes):
        body = value
    elif isinstance(value, str):
        body = value.encode()
    else:
        body = canonical_json(value).encode()
    return hashlib.sha256(body).hexdigest()


def check_keys(value: JSON) -> None:
    """Refuse a mapping with a key that is not text; `json` would quietly turn it into one."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"a key of a record must be text, got {key!r}")
            if type(item) not in SCALARS:
                check_keys(item)
    elif isinstance(value, list | tuple):
        for item in value:
            if type(item) not in SCALARS:
                check_keys(item)


def _to_builtin(value: object) -> object:
    """Turn a read-only mapping or sequence into the dict or list that `json` knows."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return list(value)
    raise TypeError(f"{type(value).__name__} is no JSON: {value!r}")
