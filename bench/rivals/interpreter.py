"""Walk a tree with a table of functions on whole arrays; comparisons and choices keep missing values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from .lags import shift
from .wire import Array, Tree, key_of, operators

Table = Mapping[str, Callable[..., Array]]


def _missing(*args: Array | float) -> Any:
    return reduce(np.logical_or, (np.isnan(arg) for arg in args))


def _truth(holds: Any, *args: Array) -> Array:
    dtype = next(arg.dtype for arg in args if isinstance(arg, np.ndarray))
    return np.where(_missing(*args), dtype.type(np.nan), np.asarray(holds, dtype))


def _where(condition: Array, x: Any, y: Any) -> Array:
    chosen = np.where(condition != 0, x, y).astype(condition.dtype, copy=False)
    return np.where(np.isnan(condition), condition.dtype.type(np.nan), chosen)


PLAIN: Table = {
    "add": lambda *args: reduce(np.add, args),
    "sub": np.subtract,
    "mul": lambda *args: reduce(np.multiply, args),
    "div": np.divide,
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "log": np.log,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "power": np.power,
    "signed_power": lambda x, y: np.sign(x) * np.abs(x) ** y,
    "max": lambda *args: reduce(np.maximum, args),
    "min": lambda *args: reduce(np.minimum, args),
    "clip": lambda x, low, high: np.clip(x, low, high),
    "lt": lambda x, y: _truth(x < y, x, y),
    "le": lambda x, y: _truth(x <= y, x, y),
    "gt": lambda x, y: _truth(x > y, x, y),
    "ge": lambda x, y: _truth(x >= y, x, y),
    "eq": lambda x, y: _truth(x == y, x, y),
    "and": lambda x, y: _truth((x != 0) & (y != 0), x, y),
    "or": lambda x, y: _truth((x != 0) | (y != 0), x, y),
    "not": lambda x: 1 - x,
    "where": _where,
    "delay": shift,
    "delta": lambda x, window: x - shift(x, window),
    "ts_returns": lambda x, window: x / shift(x, window) - 1,
    "scale": lambda x: x / np.nansum(np.abs(x), axis=1, keepdims=True),
    "zscore": lambda x: (x - np.nanmean(x, 1, keepdims=True)) / np.nanstd(x, 1, ddof=1, keepdims=True),
    "demean": lambda x: x - np.nanmean(x, 1, keepdims=True),
}


def group_demean(x: Array, codes: Array) -> Array:
    """Return x less the mean of its group."""
    out = np.empty_like(x)
    for code in np.unique(codes):
        names = codes[0] == code
        out[:, names] = x[:, names] - np.nanmean(x[:, names], 1, keepdims=True)
    return out


class Interpreter:
    """Computes trees over columns; equal subtrees once a batch, if they are shared.

    Parameters
    ----------
    columns : mapping of str to array
        Fields ``[T, N]`` and groups ``[1, N]``.
    table : mapping of str to function
        The operators that `PLAIN` has not.
    shared : bool
        Whether subtrees are kept until the batch is done.
    """

    def __init__(self, columns: Mapping[str, Array], table: Table, *, shared: bool) -> None:
        self.columns = columns
        self.table = {**PLAIN, "group_demean": group_demean, **table}
        self.shared = shared
        self.kept: dict[str, Array] = {}
        self.ready: dict[str, list[Tree]] = {}

    def unable(self, tree: Tree) -> str:
        """Name the operators that the table lacks."""
        lacks = sorted(operators(tree) - self.table.keys())
        return f"has no {', '.join(lacks)}" if lacks else ""

    def prepare(self, key: str, trees: Sequence[Tree]) -> Any:
        """Take the trees."""
        self.ready[key] = list(trees)

    def run(self, key: str) -> list[Array]:
        """Compute them."""
        with np.errstate(all="ignore"):
            results = [self.value(tree) for tree in self.ready[key]]
        self.kept.clear()
        return results

    def value(self, tree: Tree) -> Any:
        """Compute one tree."""
        if tree[0] == "number":
            return tree[1]
        if tree[0] in ("field", "group"):
            return self.columns[tree[1]]
        name = key_of(tree) if self.shared else ""
        if name and name in self.kept:
            return self.kept[name]
        numbers: dict[str, Any] = {
            each: int(value) if value == int(value) else value for each, value in tree[1].items()
        }
        result = self.table[tree[0]](*(self.value(arg) for arg in tree[2:]), **numbers)
        if name:
            self.kept[name] = result
        return result
