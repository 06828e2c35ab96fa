"""What a FactorMiner formula means in FactorMiner, slow and obvious: one window of one name at a time.

After what `factorminer/core/expression_tree.py` of minihellboy/factorminer computes at commit 2290d0e2, with the
defaults of `factorminer/core/types.py`. Days are rows and names columns. Nothing here knows the rewrite rules.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Answer = Callable[..., float]
TINY = 1e-10
"""What FactorMiner takes for zero, whatever the unit."""


def over(answer: Answer, *columns: Values, days: int) -> Values:
    """Answer for every whole window of rows, gaps included."""
    rows, names = columns[0].shape
    values = np.full((rows, names), np.nan)
    for day in range(days - 1, rows):
        for name in range(names):
            values[day, name] = answer(*(x[day - days + 1 : day + 1, name] for x in columns))
    return values


def there(w: Values) -> Values:
    return w[~np.isnan(w)]


def some(answer: Callable[[Values], Any], least: int = 1) -> Answer:
    """Answer for the values that are there, if there are enough."""
    return lambda w: float(answer(there(w))) if len(there(w)) >= least else np.nan


mean, spread = some(np.mean), some(lambda v: v.std(ddof=1), 2)


def standard(w: Values) -> Values:
    deviation = spread(w)
    return np.asarray((there(w) - mean(w)) / (deviation if deviation > TINY else 1.0))


def skew(w: Values) -> float:
    n = len(w)
    return mean(standard(w) ** 3) * n**2 / ((n - 1) * (n - 2))


def together(a: Values, b: Values) -> Values:
    """Return the products of deviations, each from the mean of its own values."""
    return there((a - mean(a)) * (b - mean(b)))


def corr(a: Values, b: Values) -> float:
    scale = spread(a) * spread(b)
    return mean(together(a, b)) / scale if scale > TINY else 0.0


def beta(a: Values, b: Values) -> float:
    squares = together(b, b).sum()
    return float(together(a, b).sum() / squares) if squares > TINY else 0.0


def resid(a: Values, b: Values) -> float:
    return float(a[-1] - (mean(a) + beta(a, b) * (b[-1] - mean(b))))


def slope(w: Values) -> float:
    if not len(there(w)):
        return np.nan
    time = np.arange(len(w)) - (len(w) - 1) / 2
    return float(there((w - mean(w)) * time).sum() / (time**2).sum())


def line(w: Values, place: float) -> float:
    return mean(w) + slope(w) * (place - (len(w) - 1) / 2)


def rsquare(w: Values) -> float:
    fitted = np.array([line(w, place) for place in range(len(w))])
    total = ((there(w) - mean(w)) ** 2).sum()
    return float(1 - (there(w - fitted) ** 2).sum() / total) if total > TINY else np.nan


def weighted(weights: Callable[[int], Values]) -> Answer:
    return lambda w: float((w * weights(len(w))).sum())


def linear(n: int) -> Values:
    return np.asarray(np.arange(1.0, n + 1) / np.arange(1.0, n + 1).sum())


def fading(n: int) -> Values:
    alpha = 2 / (n + 1)
    return np.array([alpha * (1 - alpha) ** age for age in range(n - 1, -1, -1)])


def ema(x: Values, days: int = 10) -> Values:
    found = [x[0]]
    for row in x[1:]:
        found.append(found[-1] + 2 / (days + 1) * (row - found[-1]))
    return np.array(found)


def dema(x: Values, days: int = 10) -> Values:
    return np.asarray(2 * ema(x, days) - ema(ema(x, days), days))


def hull(x: Values, days: int = 10) -> Values:
    short, long = (np.nan_to_num(WORDS["WMA"](x, window)) for window in (days // 2, days))
    return np.asarray(WORDS["WMA"](2 * short - long, math.isqrt(days)))


def ratio(x: Values, y: Values) -> Values:
    near = ~(np.abs(y) > TINY)
    return np.where(near, 0.0, x / np.where(near, 1.0, y))


def earlier(x: Values, days: int = 1) -> Values:
    return np.vstack([np.full((days, x.shape[1]), np.nan), x])[: len(x)]


def returned(x: Values, days: int = 1) -> Values:
    found = ratio(x - earlier(x, days), earlier(x, days))
    found[:days] = np.nan
    return found


def ratio_log(x: Values, days: int = 1) -> Values:
    before = earlier(x, days)
    found = np.log(np.abs(ratio(x, np.where(np.abs(before) > TINY, before, 1.0))) + TINY)
    found[:days] = np.nan
    return found


def ranked(x: Values) -> Values:
    """Rank by column where values tie: there, numpy's sort is not stable, and its order is its own."""
    places = np.argsort(np.argsort(x, axis=1, kind="stable"), axis=1, kind="stable") + 1
    return np.where(np.isnan(x), np.nan, places / (~np.isnan(x)).sum(1, keepdims=True))


def daily(answer: Answer, x: Values) -> Values:
    return np.array([[answer(row)] for row in x])


def demeaned(x: Values) -> Values:
    return np.asarray(x - daily(mean, x))


def scored(x: Values) -> Values:
    return np.asarray(demeaned(x) / np.maximum(daily(spread, x), TINY))


def scaled(x: Values) -> Values:
    gross = np.nansum(np.abs(x), axis=1, keepdims=True)
    return np.asarray(x / np.where(gross > TINY, gross, 1.0))


def binned(x: Values, bins: int = 5) -> Values:
    return np.ceil(np.round(ranked(x) * bins, 9))


def windowed(answer: Answer, default: int = 10) -> Callable[..., Values]:
    return lambda x, days=default: over(answer, x, days=days)


