"""The table of operators of the factor language: every `Operator` that a file below this folder declares.

A new operator is a new file in one of the folders, or some lines in the file of its noun: its kernel, its declaration
and its reference, about 30 lines. The parser, the unit rules, the day intervals, the canonical form, the descriptions
in words, the sampler, the decoding grammar, the dialects, the documentation and the tests read this table; no other
registration is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import pairwise
from pkgutil import walk_packages
from types import MappingProxyType

from ..language.node import Node
from ..language.operator import NAN_NOTES, Argument, Operator


def _iter_operators() -> Iterator[Operator]:
    """Yield the operators of all files."""
    for module in walk_packages(__path__, f"{__name__}."):
        yield from (value for value in vars(import_module(module.name)).values() if _is_operator(value))


def _is_operator(value: object) -> bool:
    return isinstance(value, Operator)


def _build_table() -> Mapping[str, Operator]:
    """Return the operators by family, then by name."""
    families = list(NAN_NOTES)
    operators = sorted(_iter_operators(), key=lambda operator: (families.index(operator.family), operator.name))
    twice = {one.name for one, other in pairwise(operators) if one.name == other.name and one != other}
    if twice:
        raise ValueError(f"two files of `factors/operators` declare {', '.join(sorted(twice))}")
    return MappingProxyType(OperatorTable({operator.name: operator for operator in operators}))


class OperatorTable(dict[str, Operator]):
    """The operators by name; a step of Python code (`py.NAME`) is made on look-up, without rules, and is not listed."""

    def __missing__(self, name: str) -> Operator:
        """Return an operator that defines only the order of its arguments."""
        if not name.startswith("py."):
            raise KeyError(name)
        arguments = tuple(Argument(f"x{place}") for place in range(MAX_ARGUMENTS))
        return Operator(name, "python", arguments, "a step of Python code", "", "", "")


MAX_ARGUMENTS = 64
OPERATORS: Mapping[str, Operator] = _build_table()


def fill_parameters(node: Node) -> dict[str, float]:
    """Return every number of an operator node by name, defaults filled in; a keyword without one is the window."""
    params = dict(node.params)
    values: dict[str, float] = {}
    for argument in OPERATORS[node.op].numbers:
        value = params.get(argument.name, argument.default)
        values[argument.name] = values.get("window", 1.0) if value is None else value
    return values
