"""A plain part of the language: the operators, windows and fields that fresh formulas are drawn from."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

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
"""Nodes that a formula of any shape may have; one size is drawn, then a formula no larger."""
STATED = 0.6
"""Share of formulas that state one thing: a statistic over time of one series or of two, each a column, a column set
against another or against the other names, or such a statistic itself. The others may have any shape.
"""


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
    if rng.random() < STATED:
        return _Statement(rng, tuple(fields), looks_back).drawn()
    grammar = Grammar(tuple(fields), (), WINDOWS, (*looks_back, *FIELD_STEPS))
    return sample_tree(rng, max_size=int(rng.choice(SIZES)), grammar=grammar)


@dataclass(frozen=True)
class _Statement:
    """Draws statistics over time of one series or of two."""

    rng: np.random.Generator
    fields: tuple[str, ...]
    looks_back: tuple[str, ...]

    def drawn(self) -> Node:
        """Return one statement."""
        singles, pairs = self._named(CORE), self._named(PAIRS)
        if not pairs or (singles and self.rng.random() < 0.5):
            return self._over_time(singles, (self._series(singles),))
        if singles and self.rng.random() < 0.2:
            return self._over_time(singles, (self._over_time(pairs, (self._field(), self._field())),))
        return self._over_time(pairs, (self._series(singles), self._series(singles)))

    def _series(self, singles: Sequence[str]) -> Node:
        """Return what a statistic is taken of."""
        kind = self.rng.random()
        if kind < 0.4 and singles:
            return self._over_time(singles, (self._field(),))
        if kind < 0.5 and singles:
            return self._over_time(singles, (Node("rank", (self._field(),)),))
        if kind < 0.7:
            return self._field()
        if kind < 0.85:
            return Node(self._one(("add", "div", "mul", "sub")), (self._field(), self._field()))
        return Node(self._one(("abs", "log", "rank", "zscore")), (self._field(),))

    def _over_time(self, operators: Sequence[str], args: tuple[Node, ...]) -> Node:
        return Node(self._one(operators), args, (("window", float(self.rng.choice(WINDOWS))),))

    def _field(self) -> Node:
        return Node("field", name=self._one(self.fields))

    def _named(self, known: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in known if name in self.looks_back)

    def _one(self, names: Sequence[str]) -> str:
        return names[int(self.rng.integers(len(names)))]
