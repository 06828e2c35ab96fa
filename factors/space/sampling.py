"""Draw random formulas from the operator table; they parse, their units agree, and they read no later day."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np

from ..describe.render import render
from ..errors import ParseError
from ..language.expression import Expression
from ..language.node import STANDARD_FIELDS, STANDARD_GROUPS, Node, field_node, group_node, number_node
from ..language.operator import Argument, Operator
from ..language.parse import parse
from ..language.types import UnitMismatch, find_unit
from ..operators import OPERATORS

SAMPLED_WINDOWS = (2, 3, 5, 10, 15, 20, 30, 40, 60)
LINE_FIT_OPERATORS = frozenset({"ts_alpha", "ts_beta", "ts_resid", "ts_residual", "ts_slope"})
"""Operators that fit a line: the residual of two rows is rounding noise."""
SAMPLED_NUMBERS = (0.5, 1.0, 2.0)
WIDE_OPERATOR_SHARE = 0.4
"""Share of draws that prefer an operator with several arguments: most take one, so trees would be chains."""
TRIES_PER_NODE = 60
MAX_SAMPLE_TRIES = 400

Choice = TypeVar("Choice")


@dataclass(frozen=True)
class Grammar:
    """The columns, groupings, windows and operators that a sampler may use.

    Attributes
    ----------
    fields : tuple of str
        Columns.
    groups : tuple of str
        Groupings; empty for none, and then no operator by group is drawn.
    windows : tuple of int
        Windows to choose from.
    operators : tuple of str
        Operators to choose from.
    """

    fields: tuple[str, ...] = STANDARD_FIELDS
    groups: tuple[str, ...] = STANDARD_GROUPS
    windows: tuple[int, ...] = SAMPLED_WINDOWS
    operators: tuple[str, ...] = tuple(OPERATORS)


def sample(
    rng: np.random.Generator,
    *,
    fields: Collection[str] = STANDARD_FIELDS,
    max_size: int = 12,
    grammar: Grammar | None = None,
) -> Expression:
    """Draw a formula.

    Parameters
    ----------
    rng : numpy Generator
        The only source of randomness.
    fields : collection of str
        Columns that may be read; they are sorted first, so sets give the same draw.
    max_size : int
        Largest number of nodes, at least 1.
    grammar : Grammar, optional
        Operators, windows and groupings to choose from; its fields replace `fields`.

    Returns
    -------
    Expression
        It parses, its units agree, and it reads no later day.
    """
    chosen = grammar or Grammar(fields=tuple(sorted(fields)))
    for _ in range(MAX_SAMPLE_TRIES):
        tree = sample_tree(rng, max_size=max_size, grammar=chosen)
        if tree is None:
            continue
        try:
            return parse(render(tree), fields=chosen.fields, groups=chosen.groups or STANDARD_GROUPS)
        except ParseError:
            continue
    return parse(f"rank({chosen.fields[0]})", fields=chosen.fields)


def sample_tree(rng: np.random.Generator, *, max_size: int, grammar: Grammar) -> Node | None:
    """Draw a tree whose units agree, as `sample` does, without parsing it; None if none was found."""
    size = int(rng.integers(1, max_size + 1)) if max_size > 1 else 1
    return _Sampler(rng, grammar).panel(size)


@dataclass
class _Sampler:
    """Grow a tree top down, keeping each subtree only if its units agree."""

    rng: np.random.Generator
    grammar: Grammar

    def pick(self, choices: Sequence[Choice]) -> Choice:
        return choices[int(self.rng.integers(len(choices)))]

    def panel(self, size: int) -> Node | None:
        """Return a tree of about `size` nodes that is not a bare condition, or None after too many tries."""
        return self._grow(size, condition=False)

    def _grow(self, size: int, condition: bool) -> Node | None:
        if size <= 1 and not condition:
            return field_node(self.pick(self.grammar.fields))
        fitting = _list_fitting(self.grammar.operators, bool(self.grammar.groups), size, condition)
        wide = [operator for operator in fitting if len(operator.nodes) > 1]
        for _ in range(TRIES_PER_NODE if fitting else 0):
            tree = self._draw_call(
                self.pick(wide if wide and self.rng.random() < WIDE_OPERATOR_SHARE else fitting), size
            )
            if tree is not None and _is_typed(tree):
                return tree
        return None

    def _draw_call(self, operator: Operator, size: int) -> Node | None:
        parts = self._split_size(size - 1, len(operator.nodes))
        args = [
            self._draw_argument(argument, part, operator) for argument, part in zip(operator.nodes, parts, strict=True)
        ]
        if any(arg is None for arg in args) or len(args) > len(set(args)):
            return None
        numbers = [argument for argument in operator.numbers if not argument.keyword]
        params = tuple((argument.name, self._draw_number(argument, operator)) for argument in numbers)
        if operator.name == "clip":
            params = (("low", -params[1][1]), params[1])
        return Node(operator.name, tuple(arg for arg in args if arg is not None), params)

    def _draw_argument(self, argument: Argument, size: int, operator: Operator) -> Node | None:
        if argument.kind == "group":
            return group_node(self.pick(self.grammar.groups))
        if argument.kind == "condition":
            return self._grow(max(size, 3), condition=True)
        if operator.name in ("power", "signed_power") and argument.name == "y":
            return number_node(self.pick((0.5, 2.0, 3.0)))
        constant = operator.infix and argument.name == "y" and size <= 1 and self.rng.random() < 0.3
        return number_node(self.pick(SAMPLED_NUMBERS)) if constant else self._grow(size, condition=False)

    def _draw_number(self, argument: Argument, operator: Operator) -> float:
        if argument.kind == "window":
            needy = operator.unit == "ratio" or operator.name in LINE_FIT_OPERATORS
            enough = [window for window in self.grammar.windows if window >= 5] if needy else []
            return float(self.pick(enough or self.grammar.windows))
        choices = {"q": (0.1, 0.25, 0.75, 0.9), "n": (3.0, 5.0, 10.0), "limit": (2.0, 3.0), "high": (0.5, 1.0, 2.0)}
        return self.pick(choices.get(argument.name, (1.0,)))

    def _split_size(self, size: int, parts: int) -> list[int]:
        """Split a number of nodes at random among arguments, each at least 1."""
        spare = max(size - parts, 0)
        cuts = sorted(int(self.rng.integers(spare + 1)) for _ in range(parts - 1))
        edges = [0, *cuts, spare]
        return [1 + edges[place + 1] - edges[place] for place in range(parts)]


def _is_typed(node: Node) -> bool:
    try:
        find_unit(node)
    except UnitMismatch:
        return False
    return True


@lru_cache(maxsize=512)
def _list_fitting(names: tuple[str, ...], has_groups: bool, size: int, condition: bool) -> tuple[Operator, ...]:
    """Return the operators that a tree of `size` nodes may begin with, a condition or not."""
    return tuple(OPERATORS[name] for name in names if _fits(OPERATORS[name], has_groups, size, condition))


def _fits(operator: Operator, has_groups: bool, size: int, condition: bool) -> bool:
    truth = operator.unit in ("comparison", "logic")
    if truth != condition or (not has_groups and any(argument.kind == "group" for argument in operator.nodes)):
        return False
    needs = sum(3 if argument.kind == "condition" else 1 for argument in operator.nodes)
    compares = condition and not any(argument.kind == "condition" for argument in operator.nodes)
    return compares or needs < size
