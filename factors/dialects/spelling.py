"""Spell foreign syntax as text, with as few parentheses as it needs."""

from __future__ import annotations

from ..language.syntax import Syntax
from .dialect import ATOM, CHOICE, COMPARISON, SIGNED, SUM, Dialect, Symbol

CHAINED = ("add", "and", "or", "mul")


def spelled(piece: Syntax, dialect: Dialect) -> str:
    """Return the text of a piece."""
    return _spelled(piece, dialect)[0]


def _spelled(piece: Syntax, dialect: Dialect) -> tuple[str, int]:
    """Return the text and how tightly it binds."""
    if piece.kind != "call":
        return piece.text, SIGNED if piece.text.startswith("-") else ATOM
    if not piece.infix:
        return f"{piece.text}({', '.join(spelled(arg, dialect) for arg in piece.args)})", ATOM
    symbol = dialect.symbols[piece.text]
    if piece.text == "where":
        parts = [_inside(arg, dialect, CHOICE + 1) for arg in piece.args[:2]]
        return f"{parts[0]} ? {parts[1]} : {_inside(piece.args[2], dialect, CHOICE)}", CHOICE
    if len(piece.args) == 1:
        return f"{symbol.text}{_inside(piece.args[0], dialect, symbol.binding)}", symbol.binding
    return _joined(piece, symbol, dialect), symbol.binding


def _inside(piece: Syntax, dialect: Dialect, binding: int) -> str:
    """Return the text of an argument, in parentheses where it binds less tightly than asked."""
    text, own = _spelled(piece, dialect)
    return text if own >= binding else f"({text})"


def _joined(piece: Syntax, symbol: Symbol, dialect: Dialect) -> str:
    """Join the arguments by a sign; a negative term of a sum is subtracted."""
    first, *rest = piece.args
    loose = symbol.binding + (1 if symbol.binding == COMPARISON or piece.text == "power" else 0)
    text = _inside(first, dialect, loose)
    for arg in rest:
        positive = _negated(arg) if symbol.binding == SUM and piece.text == "add" else None
        sign, shown = (symbol.text, arg) if positive is None else ("-", positive)
        text += f" {sign} {_inside(shown, dialect, symbol.binding + (piece.text != 'power'))}"
    return text


def _negated(piece: Syntax) -> Syntax | None:
    """Return a term without its leading minus, or None where it has none."""
    if piece.kind == "call" and piece.infix and piece.text == "neg":
        return piece.args[0]
    if piece.kind == "number" and piece.text.startswith("-"):
        return Syntax("number", piece.text[1:], piece.at, piece.end)
    return None
