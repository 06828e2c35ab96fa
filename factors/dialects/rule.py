"""Read rewrite rules, one a line, which say what an operator of a dialect is in our language.

``Mean(x, d) -> ts_mean(x, d, min_periods=1)`` is used both ways: to import, what is left of the arrow is found in the
foreign formula and the right side is written; to export, the right side is found in our tree. ``>>`` only imports (a
second name of the same thing), ``<<`` only exports. The left side is read by the dialect's own grammar, the right side
by ours. What follows `` # `` at the end of a line is a note: it is told whenever the rule is used. A line that begins with
``#`` is a comment.

Variables are one letter, with or without a digit, and the letter says what may stand there:

- x, y, z, c: any expression (c for conditions, to the reader);
- d: a literal number of days, at least 1, floored with a note where it has a fraction;
- b: the same, but 0 is allowed (for lags);
- n, m, q, k, a: any literal number;
- g: a grouping.

On the right side, numbers may be computed: ``ema(x, 8 * n, min_periods=1, span=n)``; to export, n is found first and
8 * n is then compared. A left side such as ``adv{d}`` is a family of field names.

Rules are tried in their order to import, and the most specific ones first to export.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..syntax import Syntax, read

ARROWS = ("->", ">>", "<<")
VARIABLE = re.compile(r"([xyzcdbnmqkag])[0-9]?")
FAMILY = re.compile(r"([A-Za-z_$]+)\{([dn])\}")
EXPRESSIONS, WINDOWS, NUMBERS = "xyzc", "db", "nmqka"

ARITHMETIC: dict[str, Callable[..., float]] = {
    "add": lambda *terms: sum(terms),
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "neg": lambda x: -x,
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rewrite rule.

    Attributes
    ----------
    foreign, own : Syntax
        Both sides.
    note : str
        What is told when it is used.
    imports, exports : bool
        Which ways it is used.
    family : str
        For a family of field names, what stands before the number, else empty.
    """

    foreign: Syntax
    own: Syntax
    note: str = ""
    imports: bool = True
    exports: bool = True
    family: str = ""

    @property
    def signature(self) -> str:
        """Return the foreign side of a call as it is written: ``Mean(x, d)``."""
        return f"{self.foreign.text}({', '.join(arg.text for arg in self.foreign.args)})"


def kind_of(word: str) -> str:
    """Return the letter of a variable, which is its kind, or an empty string for any other word."""
    found = VARIABLE.fullmatch(word)
    return found[1] if found else ""


def read_rules(text: str, read_foreign: Callable[[str], Syntax]) -> Iterator[Rule]:
    """Read a table of rules; the dialect's own reader is passed in."""
    for line in text.splitlines():
        bare, _, note = line.partition(" # ")
        if not bare.strip() or bare.lstrip().startswith("#"):
            continue
        left, arrow, right = re.split(rf"\s({'|'.join(ARROWS)})\s", bare.strip())
        family = FAMILY.fullmatch(left)
        foreign = Syntax("name", family[2], 0, 0) if family else read_foreign(left)
        yield Rule(foreign, read(right), note.strip(), arrow != "<<", arrow != ">>", family[1] if family else "")


def is_computed(piece: Syntax) -> bool:
    """Tell whether a piece of a rule is arithmetic on literal numbers alone."""
    return piece.kind == "call" and piece.text in ARITHMETIC and piece.infix and all(map(_is_number, piece.args))


def _is_number(piece: Syntax) -> bool:
    if piece.kind == "name":
        return kind_of(piece.text) in (*WINDOWS, *NUMBERS)
    return piece.kind == "number" or is_computed(piece)


def computed(piece: Syntax, numbers: dict[str, float]) -> float:
    """Return the number of a piece, given those of its variables; KeyError where one is not known.

    Floating-point noise is rounded away, so that 3 * 0.1 is 0.3.
    """
    if piece.kind == "number":
        return float(piece.text)
    if piece.kind == "name":
        return numbers[piece.text]
    return float(f"{ARITHMETIC[piece.text](*(computed(arg, numbers) for arg in piece.args)):.12g}")
