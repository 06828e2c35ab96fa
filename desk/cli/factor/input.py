"""Collect formulas that a person wrote: as arguments, or in a file with one a line."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..code import read_formula_source
from ..errors import NoFormula

__all__ = ["WrittenFormula", "collect_formulas"]

NAMED_LINE = re.compile(r"\s*(\w[\w.#-]*)\s*(?::|=(?!=))\s*(?=\S)")
"""``alpha1: formula`` or ``alpha1 = formula``; ``close == open`` has no name."""
NUMBERED_LINE = re.compile(r"\s*([0-9]+)[.)]?\s+(?=[A-Za-z_($])")
"""``12 formula`` or ``12. formula``, where every line begins so; ``2 close`` alone is a mistake."""
COMMENT = re.compile(r"(?:^|\s)#.*")


@dataclass(frozen=True)
class WrittenFormula:
    """One formula and where it stands.

    Attributes
    ----------
    text : str
        The formula.
    name : str
        What its author calls it; empty where it has no name.
    file : str
        The file that it is from; empty for an argument.
    line : int
        The line of the file, or which argument it is, from 1.
    offset : int
        Columns of the line before it.
    """

    text: str
    name: str = ""
    file: str = ""
    line: int = 1
    offset: int = 0

    def place(self, at: int | None = None) -> str:
        """Return the place of the formula, or of a column of it, as editors read it: ``file:line:column``."""
        start = f"{self.file}:{self.line}" if self.file else f"formula {self.line}"
        if at is None:
            return start
        return f"{start}:{self.offset + at + 1}" if self.file else f"{start}, column {at + 1}"


def collect_formulas(texts: Sequence[str], file: str | None) -> list[WrittenFormula]:
    """Return the formulas of the command line, then those of a file; ``-`` is standard input.

    Raises
    ------
    NoFormula
        Where there are none, or the file is not text.
    OSError
        Where the file cannot be read.
    """
    found = [WrittenFormula(read_formula_source(text), line=number) for number, text in enumerate(texts, start=1)]
    if file is not None:
        found += _lines(_content(file), "stdin" if file == "-" else file)
    if not found:
        missing = f"there is no formula in {file}" if file else "no formula was given"
        hint = "Write one formula a line." if file else "Put it in quotes, or name a file: --file FILE"
        raise NoFormula(missing, field="--file" if file else "EXPR", hint=hint)
    return found


def _content(file: str) -> str:
    from ....ledger.files import read_given

    raw = sys.stdin.buffer.read() if file == "-" else read_given(Path(file))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        message = f"{file} is not text in UTF-8: line {line} has other bytes"
        raise NoFormula(message, field="--file", got=file, hint="Save it as UTF-8.") from None


def _lines(content: str, file: str) -> Iterator[WrittenFormula]:
    lines = {number: COMMENT.sub("", line).rstrip() for number, line in enumerate(content.split("\n"), start=1)}
    kept = {number: text for number, text in lines.items() if text.strip()}
    names = NUMBERED_LINE if len(kept) > 1 and all(map(NUMBERED_LINE.match, kept.values())) else NAMED_LINE
    for number, text in kept.items():
        named = names.match(text)
        offset = named.end() if named else len(text) - len(text.lstrip())
        yield WrittenFormula(text[offset:], named[1] if named else "", file, number, offset)
