"""Read rewrite rules, one a line, which translate an operator of a dialect into our language and back.

``Mean(x, d) -> ts_mean(x, d, min_periods=1)`` is used both ways: to import, the left side is matched with the foreign
formula and the right side is written; to export, the right side is matched with our tree. ``>>`` only imports (a second
name of the same operator), ``<<`` only exports, and ``!!`` is followed by the reason of a refusal. The left side is
parsed by the dialect's own grammar, the right side by ours. Text after `` # `` at the end of a line is a note: users
see it whenever the rule is used. A line that begins with ``#`` is a comment; in the
source, a backslash joins a long line with the next. A rule without a note keeps the meaning,
and its output reads back to a formula of the same id.

Variables are one letter, with or without a digit; the letter determines what they match:

- x, y, z: any expression;
- c: a condition; any other expression is turned into one (see `Dialect.truth`);
- d: a literal number of days, at least 1, floored with a note where it has a fraction;
- b: the same, but 0 is allowed (for lags);
- e: the same as d, but even;
- n, m, q, k, a: any literal number;
- g: a grouping.

On the right side, numbers may be computed: ``ema(x, 8 * n, min_periods=1, span=n)``; to export, n is bound first and 8
* n is then compared, or solved for n if n occurs nowhere by itself. A left side such as ``adv{d}`` is a family of field
names, and ``TS_MEAN(x, d=5)`` has a default: the argument may be left out.

Import tries the rules in their order, export the most specific ones first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ..language.syntax import Syntax, read_syntax

ARROWS = ("->", ">>", "<<", "!!")
VARIABLE_PATTERN = re.compile(r"([xyzcdbenmqkag])[0-9]?")
FAMILY = re.compile(r"([A-Za-z_$]+)\{([dn])\}")
EXPRESSION_LETTERS, WINDOW_LETTERS, NUMBER_LETTERS = "xyzc", "dbe", "nmqka"

RULE_ARITHMETIC: dict[str, Callable[..., float]] = {
    "add": lambda *terms: sum(terms),
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "neg": lambda x: -x,
}


@dataclass(frozen=True, slots=True)
class RewriteRule:
    """One rewrite rule.

    Attributes
    ----------
    foreign, own : Syntax
        Both sides.
    note : str
        Shown to the user when the rule is used.
    imports, exports : bool
        The directions in which it is used.
    refusal : str
        The reason why the foreign side is refused; else empty.
    family : str
        For a family of field names, the text before the number; else empty.
    """

    foreign: Syntax
    own: Syntax
    note: str = ""
    imports: bool = True
    exports: bool = True
    refusal: str = ""
    family: str = ""

    @property
    def signature(self) -> str:
        """Return the foreign side of a call: ``Mean(x, d)``."""
        return f"{self.foreign.text}({', '.join(arg.text for arg in self.foreign.args)})"


def find_kind(word: str) -> str:
    """Return the letter of a variable, which is its kind; empty for any other word."""
    match = VARIABLE_PATTERN.fullmatch(word)
    return match[1] if match else ""


def read_rules(text: str, read_foreign: Callable[[str], Syntax]) -> Iterator[RewriteRule]:
    """Parse a table of rules; `read_foreign` parses the foreign side."""
    for line in text.splitlines():
        bare, _, note = line.partition(" # ")
        if not bare.strip() or bare.lstrip().startswith("#"):
            continue
        foreign_text, arrow, own_text = re.split(rf"\s({'|'.join(ARROWS)})\s", bare.strip())
        family = FAMILY.fullmatch(foreign_text)
        foreign = Syntax("name", family[2], 0, 0) if family else read_foreign(foreign_text)
        if arrow == "!!":
            yield RewriteRule(foreign, foreign, exports=False, refusal=own_text)
            continue
        rule = RewriteRule(
            foreign,
            read_syntax(own_text),
            note.strip(),
            arrow != "<<",
            arrow != ">>",
            family=family[1] if family else "",
        )
        yield from _expand_defaults(rule)


def _expand_defaults(rule: RewriteRule) -> Iterator[RewriteRule]:
    """Yield a rule with all its arguments, and, for import, without its last arguments that have a default."""
    optional = {arg.text: arg.args[0] for arg in rule.foreign.args if arg.kind == "keyword"}
    bare = [replace(arg, kind="name", args=()) if arg.text in optional else arg for arg in rule.foreign.args]
    yield replace(rule, foreign=replace(rule.foreign, args=tuple(bare)))
    for count in range(len(optional) if rule.imports else 0):
        left_out = dict(list(optional.items())[count:])
        fewer = tuple(arg for arg in bare if arg.text not in left_out)
        # A window is always written.
        exports = rule.exports and not any(find_kind(name) in WINDOW_LETTERS for name in left_out)
        own = _substitute(rule.own, left_out)
        yield replace(rule, foreign=replace(rule.foreign, args=fewer), own=own, exports=exports)


def _substitute(piece: Syntax, values: dict[str, Syntax]) -> Syntax:
    """Substitute values for variables."""
    if piece.kind == "name" and piece.text in values:
        return values[piece.text]
    return replace(piece, args=tuple(_substitute(arg, values) for arg in piece.args))


def is_computed(piece: Syntax) -> bool:
    """Return whether a piece of a rule is arithmetic on numbers only."""
    return piece.kind == "call" and piece.text in RULE_ARITHMETIC and piece.infix and all(map(_is_number, piece.args))


def _is_number(piece: Syntax) -> bool:
    if piece.kind == "name":
        return find_kind(piece.text) in (*WINDOW_LETTERS, *NUMBER_LETTERS)
    return piece.kind == "number" or is_computed(piece)


def compute_number(piece: Syntax, numbers: dict[str, float]) -> float:
    """Return the number of a piece from those of its variables; `KeyError` if one is unbound.

    Floating-point noise is rounded away, so that 3 * 0.1 is 0.3.
    """
    if piece.kind == "number":
        return float(piece.text)
    if piece.kind == "name":
        return numbers[piece.text]
    return round_noise(RULE_ARITHMETIC[piece.text](*(compute_number(arg, numbers) for arg in piece.args)))


def round_noise(value: float) -> float:
    """Round a number to 12 significant digits, which removes floating-point noise."""
    return float(f"{value:.12g}")


def find_variables(piece: Syntax) -> set[str]:
    """Return the variables of a piece of a rule."""
    own = {piece.text} if piece.kind == "name" and find_kind(piece.text) else set()
    return own.union(*map(find_variables, piece.args))
