"""Words from behind a wall: how long they and the code may be, and what is left of them."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable

__all__ = ["CODE_BYTES", "TEXT_BYTES", "clean", "path_pattern"]

CODE_BYTES, TEXT_BYTES = 256 * 1024, 2048
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters without ink; words can be hidden in them, as in marks (variation selectors)."""
_PATH_PARTS = r"(?:/[\w.+@~-]+)"
_OWN_FOLDERS = (
    sys.prefix,
    sys.base_prefix,
    *sys.path,
)  # not __file__, which code has not that is handed to another interpreter


def path_pattern(own: Iterable[str]) -> re.Pattern[str]:
    """Return what finds a path in a line: below one of our own folders, whose names may be unusual, or any other."""
    unusual = {" ".join(each.split()) for each in own if not re.fullmatch(f"{_PATH_PARTS}*/?", each)}
    ours = "".join(f"{re.escape(each)}{_PATH_PARTS}*/?|" for each in sorted(unusual, key=len, reverse=True))
    return re.compile(rf"{ours}(?<![\w)\]]){_PATH_PARTS}{{2,}}/?|[A-Za-z]:\\[\w.\\ -]+")


_PATH_PATTERN = path_pattern(_OWN_FOLDERS)


def clean(raw: bytes) -> str:
    """Return text that is safe to print: one line, no control or invisible characters, no paths, cut."""
    text = raw.partition(b"\0")[0].decode("utf-8", "replace")
    plain = "".join(" " if unicodedata.category(c)[0] in "CMZ" or c in _BLANK else c for c in text)
    return _PATH_PATTERN.sub("<path>", " ".join(plain.split()))[:TEXT_BYTES]
