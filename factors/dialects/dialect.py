"""Describe the language of another tool: its grammar, its words, and how they map to ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from ..errors import ParseError


class Symbol(NamedTuple):
    """How an operator is written between or before its arguments, and how tightly it binds, loosest first."""

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
"""The signs that all dialects share."""

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
"""The signs of dialects that write choices as ``c ? x : y``, and whose ``&&`` and ``||`` bind looser than comparisons."""


@dataclass(frozen=True)
class Dialect:
    """The language of another tool.

    Attributes
    ----------
    name : str
        How it is asked for: ``worldquant``.
    title : str
        What people call it.
    grammar : str
        The file of its surface grammar, beside this one; it extends ``grammar.lark``.
    rules : str
        One rewrite rule a line (see `rule`).
    symbols : mapping of str to Symbol
        Our operators that it writes with a sign, where it means the same by it.
    sign : str
        What stands before the name of a field.
    sign_optional : bool
        True where it may be left out.
    fields : mapping of str to str
        Fields that it calls by another name: its name to ours, its own without `sign`.
    any_case : bool
        True where capital letters make no difference.
    group_sign : str
        What stands before the name of a grouping.
    stand_ins : mapping of str to str
        Groupings that a panel often lacks, and which coarser one stands in, with a note.
    truth : str
        In our language, when a number x counts as true.
    refused : mapping of str to str
        Its operators that cannot be kept, and why.
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

    def folded(self, word: str) -> str:
        """Return a word as it is looked up."""
        return word.lower() if self.any_case else word

    def field_written(self, name: str) -> str:
        """Return our field as the dialect writes it."""
        foreign = {own: theirs for theirs, own in reversed(list(self.fields.items()))}
        return self.sign + foreign.get(name, name)

    def refuse(self, message: str, text: str, at: int = 0, hint: str = "") -> ParseError:
        """Make the error of something that cannot be carried over."""
        return ParseError(message, at=at, text=text, stage="dialect", hint=hint)
