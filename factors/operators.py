"""List the operators of the factor language.

The table is declarative and light. The parser, the unit rules, the day intervals, the canonical form, the plain words,
the sampler and the documentation read it; the engine attaches a kernel to each name.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .cross_section import CROSS_SECTION
from .elementwise import ELEMENTWISE, LOGIC
from .node import Node
from .signature import Operator
from .time_series import TIME_SERIES

OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {operator.name: operator for operator in (*ELEMENTWISE, *LOGIC, *TIME_SERIES, *CROSS_SECTION)}
)


def parameters(node: Node) -> dict[str, float]:
    """Return every number of an operator node by name, defaults filled in; `min_periods` defaults to the window."""
    given = dict(node.params)
    found: dict[str, float] = {}
    for argument in OPERATORS[node.op].numbers:
        value = given.get(argument.name, argument.default)
        found[argument.name] = found.get("window", 1.0) if value is None else value
    return found
