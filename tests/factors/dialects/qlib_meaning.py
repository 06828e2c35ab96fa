"""What a Qlib formula means in Qlib, slow and obvious: pandas on Python's own syntax tree, which is how Qlib reads it.

After pyqlib 0.9.7 (`qlib/data/ops.py`), and held against it once: on the 158 formulas of Alpha158 and 76 others, gaps
and infinities agreed in every cell, and values up to the rounding of pandas' running sums, which is not kept here.
Nothing here knows the rewrite rules. A frame has a row a day and a column a name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Frame = pd.DataFrame
FLAT = 2e-5
"""Standard deviations that Qlib takes for zero, whatever the unit."""


def fit(window: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return slope, today's residual and R squared of the line through the values that are there, against time."""
    there = ~np.isnan(window)
    days, y = np.arange(len(window), dtype=float)[there], window[there]
    if len(y) < 2:
        return np.nan, np.nan, np.nan
    a, b = days - days.mean(), y - y.mean()
    slope = (a * b).sum() / (a * a).sum()
    spread = (b * b).sum()
    share = np.nan if spread == 0 else (a * b).sum() ** 2 / (a * a).sum() / spread
    residual = window[-1] - y.mean() - slope * (len(window) - 1 - days.mean())
    return float(slope), float(residual), float(share)


def line(part: int) -> Callable[[Frame, int], Frame]:
    def found(x: Frame, n: int) -> Frame:
        return x.rolling(n, min_periods=1).apply(lambda window: fit(window)[part], raw=True)

    return found


def rsquare(x: Frame, n: int) -> Frame:
    return line(2)(x, n).mask(is_flat(x, n))


def is_flat(x: Frame, n: int) -> Frame:
    return std(x, n) <= FLAT


def pairs(rule: Callable[[NDArray[np.float64], NDArray[np.float64]], float]) -> Callable[[Frame, Frame, int], Frame]:
    """Apply a rule to the rows of each window in which both are there."""

    def found(x: Frame, y: Frame, n: int) -> Frame:
        a, b = number(x).to_numpy(), number(y).to_numpy()
        out = np.full(a.shape, np.nan)
        for day, name in np.ndindex(*a.shape):
            one, other = (side[max(0, day - n + 1) : day + 1, name] for side in (a, b))
            both = np.isfinite(one) & np.isfinite(other)
            out[day, name] = rule(one[both], other[both]) if both.sum() > 1 else np.nan
        return pd.DataFrame(out)

    return found


