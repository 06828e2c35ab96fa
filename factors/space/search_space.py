"""Draw formulas from a plain part of the language: some operators, windows and fields."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np

from ..language.node import STANDARD_FIELDS, Node
from .sampling import Grammar, sample_tree

OPERATOR_KINDS = (
    ("decay_linear", "ema", "ts_mean", "ts_median", "ts_sum"), ("ts_mad", "ts_std"), ("ts_max", "ts_min"),
    ("delta", "ts_returns", "ts_slope"), ("ts_rank", "ts_zscore"), ("ts_argmax",), ("ts_argmin",), ("ts_kurt",),
    ("ts_skew",), ("ts_rsquare",), ("delay",),
)  # fmt: skip  # a table
"""Operators of one series and one window, by kind: level, spread, extreme, change, place, ..."""
CORE = tuple(sorted(chain(*OPERATOR_KINDS)))
"""All operators of `OPERATOR_KINDS`: level, spread, shape, path and change of one series."""
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
"""Sizes of formulas of any shape, in nodes: one is drawn, then a formula of at most that size."""
STATEMENT_SHARE = 0.6
"""Share of formulas that are statements: a statistic over time of one or two series. The others may have any shape.

A series is a column, a column combined with another or compared across names, or such a statistic itself. The kind of
an operator or column is drawn before the operator or column itself, so that the many ways to average a price do not
crowd out rare kinds.
"""


def select_fields(fields: Sequence[str]) -> tuple[str, ...]:
    """Return the fields that fresh formulas are drawn from.

    These are `RAW_FIELDS` and the market's non-standard fields; all fields if there is none of them.
    """
    return tuple(name for name in fields if name in RAW_FIELDS or name not in STANDARD_FIELDS) or tuple(fields)


def sample_plain(rng: np.random.Generator, fields: Sequence[str], named: Collection[str] = ()) -> Node | None:
    """Draw a tree of the plain part of the language; None if none was found.

    Parameters
    ----------
    rng : numpy Generator
        The only source of randomness.
    fields : sequence of str
        Columns that may be read, at least one.
    named : collection of str
        Operators over time to draw from; all of them if none of the names is one.
    """
    looks_back = tuple(name for name in (*CORE, *PAIR_OPERATORS) if name in named) or (*CORE, *PAIR_OPERATORS)
    if rng.random() < STATEMENT_SHARE:
        return _StatementSampler(rng, tuple(fields), looks_back).draw()
    grammar = Grammar(tuple(fields), (), PLAIN_WINDOWS, (*looks_back, *FIELD_STEPS))
    return sample_tree(rng, max_size=int(rng.choice(PLAIN_SIZES)), grammar=grammar)


@dataclass(frozen=True)
class _StatementSampler:
    """Draws statistics over time of one or two series."""

    rng: np.random.Generator
    fields: tuple[str, ...]
    looks_back: tuple[str, ...]

    def draw(self) -> Node:
        """Return one statement."""
        singles, pairs = self._select_operators(CORE), self._select_operators(PAIR_OPERATORS)
        if not pairs or (singles and self.rng.random() < 0.5):
            return self._draw_over_time(singles, (self._draw_series(singles),))
        if singles and self.rng.random() < 0.2:
            return self._draw_over_time(
                singles, (self._draw_over_time(pairs, (self._draw_field(), self._draw_field())),)
            )
        return self._draw_over_time(pairs, (self._draw_series(singles), self._draw_series(singles)))

    def _draw_series(self, singles: Sequence[str]) -> Node:
        """Draw the series of a statistic."""
        kind = self.rng.random()
        if kind < 0.4 and singles:
            return self._draw_over_time(singles, (self._draw_field(),))
        if kind < 0.5 and singles:
            return self._draw_over_time(singles, (Node("rank", (self._draw_field(),)),))
        if kind < 0.7:
            return self._draw_field()
        if kind < 0.85:
            return Node(self._pick(("add", "div", "mul", "sub")), (self._draw_field(), self._draw_field()))
        return Node(self._pick(("abs", "log", "rank", "zscore")), (self._draw_field(),))

    def _draw_over_time(self, operators: Sequence[str], args: tuple[Node, ...]) -> Node:
        window = float(PLAIN_WINDOWS[int(self.rng.integers(len(PLAIN_WINDOWS)))])
        return Node(self._pick_by_kind(operators, OPERATOR_KINDS), args, (("window", window),))

    def _draw_field(self) -> Node:
        return Node("field", name=self._pick_by_kind(self.fields, (DRAWN_PRICES, ACTIVITY)))

    def _pick_by_kind(self, names: Sequence[str], kinds: Sequence[tuple[str, ...]]) -> str:
        """Draw a kind, then one of its names; a name without a kind is a kind of its own."""
        choices = _group_by_kind(tuple(names), tuple(kinds))
        return self._pick(choices[int(self.rng.integers(len(choices)))])

    def _select_operators(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in names if name in self.looks_back)

    def _pick(self, names: Sequence[str]) -> str:
        return names[int(self.rng.integers(len(names)))]


@lru_cache(maxsize=64)
def _group_by_kind(names: tuple[str, ...], kinds: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    """Return the names of each kind that has some, then each name without a kind alone."""
    listed = (tuple(name for name in kind if name in names) for kind in kinds)
    alone = ((name,) for name in names if not any(name in kind for kind in kinds))
    return tuple(kind for kind in (*listed, *alone) if kind)
