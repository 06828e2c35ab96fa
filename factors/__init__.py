"""The factor language and its engine: formulas in, panels of values out."""

from __future__ import annotations

from .canonical import bucketed
from .errors import FactorError, PanelLacksField, ParseError
from .expression import Expression
from .node import Node
from .operators import OPERATORS
from .parse import parse
from .signature import Operator

__all__ = [
    "OPERATORS",
    "Expression",
    "FactorError",
    "Node",
    "Operator",
    "PanelLacksField",
    "ParseError",
    "bucketed",
    "parse",
]
