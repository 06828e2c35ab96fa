"""How a line of the record is written, so that no byte of it can change unseen.

A line is a JSON object whose last member is the SHA-256 of all bytes before it (with the closing brace), and one of whose
first is the hash of the line before. What is hashed are the bytes, not their meaning: another spelling is a change.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

KIND_BEGUN, KIND_CALL, KIND_ENDED = "begun", "call", "ended"
"""The first line of a segment, one for each call, and the last line of a segment that was closed."""

_TAIL_PATTERN = re.compile(rb',"hash":"([0-9a-f]{64})"\}')
_TAIL_BYTES = len(',"hash":""}') + 64


@dataclass(frozen=True, slots=True)
class ChainLink:
    """Where a chain stands: the number and the hash of its last line."""

    sequence: int
    hash: str


@dataclass(frozen=True, slots=True)
class ChainedLine:
    """A line that holds what was written: its bytes hash to what it says."""

    kind: str
    previous: str
    link: ChainLink
    record: dict[str, Any]


def written(kind: str, link: ChainLink, time: str, members: str) -> tuple[bytes, ChainLink]:
    """Return the line after a link, newline included, and the link that it makes; `members` are JSON without braces."""
    sequence = link.sequence + 1
    text = f'{{"kind":"{kind}","sequence":{sequence},"time":"{time}","previous":"{link.hash}",{members}'
    body = text.encode("utf-8", "backslashreplace")  # half a surrogate pair becomes its JSON escape
    own = hashlib.sha256(body + b"}").hexdigest()
    return b'%b,"hash":"%b"}\n' % (body, own.encode()), ChainLink(sequence, own)


def read_line(raw: bytes) -> ChainedLine | None:
    """Return what a line says, newline left out; None if a byte of it is not as it was written."""
    tail = _TAIL_PATTERN.fullmatch(raw[-_TAIL_BYTES:])
    if tail is None or hashlib.sha256(raw[:-_TAIL_BYTES] + b"}").hexdigest().encode() != tail[1]:
        return None
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    kind, sequence, previous = record.get("kind"), record.get("sequence"), record.get("previous")
    if kind not in (KIND_BEGUN, KIND_CALL, KIND_ENDED) or type(sequence) is not int or not isinstance(previous, str):
        return None
    return ChainedLine(kind, previous, ChainLink(sequence, tail[1].decode()), record)
