"""Write one of our trees in a dialect, by its rules read from right to left; translate between any two languages."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from ..describe.render import render, render_number
from ..errors import ParseError
from ..language.definitions import expand_operator
from ..language.node import Node
from ..language.operator import Argument
from ..language.parse import parse
from ..language.syntax import Syntax
from ..operators import OPERATORS, fill_parameters
from .dialect import OWN_DIALECT, Dialect, find_dialect, spell_formula
from .importer import load_rules
from .rule import (
    EXPRESSION_LETTERS,
    WINDOW_LETTERS,
    RewriteRule,
    compute_number,
    find_kind,
    find_variables,
    is_computed,
    round_noise,
)

EDGE_KEYWORDS = frozenset({"min_periods"})
"""Keywords that only matter in the first rows and around gaps: where a dialect lacks them, a note says so."""

MIN_PIECES_READ_BACK = 50
"""Pieces from which on a formula is parsed again as a test: the limit is on nodes, at most four for each piece."""

EXTREMES: Mapping[str, Callable[[Iterable[float]], float]] = MappingProxyType({"max": max, "min": min})


class ForeignFormula(NamedTuple):
    """A formula in a dialect, with notes for the reader."""

    text: str
    notes: tuple[str, ...]


@dataclass
class _Match:
    """The nodes and numbers bound to the variables of a rule; computed numbers are compared at the end."""

    nodes: dict[str, Node] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    pending: list[tuple[Syntax, float]] = field(default_factory=list)
    edges: list[tuple[str, Syntax | float, float]] = field(default_factory=list)


def write_foreign(root: Node, dialect: str) -> ForeignFormula:
    """Write a tree in a dialect.

    Parameters
    ----------
    root : Node
        The tree as written, not its canonical form.
    dialect : str
        The name of the dialect.

    Returns
    -------
    ForeignFormula
        The formula and notes on what differs. Without notes it reads back to a formula of the same id.

    Raises
    ------
    ParseError
        If the dialect has no equivalent; the stage is ``dialect``.
    """
    foreign = find_dialect(dialect)
    exporter = _Exporter(foreign)
    syntax = exporter.convert(root)
    text = spell_formula(syntax, foreign)
    notes = [*exporter.notes, *_note_if_unreadable(text, dialect, _count_pieces(syntax))]
    return ForeignFormula(text, tuple(dict.fromkeys(notes)))


def _count_pieces(piece: Syntax) -> int:
    return 1 + sum(map(_count_pieces, piece.args))


def _note_if_unreadable(text: str, dialect: str, pieces: int) -> list[str]:
    """Return a note if expanded operators made a formula too large to be read back here."""
    if pieces < MIN_PIECES_READ_BACK:
        return []
    try:
        parse(text, dialect=dialect)
    except ParseError as refusal:
        return [f"it is too large to be read back here: {refusal.message}"]
    return []


@functools.cache
def _group_by_operator(dialect: str) -> Mapping[str, tuple[RewriteRule, ...]]:
    """Return the exporting rules by our operator, the most specific first."""
    by_operator: dict[str, list[RewriteRule]] = {}
    for rule in load_rules(dialect):
        if rule.exports:
            by_operator.setdefault(rule.own.text, []).append(rule)
    return MappingProxyType(
        {
            name: tuple(sorted(rules, key=lambda rule: -_measure_specificity(rule.own)))
            for name, rules in by_operator.items()
        }
    )


def _measure_specificity(piece: Syntax) -> int:
    """Return how specific a pattern is: 0 for any expression, 1 for a variable or computed number, else more."""
    if is_computed(piece):
        return 1
    if piece.kind == "name":
        kind = find_kind(piece.text)
        return 3 if not kind else 0 if kind in EXPRESSION_LETTERS else 1
    return (2 if piece.kind == "number" else 3) + sum(map(_measure_specificity, piece.args))


@dataclass
class _Exporter:
    """Rewrite one tree."""

    dialect: Dialect
    notes: list[str] = field(default_factory=list)

    def convert(self, node: Node) -> Syntax:
        """Return the foreign syntax of a tree."""
        if node.op == "number":
            return _build_number(node.value or 0.0)
        if node.op in EXTREMES and all(arg.op == "number" for arg in node.args):
            return _build_number(
                EXTREMES[node.op](arg.value or 0.0 for arg in node.args)
            )  # some dialects read max(x, 5) as a window
        rules = _group_by_operator(self.dialect.name).get(node.name if node.op == "field" else node.op, ())
        for exact in (True, False):
            for rule in rules:
                match = _Match()
                if _matches(rule.own, node, match) and _check_computed(match) and not (exact and match.edges):
                    return self._apply_rule(rule, match, node)
        if node.op == "field":
            return _build_word(self.dialect.write_field(node.name))
        if node.op == "group":
            return _build_word(self.dialect.group_sign + node.name)
        return self._convert_without_rule(node)

    def _convert_without_rule(self, node: Node) -> Syntax:
        """Write an operator without a rule: by its sign, in pairs, or by its definition."""
        if node.op in self.dialect.symbols and not node.params:
            return Syntax("call", node.op, 0, 0, tuple(map(self.convert, node.args)), infix=True)
        operator = OPERATORS[node.op]
        if operator.definition:
            return self.convert(expand_operator(node))
        if len(node.args) > len(operator.nodes):
            return self.convert(node.with_args(node.with_args(*node.args[:-1]), node.args[-1]))
        raise ParseError(
            f"{self.dialect.title} has nothing that means {render(node)}",
            text=render(node),
            stage="dialect",
            hint=f"Its operators: {', '.join(self._list_operators())}.",
        )

    def _list_operators(self) -> list[str]:
        return sorted(
            {
                rule.foreign.text
                for rule in load_rules(self.dialect.name)
                if rule.exports and rule.foreign.kind == "call" and not rule.foreign.infix
            }
        )

    def _apply_rule(self, rule: RewriteRule, match: _Match, node: Node) -> Syntax:
        self.notes += [rule.note] if rule.note else []
        for name, theirs, ours in match.edges:
            need = compute_number(theirs, match.numbers) if isinstance(theirs, Syntax) else theirs
            self.notes.append(
                f"{'what it stands for' if OPERATORS[node.op].infix else node.op} here has {name} "
                f"{render_number(ours)}; "
                f"{rule.foreign.text} of {self.dialect.title} has {render_number(need)}: gaps and first rows differ"
            )
        if rule.family:
            return _build_word(f"{rule.family}{render_number(match.numbers[rule.foreign.text])}")
        return self._fill(rule.foreign, match)

    def _fill(self, piece: Syntax, match: _Match) -> Syntax:
        if piece.kind == "name" and piece.text in match.nodes:
            return self.convert(match.nodes[piece.text])
        if piece.kind == "name" and piece.text in match.numbers:
            return _build_number(match.numbers[piece.text])
        return replace(piece, args=tuple(self._fill(arg, match) for arg in piece.args))


def _build_number(value: float) -> Syntax:
    return Syntax("number", render_number(value), 0, 0)


def _build_word(text: str) -> Syntax:
    return Syntax("name", text, 0, 0)


def _matches(pattern: Syntax, node: Node, match: _Match) -> bool:
    """Return whether a tree matches our side of a rule, and bind its variables in `match`."""
    if is_computed(pattern):
        return _matches_number(pattern, node.value, match) if node.op == "number" else False
    if pattern.kind == "name" and (kind := find_kind(pattern.text)):
        if kind not in EXPRESSION_LETTERS and kind != "g":
            return node.op == "number" and _matches_number(pattern, node.value, match)
        fits = (node.op == "group") == (kind == "g")
        return fits and match.nodes.setdefault(pattern.text, node) == node
    if pattern.kind == "number":
        return node.op == "number" and node.value == float(pattern.text)
    if pattern.kind == "name":
        return node.op in ("field", "group") and node.name == pattern.text
    return node.op == pattern.text and _matches_call(pattern, node, match)


def _matches_call(pattern: Syntax, node: Node, match: _Match) -> bool:
    operator = OPERATORS[node.op]
    positional = [arg for arg in pattern.args if arg.kind != "keyword"]
    keywords = {arg.text: arg.args[0] for arg in pattern.args if arg.kind == "keyword"}
    slots = [argument for argument in operator.positional if argument.name not in keywords]
    slots += [operator.nodes[-1]] * (len(positional) - len(slots)) if operator.takes_many else []
    below = [arg for slot, arg in zip(slots, positional, strict=False) if slot.is_node]
    patterns = {slot.name: arg for slot, arg in zip(slots, positional, strict=False) if not slot.is_node} | keywords
    if len(below) != len(node.args):
        return False
    if not all(_matches(part, arg, match) for part, arg in zip(below, node.args, strict=True)):
        return False
    values = fill_parameters(node)
    return all(_matches_numeral(argument, patterns, values, match) for argument in operator.numbers)


def _matches_numeral(
    argument: Argument, patterns: Mapping[str, Syntax], values: Mapping[str, float], match: _Match
) -> bool:
    """Compare a number of a call with the rule's number, or with the default if the rule has none."""
    value, pattern = values[argument.name], patterns.get(argument.name)
    if argument.name in EDGE_KEYWORDS:
        theirs = pattern if pattern is not None else values.get("window", 1.0)
        match.edges.append((argument.name, theirs, value))
        return True
    if pattern is None:
        default = values.get("window", 1.0) if argument.default is None else argument.default
        return value == default
    if argument.kind == "choice":
        return argument.choices[int(value)] == pattern.text
    return _matches_number(pattern, value, match)


