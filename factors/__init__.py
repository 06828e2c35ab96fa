"""The factor language and its engine: formulas in, panels of values out.

`parse` reads a formula, types it, proves that it never sees the future and brings it to its canonical form; `Engine`
computes it. What computes (numpy, numba) is imported when it is first used, so that reading formulas stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .bucket import bucketed
from .errors import FactorError, PanelLacksField, ParseError
from .explain import explain
from .expression import Expression
from .node import Node, replace, walk
from .operators import OPERATORS
from .parse import express, parse
from .render import render
from .signature import Operator

if TYPE_CHECKING:
    from .decoding import decoding_grammar
    from .dialects import translate
    from .engine import Engine
    from .planting import PlantSettings, draw_plants, planted_market
    from .ranks import RowOrder, order_rows, rank_rows, row_rank_correlation
    from .sampling import sample
    from .source import MarketSettings
    from .warmup import warm_up

HEAVY = {
    "Engine": "engine",
    "MarketSettings": "source",
    "PlantSettings": "planting",
    "RowOrder": "ranks",
    "decoding_grammar": "decoding",
    "draw_plants": "planting",
    "order_rows": "ranks",
    "planted_market": "planting",
    "rank_rows": "ranks",
    "row_rank_correlation": "ranks",
    "sample": "sampling",
    "translate": "dialects",
    "warm_up": "warmup",
}
"""Names that are imported when they are first used, and their modules."""

__all__ = [
    "OPERATORS",
    "Engine",
    "Expression",
    "FactorError",
    "MarketSettings",
    "Node",
    "Operator",
    "PanelLacksField",
    "ParseError",
    "PlantSettings",
    "RowOrder",
    "bucketed",
    "decoding_grammar",
    "draw_plants",
    "explain",
    "express",
    "order_rows",
    "parse",
    "planted_market",
    "rank_rows",
    "render",
    "replace",
    "row_rank_correlation",
    "sample",
    "translate",
    "walk",
    "warm_up",
]


def __getattr__(name: str) -> Any:
    """Import what computes when it is first used."""
    if name in HEAVY:
        value = getattr(import_module(f".{HEAVY[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
