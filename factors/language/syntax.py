"""The syntax tree of a formula, with columns, before its names are resolved."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import ParseError

MAX_FORMULA_CHARS = 2000
MAX_FORMULA_DEPTH = 60


@dataclass(frozen=True, slots=True)
class Syntax:
    """One piece of a formula, as written.

    Attributes
    ----------
    kind : str
        ``number``, ``name``, ``call`` or ``keyword``.
    text : str
        The number, the name or the operator.
    at, end : int
        The columns where it starts and ends.
    args : tuple of Syntax
        The arguments of a call, or the value of a keyword.
    infix : bool
        Whether the operator is written with a symbol.
    open_chain : bool
        Whether a sum or product may take a further term.
    """

    kind: str
    text: str
    at: int
    end: int
    args: tuple[Syntax, ...] = ()
    infix: bool = False
    open_chain: bool = False


def read_syntax(text: str) -> Syntax:
    """Parse a formula into its syntax tree; `ParseError` if its form is wrong."""
    from .reader import read_tree  # lark is slow to load, and only parsing needs it

    if not text.strip():
        raise ParseError("the formula is empty", hint="Example: rank(ts_mean(returns, 20))")
    if len(text) > MAX_FORMULA_CHARS:
        raise ParseError(
            f"the formula has {len(text)} characters; {MAX_FORMULA_CHARS} are allowed", text=text, at=MAX_FORMULA_CHARS
        )
    refuse_deep_brackets(text)
    return read_tree(text)


def refuse_deep_brackets(text: str) -> None:
    """Refuse brackets that are nested too deeply, before the parser recurses into them."""
    depth = 0
    for at, mark in enumerate(text):
        depth += (mark == "(") - (mark == ")")
        if depth > MAX_FORMULA_DEPTH:
            raise build_depth_error(text, at)


def build_depth_error(text: str, at: int) -> ParseError:
    """Return the error for a formula that is nested too deeply."""
    return ParseError(f"the formula is nested more than {MAX_FORMULA_DEPTH} levels deep", text=text, at=at)
