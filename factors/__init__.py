"""The factor language and its engine: formulas in, panels of values out.

`parse` reads a formula, types it, proves that it never reads the future and brings it to its canonical form; `Engine`
computes it. Modules that compute (numpy, numba) are imported at first use, so that reading formulas stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .decoding import decoding_grammar as decoding_grammar
    from .describe.explain import explain as explain
    from .describe.render import render as render
    from .dialects import translate as translate
    from .engine.engine import Engine as Engine
    from .engine.ranks import (
        RowOrder as RowOrder,
        order_rows as order_rows,
        rank_rows as rank_rows,
        row_rank_correlation as row_rank_correlation,
    )
    from .engine.warmup import warm_up as warm_up
    from .errors import FactorError as FactorError, PanelLacksField as PanelLacksField, ParseError as ParseError
    from .language.canonical import bucket_windows as bucket_windows
    from .language.expression import Expression as Expression
    from .language.node import Node as Node, replace_node as replace_node, walk as walk
    from .language.operator import Operator as Operator
    from .language.parse import express as express, normalise_unchecked as normalise_unchecked, parse as parse
    from .operators import OPERATORS as OPERATORS
    from .space.market_settings import MarketSettings as MarketSettings
    from .space.planted import (
        PlantSettings as PlantSettings,
        build_planted_market as build_planted_market,
        draw_plants as draw_plants,
    )
    from .space.sampling import sample as sample
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "decoding": "decoding_grammar",
            "describe.explain": "explain",
            "describe.render": "render",
            "dialects": "translate",
            "engine.engine": "Engine",
            "engine.ranks": "RowOrder order_rows rank_rows row_rank_correlation",
            "engine.warmup": "warm_up",
            "errors": "FactorError PanelLacksField ParseError",
            "language.canonical": "bucket_windows",
            "language.expression": "Expression",
            "language.node": "Node replace_node walk",
            "language.operator": "Operator",
            "language.parse": "express normalise_unchecked parse",
            "operators": "OPERATORS",
            "space.market_settings": "MarketSettings",
            "space.planted": "PlantSettings build_planted_market draw_plants",
            "space.sampling": "sample",
        },
    )
