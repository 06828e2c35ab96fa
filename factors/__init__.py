"""The factor language and its engine: formulas in, panels of values out.

`parse` reads a formula, types it, proves that it never sees the future and brings it to its canonical form; `Engine`
computes it. What computes (numpy, numba) is imported when it is first used, so that reading formulas stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names
from .canonical.bucket import bucket_windows
from .describe.explain import explain
from .describe.render import render
from .errors import FactorError, PanelLacksField, ParseError
from .language.expression import Expression
from .language.node import Node, replace_node, walk
from .language.parse import express, parse
from .language.signature import Operator
from .operators import OPERATORS

if TYPE_CHECKING:
    from .decoding import decoding_grammar
    from .dialects import translate
    from .engine.engine import Engine
    from .engine.ranks import RowOrder, order_rows, rank_rows, row_rank_correlation
    from .engine.warmup import warm_up
    from .language.source import MarketSettings
    from .space.planted import PlantSettings, draw_plants, planted_market
    from .space.sampling import sample

LAZY_FACTOR_NAMES = {
    "Engine": "engine.engine",
    "MarketSettings": "language.source",
    "PlantSettings": "space.planted",
    "RowOrder": "engine.ranks",
    "decoding_grammar": "decoding",
    "draw_plants": "space.planted",
    "order_rows": "engine.ranks",
    "planted_market": "space.planted",
    "rank_rows": "engine.ranks",
    "row_rank_correlation": "engine.ranks",
    "sample": "space.sampling",
    "translate": "dialects",
    "warm_up": "engine.warmup",
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
    "bucket_windows",
    "decoding_grammar",
    "draw_plants",
    "explain",
    "express",
    "order_rows",
    "parse",
    "planted_market",
    "rank_rows",
    "render",
    "replace_node",
    "row_rank_correlation",
    "sample",
    "translate",
    "walk",
    "warm_up",
]

__getattr__ = lazy_names(__name__, LAZY_FACTOR_NAMES)