def paired(answer: Answer) -> Callable[..., Values]:
    return lambda x, y, days=10: over(answer, x, y, days=days)


def truth(found: Any) -> Values:
    return np.asarray(found, dtype=float)


MEAN, MEDIAN = windowed(mean), windowed(some(np.median))
PRODUCT = windowed(lambda w: float(there(w).prod()))
SLOPE, RESIDUAL = windowed(slope, 20), windowed(lambda w: float(w[-1] - line(w, len(w) - 1)), 20)
WORDS: Mapping[str, Callable[..., Any]] = {
    "Add": lambda x, y: x + y,
    "Sub": lambda x, y: x - y,
    "Mul": lambda x, y: x * y,
    "Div": ratio,
    "Inv": lambda x: ratio(np.ones_like(x), x),
    "Neg": lambda x: -x,
    "Abs": np.abs,
    "Sign": np.sign,
    "Log": lambda x: np.sign(x) * np.log1p(np.abs(x)),
    "Sqrt": lambda x: np.sign(x) * np.sqrt(np.abs(x)),
    "Square": lambda x: x * x,
    "Pow": lambda x, y: np.sign(x) * np.abs(x) ** y,
    "SignedPower": lambda x, n=2.0: np.sign(x) * np.abs(x) ** n,
    "Power": lambda x, n=2.0: x**n,
    "Exp": lambda x: np.exp(np.clip(x, -50, 50)),
    "Tanh": np.tanh,
    **dict.fromkeys(("Max", "Max2"), np.maximum),
    **dict.fromkeys(("Min", "Min2"), np.minimum),
    "Clip": lambda x, low=-3.0, high=3.0: np.clip(x, low, high),
    **dict.fromkeys(("Mean", "SMA"), MEAN),
    "Std": windowed(spread),
    "Var": windowed(some(lambda v: v.var(ddof=1), 2)),
    "Skew": windowed(skew, 20),
    "Kurt": windowed(lambda w: mean(standard(w) ** 4) - 3, 20),
    **dict.fromkeys(("Median", "Med"), MEDIAN),
    "Sum": windowed(lambda w: float(there(w).sum())),
    **dict.fromkeys(("Prod", "Product"), PRODUCT),
    "TsMax": windowed(some(np.max)),
    "TsMin": windowed(some(np.min)),
    "TsArgMax": windowed(lambda w: float(np.nanargmax(w)) if len(there(w)) else np.nan),
    "TsArgMin": windowed(lambda w: float(np.nanargmin(w)) if len(there(w)) else np.nan),
    "TsRank": windowed(lambda w: float((w <= w[-1]).mean())),
    "Quantile": lambda x, days=10, q=0.5: over(some(lambda v: np.quantile(v, q)), x, days=days),
    "CountNaN": windowed(lambda w: float(len(w) - len(there(w)))),
    "CountNotNaN": windowed(lambda w: float(len(there(w)))),
    "Delta": lambda x, days=1: x - earlier(x, days),
    "Delay": earlier,
    "Return": returned,
    "LogReturn": ratio_log,
    "Corr": paired(corr),
    "Cov": paired(lambda a, b: mean(together(a, b))),
    "Beta": paired(beta),
    "Resid": paired(resid),
    "WMA": windowed(weighted(linear)),
    **dict.fromkeys(("Decay", "TsDecay"), windowed(weighted(fading))),
    **dict.fromkeys(("EMA", "KAMA"), ema),
    "DEMA": dema,
    "HMA": hull,
    "CsRank": ranked,
    "CsZScore": scored,
    **dict.fromkeys(("CsDemean", "CsNeutralize"), demeaned),
    **dict.fromkeys(("CsScale", "Scale"), scaled),
    "CsQuantile": binned,
    "TsLinReg": windowed(lambda w: line(w, len(w) - 1), 20),
    "TsLinRegIntercept": windowed(lambda w: line(w, 0), 20),
    **dict.fromkeys(("TsLinRegSlope", "Slope"), SLOPE),
    **dict.fromkeys(("TsLinRegResid", "Resi"), RESIDUAL),
    "Rsquare": windowed(rsquare, 20),
    "IfElse": lambda c, x, y: np.where(c > 0, x, y),
    "Greater": lambda x, y: truth(x > y),
    "GreaterEqual": lambda x, y: truth(x >= y),
    "Less": lambda x, y: truth(x < y),
    "LessEqual": lambda x, y: truth(x <= y),
    **dict.fromkeys(("Equal", "Eq"), lambda x, y: truth(np.abs(x - y) < TINY)),
    "Ne": lambda x, y: truth(np.abs(x - y) >= TINY),
    "And": lambda x, y: truth((x > 0) & (y > 0)),
    "Or": lambda x, y: truth((x > 0) | (y > 0)),
    "Not": lambda x: truth(x <= 0),
}


class Meaning:
    """Compute formulas on one set of columns; a formula of nested calls is read as Python."""

    def __init__(self, columns: Mapping[str, Values]) -> None:
        self._columns = {**columns, "amt": columns["amount"]}

    def __call__(self, text: str) -> Values:
        with np.errstate(all="ignore"):
            return np.asarray(self._found(ast.parse(text.replace("$", ""), mode="eval").body), dtype=float)

    def _found(self, tree: ast.expr) -> Any:
        match tree:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._columns[name]
            case ast.Call(func=ast.Name(id=name), args=args):
                return WORDS[name](*map(self._found, args))
            case ast.UnaryOp(op=ast.USub(), operand=x):
                return -self._found(x)
        raise AssertionError(ast.dump(tree))