def covariance(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    return float(((x - x.mean()) * (y - y.mean())).sum() / (len(x) - 1))


def corr(x: Frame, y: Frame, n: int) -> Frame:
    found = pairs(lambda a, b: covariance(a, b) / (a.std(ddof=1) * b.std(ddof=1)))(x, y, n)
    return found.mask(is_flat(x, n) | is_flat(y, n))


def place(best: Callable[[Any], int]) -> Callable[[Frame, int], Frame]:
    """Return the 1-based place of the best value in the window; numpy takes a missing value for the best."""
    return lambda x, n: x.rolling(n, min_periods=1).apply(lambda window: float(best(window) + 1), raw=True)


def weighted(x: Frame, n: int) -> Frame:
    """Take the mean of normalised weights times values: a weighted mean over the number of its terms."""

    def found(window: NDArray[np.float64]) -> float:
        weights = np.arange(1.0, len(window) + 1)
        return float(np.nanmean(weights / weights.sum() * window))

    return x.rolling(n, min_periods=1).apply(found, raw=True)


def deviation(x: Frame, n: int) -> Frame:
    return x.rolling(n, min_periods=1).apply(lambda window: np.nanmean(np.abs(window - np.nanmean(window))), raw=True)


def each(rule: Callable[[NDArray[np.float64]], Any]) -> Callable[[Frame, int], Frame]:
    """Take each window by itself: pandas' running sums leave the rounding of old values behind."""

    def found(x: Frame, n: int) -> Frame:
        return number(x).rolling(n, min_periods=1).apply(lambda window: rule(window[~np.isnan(window)]), raw=True)

    return found


def std(x: Frame, n: int) -> Frame:
    return each(lambda window: window.std(ddof=1) if len(window) > 1 else np.nan)(x, n)


def rolled(method: str) -> Callable[[Frame, int], Frame]:
    return lambda x, n: getattr(number(x).rolling(n, min_periods=1), method)()


def choose(condition: Frame, x: Any, y: Any) -> Frame:
    return pd.DataFrame(np.where(condition.to_numpy(), values(x), values(y)), condition.index, condition.columns)


def values(x: Any) -> Any:
    return x.to_numpy() if isinstance(x, pd.DataFrame) else x


def number(x: Frame) -> Frame:
    """Return truth values as 0 and 1, as pandas rolls over them."""
    return x.astype(float)


def rank(x: Frame, n: int | None = None) -> Frame:
    """Rank over the window; with one argument, an extension that others have, over the names."""
    return across(x) if n is None else x.rolling(n, min_periods=1).rank(pct=True)


def across(x: Frame) -> Frame:
    return x.rank(axis=1, pct=True)


def centred(x: Frame) -> Frame:
    return x.sub(x.mean(axis=1), axis=0)


MEANINGS: Mapping[str, Callable[..., Any]] = {
    **{name: rolled(name.lower()) for name in ("Skew", "Kurt", "Max", "Min", "Count")},
    "Mean": each(np.mean),
    "Sum": each(np.sum),
    "Std": std,
    "Var": lambda x, n: std(x, n) ** 2,
    **{name: getattr(np, name.lower()) for name in ("Abs", "Sign", "Log", "Power")},
    "Ref": lambda x, n: x.shift(n),
    "Delta": lambda x, n: x - x.shift(n),
    "Med": rolled("median"),
    "Mad": deviation,
    "Quantile": lambda x, n, q: x.rolling(n, min_periods=1).quantile(q),
    "Rank": rank,
    "IdxMax": place(np.argmax),
    "IdxMin": place(np.argmin),
    "Slope": line(0),
    "Resi": line(1),
    "Rsquare": rsquare,
    "WMA": weighted,
    "EMA": lambda x, n: x.ewm(**({"alpha": n} if n < 1 else {"span": n}), min_periods=1).mean(),
    "Corr": corr,
    "Cov": pairs(covariance),
    "Greater": np.maximum,
    "Less": np.minimum,
    "If": choose,
    "Not": lambda x: ~x,
    **dict.fromkeys(("CSRank", "CsRank"), across),
    "CSDemean": centred,
    "CSMean": lambda x: x - centred(x),
    "CSZScore": lambda x: centred(x).div(x.std(axis=1), axis=0),
    "CSScale": lambda x: x.div(x.abs().sum(axis=1), axis=0),
    "Add": lambda x, y: x + y,
    "Sub": lambda x, y: x - y,
    "Mul": lambda x, y: x * y,
    "Div": lambda x, y: x / y,
    "Gt": lambda x, y: x > y,
    "Ge": lambda x, y: x >= y,
    "Lt": lambda x, y: x < y,
    "Le": lambda x, y: x <= y,
    "Eq": lambda x, y: x == y,
    "Ne": lambda x, y: x != y,
    "And": lambda x, y: x & y,
    "Or": lambda x, y: x | y,
}
SIGNS: Mapping[type[ast.AST], str] = {
    ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div", ast.Pow: "Power", ast.BitAnd: "And",
    ast.BitOr: "Or", ast.Gt: "Gt", ast.GtE: "Ge", ast.Lt: "Lt", ast.LtE: "Le", ast.Eq: "Eq", ast.NotEq: "Ne",
}  # fmt: skip  # a table


class Meaning:
    """Evaluates Qlib formulas over columns; parts that occur again are computed once."""

    def __init__(self, columns: Mapping[str, NDArray[np.float64]]) -> None:
        self._columns = {name: pd.DataFrame(each) for name, each in columns.items()}
        self._known: dict[str, Any] = {}

    def __call__(self, text: str) -> NDArray[np.float64]:
        """Return the values ``[T, N]``; infinities are Qlib's own."""
        tree = ast.parse(re.sub(r"\$(\w+)", r"\1", text), mode="eval").body
        with np.errstate(all="ignore"):
            found = self._found(tree)
        return np.asarray(found, dtype=float)

    def _found(self, tree: ast.expr) -> Any:
        key = ast.dump(tree)
        if key not in self._known:
            self._known[key] = self._computed(tree)
        return self._known[key]

    def _computed(self, tree: ast.expr) -> Any:
        match tree:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._columns[name]
            case ast.Call(func=ast.Name(id="Feature"), args=[ast.Constant(value=str(name))]):
                return self._columns[name]
            case ast.Call(func=ast.Name(id=name), args=args):
                return MEANINGS[name](*map(self._found, args))
            case ast.BinOp(left=x, op=sign, right=y) | ast.Compare(left=x, ops=[sign], comparators=[y]):
                return MEANINGS[SIGNS[type(sign)]](self._found(x), self._found(y))
            case ast.UnaryOp(op=ast.USub(), operand=x):
                return -self._found(x)
        raise AssertionError(ast.dump(tree))
