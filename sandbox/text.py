"""The text of the code, as bytes that mean the same to whoever reads it here and to the interpreter in the jail."""

from __future__ import annotations

from .errors import Refused
from .jail.words import CODE_BYTES

__all__ = ["encode_code"]


def encode_code(code: object) -> bytes:
    """Return code as UTF-8; nothing in it is replaced, or other code would run than was read.

    Raises
    ------
    Refused
        It is no text, too long, or holds what Python source cannot: a NUL, or half of a surrogate pair.
    """
    if not isinstance(code, str):
        raise Refused("the code is not text", field="code", got=type(code).__name__, allowed="str",
                      hint="Give the source: def factor(panel): ...")  # fmt: skip
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
        f"line {line}, column {column}: {what} cannot stand in Python source", field="code", got=ascii(code[place]),
        allowed="text that can be written as UTF-8, without NUL", hint="Write it as an escape in a string.",
    )  # fmt: skip
