"""Draw formulas from a plain part of the language: its operators, windows and fields."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from ..language.node import STANDARD_FIELDS, Node
from .sampling import Grammar, sample_tree

__all__ = ["ACTIVITY", "CORE", "DRAWN_PRICES", "PAIR_OPERATORS", "RAW_FIELDS", "sample_plain", "select_fields"]

OPERATOR_KINDS = (
    ("decay_linear", "ema", "ts_mean", "ts_median", "ts_sum"), ("ts_mad", "ts_std"), ("ts_max", "ts_min"),
    ("delta", "ts_returns", "ts_slope"), ("ts_rank", "ts_zscore"), ("ts_argmax",), ("ts_argmin",), ("ts_kurt",),
    ("ts_skew",), ("ts_rsquare",), ("delay",),
)  # fmt: skip
"""Operators of one series and one window, those together that say much the same: level, spread, extreme, change, place."""
CORE = tuple(sorted(chain(*OPERATOR_KINDS)))
"""Operators of one series and one window that stand for each other: its level, spread, shape, path and change."""
PAIR_OPERATORS = ("ts_corr", "ts_cov", "ts_beta")
"""Operators of two series and one window."""
FIELD_STEPS = ("abs", "add", "div", "log", "max", "min", "mul", "rank", "sub", "zscore")
"""Steps within a day, on fields and on operators over time."""
DRAWN_PRICES = ("close", "open", "high", "low", "vwap")
ACTIVITY = ("volume", "amount")
RAW_FIELDS = ("amount", "close", "high", "low", "open", "returns", "volume", "vwap")
"""The standard fields that fresh formulas are drawn from."""
PLAIN_WINDOWS = (3, 4, 5, 6, 8, 10, 12, 15, 18, 21, 25, 30, 35, 40, 45, 50, 55, 60)
PLAIN_SIZES = (3, 4, 5, 6, 7, 8)
"""Nodes that a formula of any shape may have; one size is drawn, then a formula no larger."""
STATEMENT_SHARE = 0.6
"""Share of formulas that state one thing: a statistic over time of one series or of two, each a column, a column set
against another or against the other names, or such a statistic itself. The others may have any shape. A kind of operator
or of column is drawn before one of it, so that five ways to average five prices are not tried before one of what is rare.
"""


def select_fields(fields: Sequence[str]) -> tuple[str, ...]:
    """Return those of the fields that fresh formulas are drawn from: the market's own beside `RAW_FIELDS`; all, where it has none."""
    return tuple(name for name in fields if name in RAW_FIELDS or name not in STANDARD_FIELDS) or tuple(fields)


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
    looks_back = tuple(name for name in (*CORE, *PAIR_OPERATORS) if name in named) or (*CORE, *PAIR_OPERATORS)
    if rng.random() < STATEMENT_SHARE:
        return _StatementSampler(rng, tuple(fields), looks_back).draw()
    grammar = Grammar(tuple(fields), (), PLAIN_WINDOWS, (*looks_back, *FIELD_STEPS))
    return sample_tree(rng, max_size=int(rng.choice(PLAIN_SIZES)), grammar=grammar)


@dataclass(frozen=True)
class _StatementSampler:
    """Draws statistics over time of one series or of two."""

    rng: np.random.Generator
    fields: tuple[str, ...]
    looks_back: tuple[str, ...]

    def draw(self) -> Node:
        """Return one statement."""
        singles, pairs = self._named(CORE), self._named(PAIR_OPERATORS)
        if not pairs or (singles and self.rng.random() < 0.5):
            return self._draw_over_time(singles, (self._series(singles),))
        if singles and self.rng.random() < 0.2:
            return self._draw_over_time(singles, (self._draw_over_time(pairs, (self._field(), self._field())),))
        return self._draw_over_time(pairs, (self._series(singles), self._series(singles)))

    def _series(self, singles: Sequence[str]) -> Node:
        """Return the series that a statistic is computed on."""
        kind = self.rng.random()
        if kind < 0.4 and singles:
            return self._draw_over_time(singles, (self._field(),))
        if kind < 0.5 and singles:
            return self._draw_over_time(singles, (Node("rank", (self._field(),)),))
        if kind < 0.7:
            return self._field()
        if kind < 0.85:
            return Node(self._one(("add", "div", "mul", "sub")), (self._field(), self._field()))
        return Node(self._one(("abs", "log", "rank", "zscore")), (self._field(),))

    def _draw_over_time(self, operators: Sequence[str], args: tuple[Node, ...]) -> Node:
        window = float(self.rng.choice(PLAIN_WINDOWS))
        return Node(self._pick_by_kind(operators, OPERATOR_KINDS), args, (("window", window),))

    def _field(self) -> Node:
        return Node("field", name=self._pick_by_kind(self.fields, (DRAWN_PRICES, ACTIVITY)))

    def _pick_by_kind(self, names: Sequence[str], kinds: Sequence[Sequence[str]]) -> str:
        """Return one of the names: draw a kind first; a name without a kind is a kind of its own."""
        listed = [[name for name in kind if name in names] for kind in kinds]
        alone = [[name] for name in names if not any(name in kind for kind in kinds)]
        choices = [kind for kind in (*listed, *alone) if kind]
        return self._one(choices[int(self.rng.integers(len(choices)))])

    def _named(self, known: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in known if name in self.looks_back)

    def _one(self, names: Sequence[str]) -> str:
        return names[int(self.rng.integers(len(names)))]
