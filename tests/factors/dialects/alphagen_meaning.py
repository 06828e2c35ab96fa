"""What an AlphaGen formula means in AlphaGen, slow and obvious: numpy on Python's own syntax tree.

After commit 1c187544 of RL-MLDM/alphagen (`alphagen/data/expression.py`); names with `Ts`, `SLog1p` and `Inv` are those
of its descendant AlphaForge. Ranks, medians, extremes and weights were held against torch once. Nothing here knows the
rewrite rules. Rows before the first are missing, where AlphaGen needs rows to be there; a missing value in a window is
missing in sums, means and extremes, as in torch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
FLAT = 1e-6
"""Sums of squared deviations that AlphaGen takes for zero, whatever the unit."""


def windows(x: Values, days: int) -> Values:
    """Return ``[T, N, days]``, today last."""
    before = np.full((days - 1, x.shape[1]), np.nan)
    return np.asarray(np.lib.stride_tricks.sliding_window_view(np.vstack([before, x]), days, axis=0))


def earlier(x: Values, days: int) -> Values:
    return np.vstack([np.full((days, x.shape[1]), np.nan), x])[: len(x)]


def centred(w: Values) -> Values:
    return np.asarray(w - w.mean(-1, keepdims=True))


def moment(w: Values, power: int) -> Values:
    return np.asarray(np.mean(centred(w) ** power, axis=-1))


def over(rule: Callable[[Values], Values]) -> Callable[[Values, int], Values]:
    return lambda x, days: rule(windows(x, days))


def lower_median(w: Values) -> Values:
    middle = np.sort(w, axis=-1)[..., (w.shape[-1] - 1) // 2]
    return np.where(np.isnan(w).any(-1), np.nan, middle)


def counted_above(w: Values) -> Values:
    """Rank today's value from the top: 1 / n for the highest."""
    last = w[..., -1:]
    left, right = (last < w).sum(-1), (last <= w).sum(-1)
    return np.asarray((right + left + (right > left)) / (2 * w.shape[-1]))


def weighted(w: Values, weights: Values) -> Values:
    return np.asarray(np.sum(w * (weights / weights.sum()), axis=-1))


def faded(w: Values) -> Values:
    n = w.shape[-1]
    return weighted(w, (1 - 2 / (1 + n)) ** np.arange(n, 0.0, -1))


def together(x: Values, y: Values, days: int) -> tuple[Values, Values, Values]:
    a, b = centred(windows(x, days)), centred(windows(y, days))
    return (a * b).sum(-1), (a * a).sum(-1), (b * b).sum(-1)


def corr(x: Values, y: Values, days: int) -> Values:
    both, xx, yy = together(x, y, days)
    return both / np.where((xx < FLAT) | (yy < FLAT), 1.0, np.sqrt(xx * yy))


def rank(x: Values, days: int | None = None) -> Values:
    """Rank over the window, from the top; with one argument, as AlphaForge has it, over the names."""
    return over(counted_above)(x, days) if days else across(x)


def across(x: Values) -> Values:
    places = np.argsort(np.argsort(x, axis=1, kind="stable"), axis=1, kind="stable")
    return np.where(np.isnan(x), np.nan, places / (~np.isnan(x)).sum(1, keepdims=True))


WINDOWED: Mapping[str, Callable[[Values], Values]] = {
    "Mean": lambda w: w.mean(-1),
    "Sum": lambda w: w.sum(-1),
    "Std": lambda w: w.std(-1, ddof=1),
    "Var": lambda w: w.var(-1, ddof=1),
    "Skew": lambda w: moment(w, 3) / moment(w, 2) ** 1.5,
    "Kurt": lambda w: moment(w, 4) / w.var(-1, ddof=1) ** 2 - 3,
    "Max": lambda w: w.max(-1),
    "Min": lambda w: w.min(-1),
    "Med": lower_median,
    "Mad": lambda w: np.abs(centred(w)).mean(-1),
    "WMA": lambda w: weighted(w, np.arange(float(w.shape[-1]))),
    "EMA": faded,
    "Ir": lambda w: w.mean(-1) / w.std(-1, ddof=1),
    "MinMaxDiff": lambda w: w.max(-1) - w.min(-1),
    "MaxDiff": lambda w: w[..., -1] - w.max(-1),
    "MinDiff": lambda w: w[..., -1] - w.min(-1),
    "Div": lambda w: w[..., -1] / w.mean(-1),
    "PctChange": lambda w: (w[..., -1] - w[..., 0]) / w[..., 0],
}
ONLY_FORGED = ("Ir", "MinMaxDiff", "MaxDiff", "MinDiff", "Div", "PctChange")
PAIRS: Mapping[str, Callable[[Values, Values, int], Values]] = {
    "Corr": corr,
    "Cov": lambda x, y, days: together(x, y, days)[0] / (days - 1),
}
MEANINGS: Mapping[str, Callable[..., Any]] = {
    **{name: over(rule) for name, rule in WINDOWED.items() if name not in ONLY_FORGED},
    **{f"Ts{name}": over(rule) for name, rule in WINDOWED.items()},
    **PAIRS,
    **{f"Ts{name}": rule for name, rule in PAIRS.items()},
    "Abs": np.abs,
    "Sign": np.sign,
    "Log": np.log,
    "SLog1p": lambda x: np.sign(x) * np.log1p(np.abs(x)),
    "Inv": lambda x: 1 / x,
    "CSRank": across,
    "Rank": rank,
    "TsRank": over(counted_above),
    "Ref": earlier,
    "Delta": lambda x, days: x - earlier(x, days),
    "TsDelta": lambda x, days: x - earlier(x, days),
    "Add": lambda x, y: x + y,
    "Sub": lambda x, y: x - y,
    "Mul": lambda x, y: x * y,
    "Div": lambda x, y: x / y,
    "Pow": lambda x, y: x**y,
    "Greater": np.maximum,
    "Less": np.minimum,
    "GetGreater": np.maximum,
    "GetLess": np.minimum,
    "Constant": lambda value: value,
    "DeltaTime": lambda days: days,
    "Feature": lambda values: values,
}
SIGNS: Mapping[type[ast.AST], str] = {
    ast.Add: "Add",
    ast.Sub: "Sub",
    ast.Mult: "Mul",
    ast.Div: "Div",
    ast.Pow: "Pow",
}


class Meaning:
    """Evaluates AlphaGen formulas over columns."""

    def __init__(self, columns: Mapping[str, Values]) -> None:
        self._columns = columns

    def __call__(self, text: str) -> Values:
        """Return the values ``[T, N]``; infinities are AlphaGen's own."""
        plain = re.sub(r"\b(\d+)d\b", r"\1", text.replace("$", ""))
        with np.errstate(all="ignore"):
            found = self._found(ast.parse(plain, mode="eval").body)
        return np.asarray(found, dtype=float)

    def _found(self, tree: ast.expr) -> Any:
        match tree:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return self._columns[name.lower().rstrip("_")]
            case ast.Call(func=ast.Name(id=name), args=args):
                return MEANINGS[name](*map(self._found, args))
            case ast.BinOp(left=x, op=sign, right=y):
                return MEANINGS[SIGNS[type(sign)]](self._found(x), self._found(y))
            case ast.UnaryOp(op=ast.USub(), operand=x):
                return -self._found(x)
        raise AssertionError(ast.dump(tree))
