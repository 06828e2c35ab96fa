"""Document the operators: one as facts, all as the page ``docs/reference/operators.md``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from ..dialects import DIALECT_NAMES, find_dialect
from ..dialects.dialect import OWN_DIALECT
from ..dialects.rule import ARROWS
from ..errors import FactorError, nearest_name
from ..language.node import STANDARD_FIELDS
from ..language.operator import NAN_NOTES, Argument, Operator
from ..language.types import FIELD_UNITS
from ..operators import OPERATORS
from .render import render_number

Facts = dict[str, Any]

FIELD_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "open": "first price of the day, adjusted for splits and dividends",
        "high": "highest price of the day, adjusted",
        "low": "lowest price of the day, adjusted",
        "close": "last price of the day, adjusted",
        "close_raw": "last price of the day as it was quoted",
        "vwap": "mean price of the day, weighted by volume",
        "volume": "shares traded",
        "returns": "today's close over yesterday's, less one",
        "amount": "money traded",
        "cap": "market value of all shares",
    }
)

UNIT_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "same": "that of x",
        "common": "that of its arguments, which must agree",
        "product": "the product of the units of its arguments",
        "quotient": "the unit of the first argument divided by that of the second",
        "quotient_self": "a ratio",
        "power": "the unit of x to that power; only a literal number may be the exponent of a dimension",
        "root": "the square root of the unit of x",
        "square": "the square of the unit of x",
        "pure": "a ratio; the argument must be dimensionless",
        "comparison": "a condition; what is compared must agree in its unit",
        "logic": "a condition",
        "choice": "that of the branches, which must agree",
        "number": "a plain number",
        "ratio": "a ratio",
        "return": "a return",
        "rank": "a rank",
    }
)
"""Unit of the result in words, by the name of the rule in `types.UNIT_RULES`."""


def find_operator(name: str) -> Operator:
    """Return an operator by its name or its symbol.

    Raises
    ------
    FactorError
        If there is no such operator; the code is ``unknown_operator``, and the hint has the nearest name.
    """
    symbols = {operator.infix: operator for operator in OPERATORS.values() if operator.infix}
    match = OPERATORS.get(name) or symbols.get(name) or OPERATORS.get(name.lower())
    if match is None:
        guess = nearest_name(name, OPERATORS)
        meant = f"Did you mean {guess}? " if guess else ""
        message = f"there is no operator '{name}'"
        hint = f"{meant}Without a name, all of them are listed."
        raise FactorError(message, field="NAME", got=name, hint=hint, code="unknown_operator")
    return match


def describe_operator(operator: Operator) -> Facts:
    """Return the full documentation of an operator.

    Returns
    -------
    dict
        ``name``, ``family``, ``signature``, ``symbol``, ``meaning``, ``arguments`` (each with ``name``, ``takes`` and
        ``default``), ``nan``, ``unit``, ``example``, ``definition``, ``ns_per_cell`` (an estimate, at a window of 20;
        None for an operator with a definition) and ``elsewhere`` (its spellings in other languages).
    """
    return {
        **summarise_operator(operator),
        "family": operator.family,
        "symbol": operator.infix,
        "arguments": [_list_argument(argument) for argument in operator.arguments],
        "nan": " ".join(part for part in (NAN_NOTES[operator.family], operator.nan) if part),
        "unit": _describe_unit(operator),
        "example": operator.example,
        "definition": operator.definition,
        "ns_per_cell": operator.compute.cost if operator.compute else None,
        "elsewhere": list_foreign_spellings(operator),
    }


def _describe_unit(operator: Operator) -> str:
    if operator.definition:
        return "that of its definition"
    first = operator.nodes[0].name if operator.nodes else "x"
    return re.sub(r"\bx\b", first, UNIT_WORDS[operator.unit])


def summarise_operator(operator: Operator) -> Facts:
    """Return the name, signature and meaning of an operator."""
    return {"name": operator.name, "signature": operator.signature, "meaning": operator.summary}


def list_families() -> dict[str, list[Operator]]:
    """Return the operators by family, in the order of the table."""
    by_family: dict[str, list[Operator]] = {}
    for operator in OPERATORS.values():
        by_family.setdefault(operator.family, []).append(operator)
    return by_family


def list_foreign_spellings(operator: Operator) -> list[Facts]:
    """Return the spellings of an operator in other languages, each with ours and the difference."""
    return [
        spelling for name in DIALECT_NAMES if name != OWN_DIALECT for spelling in _iter_spellings(name, operator.name)
    ]


def _iter_spellings(dialect: str, operator: str) -> Iterable[Facts]:
    for line in find_dialect(dialect).rules.splitlines():
        bare, _, note = line.partition(" # ")
        parts = re.split(rf"\s(?:{'|'.join(map(re.escape, ARROWS))})\s", bare.strip())
        if len(parts) == 2 and not bare.startswith("#") and _is_call_of(operator, parts[1]):
            yield {"dialect": dialect, "written": parts[0], "meaning": parts[1], "note": note.strip()}


def _is_call_of(operator: str, text: str) -> bool:
    """Return whether a text is exactly one call of an operator."""
    if not text.startswith(f"{operator}(") or not text.endswith(")"):
        return False
    depth = 0
    for mark in text[len(operator) : -1]:
        depth += (mark == "(") - (mark == ")")
        if depth == 0:
            return False
    return True


def _list_argument(argument: Argument) -> Facts:
    default = argument.text.partition("=")[2] or None
    return {"name": argument.name, "takes": _describe_argument(argument), "default": default}


def _describe_argument(argument: Argument) -> str:
    """Describe the values that an argument takes."""
    fixed = {"panel": "an expression", "condition": "a condition", "group": "a grouping, such as sector"}
    if argument.kind in fixed:
        return fixed[argument.kind]
    if argument.choices:
        return f"one of {', '.join(argument.choices)}"
    kind = "a whole number of rows" if argument.kind == "window" else "a whole number" if argument.whole else "a number"
    low, high = (render_number(bound) if abs(bound) < 1e15 else "" for bound in (argument.low, argument.high))
    return f"{kind}{f' from {low} to {high}' if low and high else f' of at least {low}' if low else ''}"


def render_page() -> str:
    """Return the page of all operators, by family, as Markdown."""
    parts = [_render_opening(), *(_render_chapter(family, operators) for family, operators in list_families().items())]
    return "\n\n".join(parts) + "\n"


def _render_opening() -> str:
    fields = "\n".join(f"| `{name}` | {FIELD_MEANINGS[name]} | {FIELD_UNITS[name].name} |" for name in STANDARD_FIELDS)
    return f"""# The operators of the factor language

