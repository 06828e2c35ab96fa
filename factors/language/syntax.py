"""Hold a formula as it was written, with places, before its names are looked up."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import ParseError

LONGEST = 2000
DEEPEST = 60


@dataclass(frozen=True, slots=True)
class Syntax:
    """One piece of a formula as it was written.

    `kind` is ``number``, ``name``, ``call`` or ``keyword``; `text` is the number, the name or the operator; `at` and
    `end` are the columns where it starts and ends; `infix` tells operators that were written with a symbol, `open_chain` sums and products that may take a
    further term.
    """

    kind: str
    text: str
    at: int
    end: int
    args: tuple[Syntax, ...] = ()
    infix: bool = False
    open_chain: bool = False


def read(text: str) -> Syntax:
    """Read a formula into its syntax tree; ParseError where its form is wrong."""
    from .reader import read_tree  # lark is slow to load, and needed by those who parse only

    if not text.strip():
        raise ParseError("the formula is empty", hint="Example: rank(ts_mean(returns, 20))")
    if len(text) > LONGEST:
        raise ParseError(f"the formula has {len(text)} characters; {LONGEST} are allowed", text=text, at=LONGEST)
    refuse_deep_brackets(text)
    return read_tree(text)


def refuse_deep_brackets(text: str) -> None:
    """Refuse brackets that are nested too deeply, before the parser follows them."""
    depth = 0
    for at, mark in enumerate(text):
        depth += (mark == "(") - (mark == ")")
        if depth > DEEPEST:
            raise too_deep(text, at)


def too_deep(text: str, at: int) -> ParseError:
    """Make the error of a formula that is nested too deeply."""
    return ParseError(f"the formula is nested more than {DEEPEST} levels deep", text=text, at=at)
