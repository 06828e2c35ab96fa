"""The text of the code as bytes that mean the same here and to the interpreter in the jail."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable

from ..errors import Refused

CODE_BYTES, TEXT_BYTES = 256 * 1024, 2048
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Blank letters; words can be hidden in them, as in variation selectors."""
_PATH_PARTS = r"(?:/[\w.+@~-]+)"
_OWN_FOLDERS = (
    sys.prefix,
    sys.base_prefix,
    *sys.path,
)  # not __file__, which is not defined for code that is sent to another interpreter


def encode_code(code: object) -> bytes:
    """Return code as UTF-8, byte for byte; a replaced character would run other code than was checked.

    Raises
    ------
    Refused
        It is no text, too long, or has a NUL or half of a surrogate pair, which Python source cannot have.
    """
    if not isinstance(code, str):
        raise Refused(
            "the code is not text",
            field="code",
            got=type(code).__name__,
            allowed="str",
            hint="Give the source: def factor(panel): ...",
        )
    if "\0" in code:
        raise _refuse_character("a NUL", code, code.index("\0"))
    try:
        raw = code.encode()
    except UnicodeEncodeError as error:
        raise _refuse_character("half of a surrogate pair", code, error.start) from None
    if len(raw) > CODE_BYTES:
        raise Refused("the code is too long", field="code", got=f"{len(raw)} bytes", allowed=f"{CODE_BYTES} bytes")
    return raw


def _refuse_character(what: str, code: str, place: int) -> Refused:
    line, column = code.count("\n", 0, place) + 1, place - (code.rfind("\n", 0, place) + 1) + 1
    return Refused(
        f"line {line}, column {column}: {what} cannot stand in Python source",
        field="code",
        got=ascii(code[place]),
        allowed="text that can be written as UTF-8, without NUL",
        hint="Write it as an escape in a string.",
    )


def build_path_pattern(own: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern of a path in a line: below one of the `own` folders, whose names may be unusual, or any."""
    unusual = {" ".join(each.split()) for each in own if not re.fullmatch(f"{_PATH_PARTS}*/?", each)}
    ours = "".join(f"{re.escape(each)}{_PATH_PARTS}*/?|" for each in sorted(unusual, key=len, reverse=True))
    return re.compile(rf"{ours}(?<![\w)\]]){_PATH_PARTS}{{2,}}/?|[A-Za-z]:\\[\w.\\ -]+")


_PATH_PATTERN = build_path_pattern(_OWN_FOLDERS)
_ADDRESS_PATTERN = re.compile(r"\bat 0x[0-9A-Fa-f]+")
"""Where an object lies in memory, as its repr says: another address on each call."""


def clean(raw: bytes) -> str:
    """Return text that is safe to print and the same on each call.

    One line, no control or invisible characters, no paths, no addresses of objects, limited length.
    """
    text = raw.partition(b"\0")[0].decode("utf-8", "replace")
    plain = "".join(" " if unicodedata.category(c)[0] in "CMZ" or c in _BLANK else c for c in text)
    line = _ADDRESS_PATTERN.sub("at <address>", " ".join(plain.split()))
    return _PATH_PATTERN.sub("<path>", line)[:TEXT_BYTES]
