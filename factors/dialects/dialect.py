"""The description of another tool's language: its grammar, its operators in ours, and the spelling of its formulas.

Each dialect is a module of this folder with a `DIALECT`; `find_dialect` returns it by name.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import NamedTuple

from ..errors import ParseError, nearest_name
from ..language.syntax import Syntax

OWN_DIALECT = "alphaloom"
DIALECT_NAMES: tuple[str, ...] = ("alphaagent", "alphagen", OWN_DIALECT, "factorminer", "qlib", "worldquant")
"""The languages that formulas can be read from and written to."""
DIALECT_ALIASES = {
    "quantaalpha": "alphaagent",
    "alpha101": "worldquant",
    "alpha158": "qlib",
    "alphabench": "qlib",
    "alphaforge": "alphagen",
}
"""Other names of the dialects."""


class Symbol(NamedTuple):
    """The sign of an operator between or before its arguments, and how tightly it binds, loosest first."""

    text: str
    binding: int


(
    PREC_CHOICE,
    PREC_EITHER,
    PREC_BOTH,
    PREC_EQUALITY,
    PREC_COMPARISON,
    PREC_SUM,
    PREC_PRODUCT,
    PREC_SIGNED,
    PREC_POWER,
    PREC_ATOM,
) = range(10)

ARITHMETIC_SYMBOLS: Mapping[str, Symbol] = MappingProxyType(
    {
        "add": Symbol("+", PREC_SUM),
        "sub": Symbol("-", PREC_SUM),
        "mul": Symbol("*", PREC_PRODUCT),
        "div": Symbol("/", PREC_PRODUCT),
        "neg": Symbol("-", PREC_SIGNED),
    }
)
"""The signs of all dialects."""

COMPARISONS: Mapping[str, Symbol] = MappingProxyType(
    {
        name: Symbol(text, PREC_COMPARISON)
        for name, text in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items()
    }
)

C_LIKE: Mapping[str, Symbol] = MappingProxyType(
    {
        **ARITHMETIC_SYMBOLS,
        **COMPARISONS,
        "where": Symbol("?", PREC_CHOICE),
        "or": Symbol("||", PREC_EITHER),
        "and": Symbol("&&", PREC_BOTH),
    }
)
"""The signs of dialects with choices ``c ? x : y``, and with ``&&`` and ``||`` looser than comparisons."""


@dataclass(frozen=True)
class Dialect:
    """The language of another tool.

    Attributes
    ----------
    name : str
        Its name in calls and commands: ``worldquant``.
    title : str
        Its usual name.
    grammar : str
        The file of its surface grammar, beside this one; it extends ``grammar.lark``.
    rules : str
        One rewrite rule a line (see `rule`).
    symbols : mapping of str to Symbol
        Our operators that it writes with a sign of the same meaning.
    sign : str
        Prefix of field names.
    sign_optional : bool
        Whether the prefix may be left out.
    fields : mapping of str to str
        Fields with another name: its name, without `sign`, to ours.
    any_case : bool
        Whether names are case-insensitive.
    group_sign : str
        Prefix of groupings.
    stand_ins : mapping of str to str
        Groupings that a panel often lacks, to the coarser ones that replace them, with a note.
    truth : str
        The condition, in our language, under which a number x counts as true.
    refused : mapping of str to str
        Its operators that have no equivalent, with the reason.
    example : str
        A formula of the dialect.
    """

    name: str
    title: str
    grammar: str
    rules: str
    symbols: Mapping[str, Symbol]
    sign: str = ""
    sign_optional: bool = False
    fields: Mapping[str, str] = field(default_factory=dict)
    any_case: bool = False
    group_sign: str = ""
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    truth: str = "x != 0"
    refused: Mapping[str, str] = field(default_factory=dict)
    example: str = ""

    def fold_case(self, word: str) -> str:
        """Return the key under which a word is looked up."""
        return word.lower() if self.any_case else word

    def write_field(self, name: str) -> str:
        """Return our field as the dialect writes it."""
        foreign = {own: theirs for theirs, own in reversed(list(self.fields.items()))}
        return self.sign + foreign.get(name, name)

    def refuse(self, message: str, text: str, at: int = 0, hint: str = "") -> ParseError:
        """Return the error for a formula that cannot be translated."""
        return ParseError(message, at=at, text=text, stage="dialect", hint=hint)


@functools.cache
def find_dialect(name: str) -> Dialect:
    """Return a foreign dialect.

    Raises
    ------
    ParseError
        If there is no dialect of that name.
    """
    name = DIALECT_ALIASES.get(name.lower(), name.lower())
    if name not in DIALECT_NAMES or name == OWN_DIALECT:
        guess = nearest_name(name, DIALECT_NAMES)
        meant = f"Did you mean {guess}? " if guess else ""
        raise ParseError(
            f"unknown dialect '{name}'", stage="dialect", hint=f"{meant}Dialects: {', '.join(DIALECT_NAMES)}."
        )
    dialect: Dialect = import_module(f".{name}", __package__).DIALECT
    return dialect


def spell_formula(piece: Syntax, dialect: Dialect) -> str:
    """Return the text of a piece of syntax in a dialect."""
    return _spell_with_binding(piece, dialect)[0]


def _spell_with_binding(piece: Syntax, dialect: Dialect) -> tuple[str, int]:
    """Return the text and how tightly it binds."""
    if piece.kind != "call":
        return piece.text, PREC_SIGNED if piece.text.startswith("-") else PREC_ATOM
    if not piece.infix:
        return f"{piece.text}({', '.join(spell_formula(arg, dialect) for arg in piece.args)})", PREC_ATOM
    symbol = dialect.symbols[piece.text]
    if piece.text == "where":
        parts = [_parenthesise_looser(arg, dialect, PREC_CHOICE + 1) for arg in piece.args[:2]]
        return f"{parts[0]} ? {parts[1]} : {_parenthesise_looser(piece.args[2], dialect, PREC_CHOICE)}", PREC_CHOICE
    if len(piece.args) == 1:
        return f"{symbol.text}{_parenthesise_looser(piece.args[0], dialect, symbol.binding)}", symbol.binding
    return _spell_chain(piece, symbol, dialect), symbol.binding


def _parenthesise_looser(piece: Syntax, dialect: Dialect, binding: int) -> str:
    """Return the text of an argument, in parentheses where it binds less tightly than `binding`."""
    text, own = _spell_with_binding(piece, dialect)
    return text if own >= binding else f"({text})"


def _spell_chain(piece: Syntax, symbol: Symbol, dialect: Dialect) -> str:
    """Join the arguments by a sign; a negative term of a sum is subtracted."""
    first, *rest = piece.args
    loose = symbol.binding + (1 if symbol.binding == PREC_COMPARISON or piece.text == "power" else 0)
    text = _parenthesise_looser(first, dialect, loose)
    for arg in rest:
        positive = _strip_minus(arg) if symbol.binding == PREC_SUM and piece.text == "add" else None
        sign, term = (symbol.text, arg) if positive is None else ("-", positive)
        text += f" {sign} {_parenthesise_looser(term, dialect, symbol.binding + (piece.text != 'power'))}"
    return text


def _strip_minus(piece: Syntax) -> Syntax | None:
    """Return a term without its leading minus, or None where it has none."""
    if piece.kind == "call" and piece.infix and piece.text == "neg":
        return piece.args[0]
    if piece.kind == "number" and piece.text.startswith("-"):
        return Syntax("number", piece.text[1:], piece.at, piece.end)
    return None
