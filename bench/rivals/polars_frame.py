"""polars: one long frame, a column for each distinct subtree, computed layer by layer so that groups are found once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from .wire import Array, Tree, key_of, load, operators, serve

pl: Any = import_module("polars")

Expr = Any


def _missing_as_null(x: Expr) -> Expr:
    """Turn what a division or a function left undefined into a missing value."""
    return pl.when(x.is_finite()).then(x)


def _weighted(x: Expr, weights: Sequence[float]) -> Expr:
    """Return the weighted sum of the window, the last weight for today; its own weights refuse missing values."""
    return reduce(lambda a, b: a + b, (x.shift(lag) * weight for lag, weight in enumerate(reversed(weights))))


def _slope(x: Expr, w: int) -> Expr:
    days = np.arange(w) - (w - 1) / 2
    return _weighted(x, list(days / (days**2).sum()))


def _residual(x: Expr, w: int) -> Expr:
    return x - x.rolling_mean(w) - _slope(x, w) * ((w - 1) / 2)


def _rsquare(x: Expr, w: int) -> Expr:
    squares = (w**3 - w) / 12
    return _slope(x, w) ** 2 * squares / (x.rolling_var(w) * (w - 1))


def _skew(x: Expr, w: int) -> Expr:
    return x.rolling_skew(w, bias=False, min_samples=w)


def _kurt(x: Expr, w: int) -> Expr:
    return x.rolling_kurtosis(w, fisher=True, bias=False, min_samples=w)


def _product(x: Expr, w: int) -> Expr:
    return reduce(lambda a, b: a * b, (x.shift(lag) for lag in range(w)))


CELL: dict[str, Callable[..., Expr]] = {
    "add": lambda *args: reduce(lambda a, b: a + b, args),
    "sub": lambda x, y: x - y,
    "mul": lambda *args: reduce(lambda a, b: a * b, args),
    "div": lambda x, y: _missing_as_null(x / y),
    "neg": lambda x: -x,
    "abs": lambda x: x.abs(),
    "sign": lambda x: x.sign(),
    "log": lambda x: _missing_as_null(x.log()),
    "sqrt": lambda x: _missing_as_null(x.sqrt()),
    "signed_power": lambda x, y: x.sign() * x.abs() ** y,
    "max": lambda x, y: pl.when(x.is_not_null() & y.is_not_null()).then(pl.max_horizontal(x, y)),
    "min": lambda x, y: pl.when(x.is_not_null() & y.is_not_null()).then(pl.min_horizontal(x, y)),
    "clip": lambda x, low, high: x.clip(low, high),
    "lt": lambda x, y: (x < y).cast(pl.Float32),
    "gt": lambda x, y: (x > y).cast(pl.Float32),
    "where": lambda c, x, y: pl.when(c == 1).then(x).when(c == 0).then(y),
}
TIME: dict[str, Callable[..., Expr]] = {
    "delay": lambda x, window: x.shift(window),
    "delta": lambda x, window: x - x.shift(window),
    "ts_sum": lambda x, window: x.rolling_sum(window),
    "ts_mean": lambda x, window: x.rolling_mean(window),
    "ts_std": lambda x, window: x.rolling_std(window),
    "ts_var": lambda x, window: x.rolling_var(window),
    "ts_skew": lambda x, window: _skew(x, window),
    "ts_kurt": lambda x, window: _kurt(x, window),
    "ts_min": lambda x, window: x.rolling_min(window),
    "ts_max": lambda x, window: x.rolling_max(window),
    "ts_quantile": lambda x, window, q: x.rolling_quantile(q, "linear", window),
    "ts_rank": lambda x, window: x.rolling_rank(window, "average") / window,
    "ts_zscore": lambda x, window: (x - x.rolling_mean(window)) / x.rolling_std(window),
    "ts_product": lambda x, window: _product(x, window),
    "ts_corr": lambda x, y, window: _missing_as_null(pl.rolling_corr(x, y, window_size=window, min_samples=window)),
    "ts_cov": lambda x, y, window: pl.rolling_cov(x, y, window_size=window, min_samples=window),
    "ts_slope": lambda x, window: _slope(x, window),
    "ts_residual": lambda x, window: _residual(x, window),
    "ts_rsquare": lambda x, window: _rsquare(x, window),
    "decay_linear": lambda x, window: _weighted(
        x, [2 * day / (window * window + window) for day in range(1, window + 1)]
    ),
    "ts_count": lambda x, window: x.rolling_sum(window),
}
DAY: dict[str, Callable[..., Expr]] = {
    "rank": lambda x: x.rank("average") / x.count(),
    "scale": lambda x: x / x.abs().sum(),
    "zscore": lambda x: (x - x.mean()) / x.std(),
    "demean": lambda x: x - x.mean(),
}


class Polars:
    """Formulas over a long frame sorted by name and day."""

    def __init__(self, data: Path, settings: dict[str, Any]) -> None:
        columns = load(data)
        self.days, self.names = columns["close"].shape
        columns["sector"] = np.broadcast_to(columns["sector"], (self.days, self.names))
        long = {name: np.ascontiguousarray(values.T).ravel() for name, values in columns.items()}
        frame = pl.DataFrame({name: pl.Series(values, nan_to_null=True) for name, values in long.items()})
        place = np.arange(self.days * self.names, dtype=np.int32)
        self.frame = frame.with_columns(
            name=pl.Series(place // self.days), day=pl.Series(place % self.days)
        ).with_columns(pl.col("name").set_sorted())
        self.layers: dict[str, list[list[Expr]]] = {}
        self.outputs: dict[str, list[str]] = {}

    def unable(self, tree: Tree) -> str:
        """Name the operators that are not written."""
        lacks = sorted(operators(tree) - CELL.keys() - TIME.keys() - DAY.keys() - {"group_demean"})
        return f"has no {', '.join(lacks)}" if lacks else ""

    def prepare(self, key: str, trees: Sequence[Tree]) -> Any:
        """Lay out the distinct subtrees by how many layers must come before them."""
        layers: dict[int, dict[str, Expr]] = {}
        for tree in trees:
            _place(tree, layers)
        self.layers[key] = [
            [each.cast(pl.Float32).alias(name) for name, each in layers[level].items()] for level in sorted(layers)
        ]
        self.outputs[key] = [key_of(tree) for tree in trees]

    def run(self, key: str) -> list[Array]:
        """Compute them; values are views of the frame's columns where nothing is missing."""
        frame = self.frame
        for layer in self.layers[key]:
            frame = frame.with_columns(layer)
        return [frame[name].to_numpy().reshape(self.names, self.days).T for name in self.outputs[key]]


def _place(tree: Tree, layers: dict[int, dict[str, Expr]]) -> int:
    """Add a tree's subtrees to their layers and return its own; a column is layer 0, elementwise steps ride along."""
    kind = tree[0]
    if kind in ("field", "number", "group"):
        return 0
    level = 1 + max(_place(child, layers) for child in tree[2:])
    layers.setdefault(level, {}).setdefault(key_of(tree), _expression(tree))
    return level


def _expression(tree: Tree) -> Expr:
    kind, numbers = tree[0], {name: int(v) if v == int(v) else v for name, v in tree[1].items()}
    args = [_column(child) for child in tree[2:]]
    if kind in CELL:
        return CELL[kind](*args, **numbers)
    if kind in TIME:
        return TIME[kind](*args, **numbers).over("name")
    if kind == "group_demean":
        return args[0] - args[0].mean().over("day", tree[3][1])
    return DAY[kind](*args).over("day")


def _column(tree: Tree) -> Expr:
    if tree[0] == "number":
        return pl.lit(tree[1], pl.Float32)
    return pl.col(tree[1] if tree[0] in ("field", "group") else key_of(tree))


if __name__ == "__main__":
    serve(Polars)