def _matches_number(pattern: Syntax, value: float | None, match: _Match) -> bool:
    if value is None:
        return False
    if pattern.kind == "name" and (kind := find_kind(pattern.text)):
        if kind in WINDOW_LETTERS and (value != int(value) or (kind == "e" and value % 2)):
            return False
        return match.numbers.setdefault(pattern.text, value) == value
    match.pending.append((pattern, value))
    return True


def _solve(pattern: Syntax, value: float, numbers: dict[str, float]) -> None:
    """Solve for the only unknown number of a rule, if it or its inverse enters linearly: 16 * m, 2 / n."""
    unknown = {variable for variable in find_variables(pattern) if variable not in numbers}
    if len(unknown) != 1:
        return
    name = unknown.pop()
    with contextlib.suppress(ZeroDivisionError, OverflowError):
        for power in (1, -1):
            first, second = (compute_number(pattern, numbers | {name: trial**power}) for trial in (1.0, 2.0))
            solution = round_noise((1 + (value - first) / (second - first)) ** power)
            if compute_number(pattern, numbers | {name: solution}) == value:
                numbers[name] = solution
                return


def _check_computed(match: _Match) -> bool:
    """Compare the numbers that a rule computes from its variables; reduce `match.edges` to the differing ones."""
    for pattern, value in match.pending:
        _solve(pattern, value, match.numbers)
    try:
        agree = all(compute_number(pattern, match.numbers) == value for pattern, value in match.pending)
        match.edges = [
            (name, theirs, ours)
            for name, theirs, ours in match.edges
            if (compute_number(theirs, match.numbers) if isinstance(theirs, Syntax) else theirs) != ours
        ]
    except (KeyError, ZeroDivisionError, OverflowError):
        return False
    return agree


@dataclass(frozen=True, slots=True)
class Translation:
    """A formula in another language.

    Attributes
    ----------
    text : str
        The formula.
    notes : tuple of str
        Differences from the original, for a person.
    """

    text: str
    notes: tuple[str, ...] = ()


def translate(text: str, source: str, target: str) -> Translation:
    """Translate a formula from one language to another.

    Parameters
    ----------
    text : str
        The formula.
    source, target : str
        Names of languages: ``alphaloom``, ``worldquant``, ``qlib``, ``alphaagent``, ``alphagen`` or ``factorminer``.

    Returns
    -------
    Translation
        The formula in the target language, with the meaning that it has in the source language, and notes.

    Raises
    ------
    ParseError
        If the formula cannot be parsed, or the target has no equivalent; the stage is then ``dialect``.
    """
    formula = parse(text, dialect=source)
    if target == OWN_DIALECT:
        return Translation(render(formula.root), formula.warnings)
    foreign = write_foreign(formula.root, target)
    return Translation(foreign.text, tuple(dict.fromkeys((*formula.warnings, *foreign.notes))))
