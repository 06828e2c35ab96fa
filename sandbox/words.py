"""Words from behind a wall: how long they and the code may be, and what is left of them."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["CODE_BYTES", "TEXT_BYTES", "clean"]

CODE_BYTES, TEXT_BYTES = 256 * 1024, 2048
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters without ink; words can be hidden in them, as in marks (variation selectors)."""
_PATH = re.compile(r"(?<![\w)\]])(?:/[\w.+@~-]+){2,}/?|[A-Za-z]:\\[\w.\\ -]+")


def clean(raw: bytes) -> str:
    """Return text that is safe to print: one line, no control or invisible characters, no paths, cut."""
    text = raw.partition(b"\0")[0].decode("utf-8", "replace")
    plain = "".join(" " if unicodedata.category(c)[0] in "CMZ" or c in _BLANK else c for c in text)
    return _PATH.sub("<path>", " ".join(plain.split()))[:TEXT_BYTES]