Generated by `make reference` from the declarations in `factors/operators`; changes belong there.

There are {len(OPERATORS)} operators. `alphaloom factor operators NAME` shows one with every argument, and
`alphaloom factor check FORMULA` reads a formula. A window counts rows, today's included.

| field | what it is | unit |
|---|---|---|
{fields}
| `adv20` | mean of `amount` over 20 days; any number of days will do | money |

Any other column of a panel is a field too, and counts as a ratio.

What other languages write stands under "elsewhere", with what it is here unless it is the same call. In it x, y and z
are formulas, c is a condition, d, b and e are days (b may be 0, e is even), n, m, q, k and a are numbers, \
g is a grouping."""


def _render_chapter(family: str, operators: list[Operator]) -> str:
    opening = f"## {family[0].upper()}{family[1:]}\n\n{NAN_NOTES[family]}"
    return "\n\n".join([opening, *map(_render_operator, operators)])


def _render_operator(operator: Operator) -> str:
    described = describe_operator(operator)
    opening = f"`{operator.signature}`" + (f", written `{operator.infix}`" if operator.infix else "")
    facts = [
        ("unit", described["unit"]),
        ("NaN", operator.nan),
        ("defined as", f"`{operator.definition}`" if operator.definition else ""),
        ("example", f"`{operator.example}`"),
        (
            "elsewhere",
            "; ".join(dict.fromkeys(map(_render_spelling, described["elsewhere"]))),
        ),
    ]
    lines = [f"- {name}: {fact}" for name, fact in facts if fact]
    return "\n".join([f"### {operator.name}", "", f"{opening}. {operator.summary}", "", *lines])


def _render_spelling(spelling: Facts) -> str:
    """Render another language's spelling of an operator, with our meaning unless it is the same call."""
    arguments = spelling["meaning"].partition("(")[2]
    same = re.fullmatch(r"(?:[a-z][0-9]?(?:, )?)+\)", arguments)
    return f"{spelling['dialect']} `{spelling['written']}`" + ("" if same else f" (`{spelling['meaning']}`)")
