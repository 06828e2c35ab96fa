"""A plain part of the language: the operators, windows and fields that fresh formulas are drawn from."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from .fields import FIELDS
from .node import Node
from .sampling import Grammar, sample_tree

__all__ = ["CORE", "PAIRS", "RAW", "drawn_from", "sample_plain"]

CORE = (
    "decay_linear", "delay", "delta", "ema", "ts_argmax", "ts_argmin", "ts_kurt", "ts_mad", "ts_max", "ts_mean", "ts_median",
    "ts_min", "ts_rank", "ts_returns", "ts_rsquare", "ts_skew", "ts_slope", "ts_std", "ts_sum", "ts_zscore",
)  # fmt: skip
"""Operators of one series and one window that stand for each other: its level, spread, shape, path and change."""
PAIRS = ("ts_corr", "ts_cov", "ts_beta")
"""Operators of two series and one window."""
FIELD_STEPS = ("abs", "add", "div", "log", "max", "min", "mul", "rank", "sub", "zscore")
"""What is done to fields and to what looks back, day by day."""
RAW = ("amount", "close", "high", "low", "open", "returns", "volume", "vwap")
"""Of the fields that the language knows those that fresh formulas are drawn from."""
WINDOWS = (3, 4, 5, 6, 8, 10, 12, 15, 18, 21, 25, 30, 35, 40, 45, 50, 55, 60)
SIZES = (3, 4, 5, 6, 7, 8)
"""Nodes that a formula may have; one size is drawn, then a formula no larger."""


def drawn_from(fields: Sequence[str]) -> tuple[str, ...]:
    """Return those of the fields that fresh formulas are drawn from: the market's own beside `RAW`; all, where it has none."""
    return tuple(name for name in fields if name in RAW or name not in FIELDS) or tuple(fields)


def sample_plain(rng: np.random.Generator, fields: Sequence[str], named: Collection[str] = ()) -> Node | None:
    """Draw a tree of the plain part of the language; None where none was found.

    Parameters
    ----------
    rng : numpy Generator
        The only source of chance.
    fields : sequence of str
        Columns that may be read, one at least.
    named : collection of str
        Operators over time to keep to; where none of them is one, all are used.
    """
    looks_back = tuple(name for name in (*CORE, *PAIRS) if name in named) or (*CORE, *PAIRS)
    grammar = Grammar(tuple(fields), (), WINDOWS, (*looks_back, *FIELD_STEPS))
    return sample_tree(rng, max_size=int(rng.choice(SIZES)), grammar=grammar)
