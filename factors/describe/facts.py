"""Describe a formula as JSON-able facts for the command line and the MCP tools."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..dialects import DIALECT_NAMES, find_dialect, write_foreign
from ..dialects.dialect import OWN_DIALECT
from ..errors import ParseError
from ..language.definitions import expand_tree
from ..language.expression import Expression
from ..language.node import STANDARD_GROUPS, Node, walk
from ..language.parse import parse
from ..language.types import FIELD_UNITS
from ..operators import OPERATORS
from .explain import FIELD_WORDS, describe_unit, explain, list_operators
from .render import render

Facts = dict[str, Any]
OptionalNames = Collection[str] | None

UNREAD_FACTS: Mapping[str, None] = dict.fromkeys(("canonical", "id", "type", "interval", "warmup", "size"))


def check_formula(
    text: str, *, fields: OptionalNames = None, groups: OptionalNames = None, dialect: str = OWN_DIALECT
) -> Facts:
    """Read a formula; return its properties, or all its mistakes.

    Parameters
    ----------
    text, fields, groups, dialect
        As in `parse`.

    Returns
    -------
    dict
        ``ok``, ``text``, ``dialect``, ``canonical``, ``id``, ``type`` (the unit), ``interval`` (first and last row that
        is read, today being 0), ``warmup`` (rows before the first value), ``size`` (nodes), ``errors`` (each with
        ``at``, the 0-based column, ``message``, ``hint`` and ``stage``) and ``warnings``. Unknown facts of a refused
        formula are None.

    Raises
    ------
    ParseError
        For an unknown dialect; the mistakes of a refused formula are returned.
    """
    require_dialect(dialect)
    answer: Facts = {"ok": True, "text": text, "dialect": dialect}
    try:
        return answer | describe_formula(parse(text, fields=fields, groups=groups, dialect=dialect))
    except ParseError as error:
        errors = [mistake.lesson() for mistake in error.mistakes]
        if dialect == OWN_DIALECT and error.stage == "parse" and (elsewhere := _suggest_dialects(text, fields, groups)):
            errors[0]["hint"] = f"{error.hint} {elsewhere}".strip()
        return answer | {"ok": False, **UNREAD_FACTS, "errors": errors, "warnings": []}


def describe_formula(expression: Expression) -> Facts:
    """Return the properties of a parsed formula (see `check_formula`); for code, ``amounts_to`` is its equivalent."""
    amounts = {"amounts_to": render(expression.root)} if expression.code else {}
    return {
        "canonical": expression.canonical_text,
        "id": expression.id,
        "type": expression.unit,
        "interval": [expression.lookback.lo, expression.lookback.hi],
        "warmup": expression.warmup,
        "size": expression.size,
        **amounts,
        "errors": [],
        "warnings": list(expression.warnings),
    }


def explain_formula(expression: Expression) -> Facts:
    """Return a formula in plain words, with its unit, days, fields, operators and cost.

    Returns
    -------
    dict
        The keys of `describe_formula`, and ``text``, ``alphaloom`` (the formula in our language, as written),
        ``explained``, ``unit`` (in words), ``depth``, ``constants``, ``fields``, ``operators`` (both with name and
        meaning) and ``cost``.
    """
    return {
        "ok": True,
        "text": expression.text,
        "alphaloom": render(expression.root),
        "explained": explain(expression),
        **describe_formula(expression),
        "unit": describe_unit(expression.unit),
        "depth": expression.depth,
        "constants": expression.constants,
        "fields": [_describe_field(name) for name in sorted(expression.fields)],
        "operators": [_summarise_operator(name) for name in list_operators(expression.root) if name in OPERATORS],
        "cost": estimate_cost(expression),
    }


def translate_formula(
    text: str, source: str, target: str, *, fields: OptionalNames = None, groups: OptionalNames = None
) -> Facts:
    """Translate a formula from one language to another, with notes on differences, or all mistakes.

    Returns
    -------
    dict
        ``ok``, ``text``, ``from``, ``to``, ``translation`` (None where refused), ``notes`` and ``errors``.

    Raises
    ------
    ParseError
        For an unknown dialect; the mistakes of a refused formula are returned.
    """
    require_dialect(source)
    require_dialect(target)
    answer: Facts = {"ok": True, "text": text, "from": source, "to": target}
    try:
        formula = parse(text, fields=fields, groups=groups, dialect=source)
        if target == OWN_DIALECT:
            text = render(formula.root)
            notes = [*formula.warnings, *_describe_unreadable(text, fields, groups, source)]
            return answer | {"translation": text, "notes": notes, "errors": []}
        foreign = write_foreign(formula.root, target)
    except ParseError as error:
        errors = [mistake.lesson() | {"got": mistake.text} for mistake in error.mistakes]
        return answer | {"ok": False, "translation": None, "notes": [], "errors": errors}
    notes = list(dict.fromkeys((*formula.warnings, *foreign.notes)))
    return answer | {"translation": foreign.text, "notes": notes, "errors": []}


def estimate_cost(expression: Expression) -> Facts:
    """Estimate the time to compute a formula, every distinct subtree once.

    Returns
    -------
    dict
        ``ns_per_cell`` and ``ms_per_million_cells`` of one core, and ``estimate``, always true: the sum of the
        operators' costs at a window of 20, in a large panel, without the cache.
    """
    steps = {node for _, node in walk(expand_tree(expression.canonical)) if not node.is_leaf}
    nanoseconds = round(sum(map(_estimate_step, steps)), 1)
    return {"ns_per_cell": nanoseconds, "ms_per_million_cells": nanoseconds, "estimate": True}


def _estimate_step(node: Node) -> float:
    """Return the cost of one step in nanoseconds per cell; a chain of many terms is computed in pairs."""
    operator = OPERATORS[node.op]
    pairs = len(node.args) - 1 if operator.takes_many else 1
    return operator.compute.cost * pairs if operator.compute else 0.0


def require_dialect(name: str) -> None:
    """Raise `ParseError`, with a list of the dialects, for an unknown dialect."""
    if name != OWN_DIALECT:
        find_dialect(name)


def _suggest_dialects(text: str, fields: OptionalNames, groups: OptionalNames) -> str:
    """Return a hint with the other languages that can read a text; empty if there are none."""
    readable = [name for name in DIALECT_NAMES if name != OWN_DIALECT and _is_readable(text, fields, groups, name)]
    if not readable:
        return ""
    return f"It can be read as {' or '.join(readable)}: check it as that dialect."


def _describe_unreadable(text: str, fields: OptionalNames, groups: OptionalNames, source: str) -> list[str]:
    """Return a note if our language refuses the translation: units of a foreign formula may disagree, ours may not."""
    try:
        parse(text, fields=fields, groups=groups)
    except ParseError as error:
        stay = f"to use it as it is, leave it in {source} (--dialect {source})"
        return [f"alphaloom itself refuses it ({error.stage}): {stay}"]
    return []


def _is_readable(text: str, fields: OptionalNames, groups: OptionalNames, dialect: str) -> bool:
    try:
        parse(text, fields=fields, groups=groups, dialect=dialect)
    except ParseError:
        return False
    return True


def _describe_field(name: str) -> Facts:
    if name in STANDARD_GROUPS:
        return {"name": name, "meaning": f"the {name} of each name", "unit": "a grouping"}
    unit = FIELD_UNITS[name].name if name in FIELD_UNITS else "ratio"
    return {"name": name, "meaning": FIELD_WORDS.get(name, name), "unit": describe_unit(unit)}


def _summarise_operator(name: str) -> Facts:
    operator = OPERATORS[name]
    return {"name": name, "signature": operator.signature, "meaning": operator.summary}
