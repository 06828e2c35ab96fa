"""Strict encoding and decoding of FIX: what `decode` accepts, `encode` writes back as the same bytes.

A message is refused as garbled where its frame is wrong: BeginString, BodyLength and MsgType are not its first three
fields, a number has leading zeros, BodyLength does not lead to the trailer, or CheckSum is not the sum of the bytes.
Within an intact frame the content is checked: tags, formats, order of header, body and trailer, required fields,
lengths of data fields, repeating groups, and no tag twice outside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from .dictionary import (
    DATA_LENGTHS,
    DATA_TAGS,
    FORMAT_OF,
    FRAME_TAGS,
    GROUPS,
    HEADER_TAGS,
    INVALID_TAG,
    NO_VALUE,
    REPEATED,
    REQUIRED,
    REQUIRED_IN_HEADER,
    REQUIRED_MISSING,
    TRAILER_TAGS,
    WRONG_FORMAT,
    WRONG_GROUP_COUNT,
    WRONG_GROUP_ORDER,
    WRONG_ORDER,
)
from .errors import GarbledMessage, InvalidMessage
from .message import FixMessage

SOH: Final = b"\x01"
HEAD: Final = re.compile(rb"8=(FIXT?\.[0-9]\.[0-9])\x019=([1-9][0-9]{0,5})\x01")
START: Final = b"8=FIX"
KIND: Final = re.compile(rb"35=([0-9A-Za-z]{1,3})\x01")
TRAILER_BYTES: Final = 7
LONGEST_HEAD: Final = 64
PIECE_BYTES: Final = 4096
"""Bytes that a reader takes at once: each frame that leaves them copies what is behind it."""
LONGEST_BODY: Final = 65_536
"""Bytes; a BodyLength above it is garbled, so that a wrong one cannot make a reader wait for ever."""
TAG: Final = re.compile(r"[1-9][0-9]{0,8}")

STAGES: Final = {**dict.fromkeys(HEADER_TAGS, 0), **dict.fromkeys(TRAILER_TAGS, 2)}
"""Place of a tag: 0 in the header, 2 in the trailer; all others are in the body between."""
DATA_LENGTH_TAGS: Final = DATA_TAGS | DATA_LENGTHS.keys()


def compute_checksum(data: bytes | memoryview) -> int:
    """Return the sum of all bytes modulo 256, as CheckSum counts them."""
    return sum(data) % 256


def encode(message: FixMessage) -> bytes:
    """Return a message as bytes, with BodyLength and CheckSum.

    Raises
    ------
    InvalidMessage
        It is not one that `decode` would accept.
    """
    parts = [f"35={message.kind}\x01", *[f"{tag}={value}\x01" for tag, value in message.fields]]
    body = "".join(parts).encode("latin-1")
    if KIND.match(body) is None or len(body) > LONGEST_BODY:
        raise InvalidMessage("The message has no kind, or is too long.", INVALID_TAG, 35)
    head = f"8={message.begin}\x019={len(body)}\x01".encode("latin-1")
    if HEAD.fullmatch(head) is None:
        raise InvalidMessage(f"{message.begin!r} is no BeginString.", INVALID_TAG, 8)
    extra = body.count(SOH) != len(parts)
    if extra and any("\x01" in value for tag, value in message.fields if tag not in DATA_TAGS):
        raise InvalidMessage("A value holds the separator.", WRONG_FORMAT)
    check_fields(message.kind, message.fields)
    return b"%s%s10=%03d\x01" % (head, body, compute_checksum(head + body))


def decode(data: bytes) -> FixMessage:
    """Return the message of exactly these bytes.

    Raises
    ------
    GarbledMessage
        The frame is not intact: the bytes are no message.
    InvalidMessage
        The frame is intact and the content is not; it has the kind and the number, as far as they can be read.
    """
    begin, start, end = check_frame(data)
    kind = KIND.match(data, start)
    if kind is None:
        raise GarbledMessage("MsgType is not the third field.")
    name = kind[1].decode()
    fields: list[tuple[int, str]] = []
    try:
        _split_fields(data, kind.end(), end, fields)
        check_fields(name, fields)
    except InvalidMessage as error:
        error.kind = name
        found = re.search(rb"\x0134=([1-9][0-9]{0,14})\x01", data[start:end])
        error.seq = int(found[1]) if found else None
        raise
    return FixMessage(begin, name, tuple(fields))


def check_frame(data: bytes) -> tuple[str, int, int]:
    """Return BeginString and the range of the body of a frame.

    Raises
    ------
    GarbledMessage
        BeginString, BodyLength or CheckSum is wrong.
    """
    head = HEAD.match(data)
    if head is None:
        raise GarbledMessage("BeginString and BodyLength are not the first two fields.")
    end = head.end() + int(head[2])
    if len(data) != end + TRAILER_BYTES or data[end - 1 : end] != SOH:
        raise GarbledMessage("BodyLength does not lead to the trailer.")
    if data[end:] != b"10=%03d\x01" % compute_checksum(memoryview(data)[:end]):
        raise GarbledMessage("CheckSum is not the sum of the bytes.")
    return head[1].decode(), head.end(), end


def _split_fields(data: bytes, place: int, end: int, fields: list[tuple[int, str]]) -> None:
    """Add tag and value of the fields of a body to a list."""
    for text in data[place : end - 1].decode("latin-1").split("\x01") if place < end else ():
        name, equals, value = text.partition("=")
        tag = _read_tag(name) if equals else 0
        if tag in DATA_TAGS:  # it may hold the separator
            fields.clear()
            fields.extend(_walk_fields(data, place, end))
            return
        if not tag:
            raise InvalidMessage("A tag is no number.", INVALID_TAG)
        fields.append((tag, value))


@lru_cache(maxsize=4096)
def _read_tag(text: str) -> int:
    """Return a tag; 0 where the text is none."""
    return int(text) if TAG.fullmatch(text) else 0


def _walk_fields(data: bytes, place: int, end: int) -> Iterator[tuple[int, str]]:
    """Yield tag and value of the fields of a body with data fields."""
    before, value = 0, ""
    while place < end:
        equals = data.find(b"=", place, end)
        tag = _read_tag(data[place:equals].decode("latin-1")) if equals >= 0 else 0
        if not tag:
            raise InvalidMessage("A tag is no number.", INVALID_TAG)
        if tag in DATA_TAGS and DATA_LENGTHS.get(before) == tag:
            stop = equals + 1 + (int(value) if value.isascii() and value.isdigit() else 0)
            if stop >= end or data[stop : stop + 1] != SOH:
                raise InvalidMessage("A data field is not as long as its length says.", WRONG_FORMAT, tag)
        else:
            stop = data.index(SOH, equals, end)
        before, value = tag, data[equals + 1 : stop].decode("latin-1")
        yield tag, value
        place = stop + 1


def check_fields(kind: str, fields: Sequence[tuple[int, str]]) -> None:
    """Check the content of a message.

    Raises
    ------
    InvalidMessage
        A tag, a value, the order, a group or a required field is wrong.
    """
    tags = [tag for tag, _ in fields]
    _check_values(fields)
    _check_order(tags)
    if not DATA_LENGTH_TAGS.isdisjoint(tags):
        _check_data(fields)
    alone = tags if GROUPS.keys().isdisjoint(tags) else _take_groups(fields)
    there = set(alone)
    if len(alone) != len(there):
        twice = next(tag for place, tag in enumerate(alone) if tag in alone[:place])
        raise InvalidMessage("A tag appears twice outside a group.", REPEATED, twice)
    for tag in (*REQUIRED_IN_HEADER, *REQUIRED.get(kind, ())):
        if tag not in there:
            raise InvalidMessage("A required field is missing.", REQUIRED_MISSING, tag)


def _check_values(fields: Sequence[tuple[int, str]]) -> None:
    for tag, value in fields:
        if tag in FRAME_TAGS or not 0 < tag < 10**9:
            raise InvalidMessage("A tag of the frame is out of its place.", INVALID_TAG, tag)
        if not value and tag not in DATA_TAGS:
            raise InvalidMessage("A field has no value.", NO_VALUE, tag)
        form = FORMAT_OF.get(tag)
        if form is not None and form[0].fullmatch(value) is None:
            raise InvalidMessage(f"The value is not {form[1]}.", WRONG_FORMAT, tag)


def _check_order(tags: Sequence[int]) -> None:
    """Check that the header comes first and the trailer last."""
    stage = 0
    for tag in tags:
        own = STAGES.get(tag, 1)
        if own < stage:
            raise InvalidMessage("A field of the header or the body is out of its place.", WRONG_ORDER, tag)
        stage = own


def _check_data(fields: Sequence[tuple[int, str]]) -> None:
    """Check that each data field follows its length and has it."""
    before, length = 0, ""
    for tag, value in fields:
        if tag in DATA_TAGS or before in DATA_LENGTHS:
            if DATA_LENGTHS.get(before) != tag:
                raise InvalidMessage("A data field does not follow its length.", WRONG_ORDER, tag)
            if length != str(len(value)):
                raise InvalidMessage("A data field is not as long as its length says.", WRONG_FORMAT, tag)
        before, length = tag, value
    if before in DATA_LENGTHS:
        raise InvalidMessage("A length has no data field behind it.", REQUIRED_MISSING, DATA_LENGTHS[before])


def _take_groups(fields: Sequence[tuple[int, str]]) -> list[int]:
    """Return the tags outside repeating groups, after checking the groups."""
    alone: list[int] = []
    place = 0
    while place < len(fields):
        tag = fields[place][0]
        alone.append(tag)
        place = _check_group(fields, place) if tag in GROUPS else place + 1
    return alone


def _check_group(fields: Sequence[tuple[int, str]], place: int) -> int:
    """Check the group that the field at `place` counts, and return the place behind it."""
    counter, text = fields[place]
    first, members = GROUPS[counter]
    entries, seen, place = 0, set[int](), place + 1
    while place < len(fields) and (tag := fields[place][0]) in members:
        if tag == first:
            entries, seen = entries + 1, set()
        if tag in seen or not entries:
            raise InvalidMessage("An entry of a group has a tag twice, or begins wrongly.", WRONG_GROUP_ORDER, tag)
        seen.add(tag)
        place = _check_group(fields, place) if tag in GROUPS else place + 1
    if text != str(entries) or not entries:
        raise InvalidMessage("A group has another number of entries.", WRONG_GROUP_COUNT, counter)
    return place


class FrameReader:
    """Cuts a stream of bytes into frames whose BodyLength and CheckSum are right; what lies between is skipped.

    `garbled` counts the stretches that were skipped.
    """

    def __init__(self) -> None:
        self.garbled = 0
        self._rest = b""
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that are whole now, the oldest first."""
        frames = []
        for place in range(0, len(data), PIECE_BYTES):
            self._rest += data[place : place + PIECE_BYTES]
            while (frame := self._next()) is not None:
                if frame:
                    frames.append(frame)
        return frames

    def _next(self) -> bytes | None:
        """Return the next frame; nothing after a skipped stretch; None where more bytes are needed."""
        data = self._rest
        if not data:
            return None
        if not START.startswith(data[: len(START)]):
            return self._skip(data)
        head = HEAD.match(data)
        if head is None:
            whole = len(data) >= LONGEST_HEAD or data.count(SOH) >= 2
            return self._skip(data) if whole else None
        end = head.end() + int(head[2]) + TRAILER_BYTES
        if int(head[2]) > LONGEST_BODY:
            return self._skip(data)
        if len(data) < end:
            return None
        try:
            check_frame(data[:end])
        except GarbledMessage:
            return self._skip(data)
        self._rest, self._skipping = data[end:], False
        return data[:end]

    def _skip(self, data: bytes) -> bytes:
        """Drop bytes up to what may be the next beginning; a stretch counts once."""
        if not self._skipping:
            self.garbled += 1
        self._skipping = True
        start = data.find(START, 1)
        if start < 0:
            kept = next((size for size in range(len(START) - 1, 0, -1) if data.endswith(START[:size])), 0)
            start = max(len(data) - kept, 1)
        self._rest = data[start:]
        return b""
