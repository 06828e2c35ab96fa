"""A formula as a person may want to read it: in other dialects, as a tree with a shared part marked, as a change."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal

from .figures import any_value

if TYPE_CHECKING:
    from ..factors import Expression, Node
    from ..factors.similarity import Likeness, Outline


DOCSTRING_PATTERN = re.compile(
    r'def factor\(.*?\)[^\n]*:\s*(?:[rbuRBU]?"""|\'\'\')\s*(.+?)\s*(?:"""|\'\'\'|\n)', re.DOTALL
)
OWN_DIALECT = "alphaloom"
MAX_DIALECT_CHARS = 2_000
"""Longest formula that is written in other dialects: a formula grows where a dialect lacks an operator."""
FORMULA_WORDS = re.compile(r"\s+|[A-Za-z_]\w*|\d+(?:\.\d+)?(?:e[+-]?\d+)?|[<>=!]=|\*\*|.", re.DOTALL)


@dataclass(frozen=True)
class DialectText:
    """A formula in one dialect; `text` is empty where the dialect has no equivalent, and a note says why."""

    name: str
    title: str
    text: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TreeBranch:
    """One step of a formula with its arguments.

    Attributes
    ----------
    label
        The operator with its numbers, a column, a grouping or a number.
    shared
        Whether it and all below it also stand in the nearest known formula.
    """

    label: str
    shared: bool
    parts: tuple[TreeBranch, ...]


@dataclass(frozen=True)
class TextChange:
    """A piece of a formula that stayed, was added, or was removed."""

    kind: Literal["same", "added", "removed"]
    text: str


def read_formula(text: str, names: Collection[str]) -> Expression:
    """Parse a recorded formula that reads the standard columns and groupings, and some other names.

    Raises
    ------
    ParseError
        This version cannot read it.
    """
    from ..factors import parse
    from ..factors.language import STANDARD_FIELDS, STANDARD_GROUPS

    fields, groups = {*STANDARD_FIELDS, *names}, {*STANDARD_GROUPS, *names}
    return parse(text, fields=fields, groups=groups, refuse_units=False)


def write_dialects(expression: Expression) -> list[DialectText]:
    """Return a formula in every other dialect; none of Python code, or of a very long formula."""
    from ..factors import ParseError
    from ..factors.dialects import DIALECT_NAMES, find_dialect, write_foreign

    if expression.code or len(expression.text) > MAX_DIALECT_CHARS:
        return []
    texts = []
    for name in DIALECT_NAMES:
        if name == OWN_DIALECT:
            continue
        title = find_dialect(name).title
        try:
            written = write_foreign(expression.root, name)
            texts.append(DialectText(name, title, written.text, tuple(written.notes)))
        except ParseError as error:
            texts.append(DialectText(name, title, "", (error.message,)))
    return texts


def draw_tree(expression: Expression, nearest: Likeness | None) -> TreeBranch:
    """Return the canonical tree of a formula, with the part marked that it shares with its nearest known one."""
    part = nearest.part if nearest else None
    return _draw_branch(expression.canonical, part, inside=False)


def _draw_branch(node: Node, part: Outline | None, *, inside: bool) -> TreeBranch:
    shared = inside or (part is not None and _is_part(node, part))
    return TreeBranch(_label(node), shared, tuple(_draw_branch(arg, part, inside=shared) for arg in node.args))


def _is_part(node: Node, part: Outline) -> bool:
    """Tell whether a subtree has an outline, numbers near each other included."""
    from ..factors.similarity import draw_outline, is_near

    own = draw_outline(node)
    return own.text == part.text and is_near(own.codes, part.codes)


def _label(node: Node) -> str:
    if node.op == "number":
        return any_value(node.value)
    if node.is_leaf:
        return node.name
    return ", ".join([node.op, *(f"{name} {any_value(value)}" for name, value in node.params)])


def compare_texts(before: str, after: str) -> list[TextChange]:
    """Return how one formula became another, word by word, in the order in which one reads it."""
    old, new = FORMULA_WORDS.findall(before), FORMULA_WORDS.findall(after)
    changes: list[TextChange] = []
    for kind, start, stop, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            changes.append(TextChange("same", _join(new[first:last])))
            continue
        pieces = (TextChange("removed", _join(old[start:stop])), TextChange("added", _join(new[first:last])))
        changes += [piece for piece in pieces if piece.text]
    return changes


def _join(words: Sequence[str]) -> str:
    return "".join(words)


def summarise_formula(text: str) -> str:
    """Return a formula as it is; of code, its docstring's first line or its length."""
    if "\n" not in text:
        return text
    match = DOCSTRING_PATTERN.search(text)
    lines = len(text.strip().splitlines())
    return f"Python, {lines} lines" + (f": {match[1]}" if match else "")
