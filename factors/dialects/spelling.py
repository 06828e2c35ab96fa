"""Spell foreign syntax as text, with as few parentheses as it needs."""

from __future__ import annotations

from ..language.syntax import Syntax
from .dialect import PREC_ATOM, PREC_CHOICE, PREC_COMPARISON, PREC_SIGNED, PREC_SUM, Dialect, Symbol

CHAIN_OPERATORS = ("add", "and", "or", "mul")


def spell_formula(piece: Syntax, dialect: Dialect) -> str:
    """Return the text of a piece."""
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
    """Return the text of an argument, in parentheses where it binds less tightly than asked."""
    text, own = _spell_with_binding(piece, dialect)
    return text if own >= binding else f"({text})"


def _spell_chain(piece: Syntax, symbol: Symbol, dialect: Dialect) -> str:
    """Join the arguments by a sign; a negative term of a sum is subtracted."""
    first, *rest = piece.args
    loose = symbol.binding + (1 if symbol.binding == PREC_COMPARISON or piece.text == "power" else 0)
    text = _parenthesise_looser(first, dialect, loose)
    for arg in rest:
        positive = _strip_minus(arg) if symbol.binding == PREC_SUM and piece.text == "add" else None
        sign, shown = (symbol.text, arg) if positive is None else ("-", positive)
        text += f" {sign} {_parenthesise_looser(shown, dialect, symbol.binding + (piece.text != 'power'))}"
    return text


def _strip_minus(piece: Syntax) -> Syntax | None:
    """Return a term without its leading minus, or None where it has none."""
    if piece.kind == "call" and piece.infix and piece.text == "neg":
        return piece.args[0]
    if piece.kind == "number" and piece.text.startswith("-"):
        return Syntax("number", piece.text[1:], piece.at, piece.end)
    return None
