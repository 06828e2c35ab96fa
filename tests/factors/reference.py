"""Every operator, slow and obvious: the meaning that the engine's kernels are held to.

Values are float64; `evaluate` rounds each step to float32, as the engine stores them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from alphaloom.factors.node import Node
from alphaloom.factors.operators import OPERATORS, parameters
from alphaloom.market import Panel

Values = NDArray[np.float64]
EPSILON = float(np.finfo(np.float32).eps)
FOLDED = ("add", "mul", "max", "min", "and", "or")


def constant(values: Values) -> bool:
    """Tell whether values differ by no more than float32 can show."""
    mean = values.mean()
    return bool(((values - mean) ** 2).sum() <= len(values) * (mean * EPSILON) ** 2)


def spread(values: Values, ddof: float) -> float:
    return float(((values - values.mean()) ** 2).sum() / (len(values) - ddof)) if len(values) > ddof else math.nan


def score(now: float, values: Values, ddof: float) -> float:
    if constant(values) or len(values) <= ddof:
        return math.nan
    return float((now - values.mean()) / math.sqrt(spread(values, ddof)))


def percentile(now: float, values: Values) -> float:
    return float(((values < now).sum() + ((values == now).sum() + 1) / 2) / len(values))


def skew(values: Values) -> float:
    return math.nan if len(values) < 3 or constant(values) else float(np.asarray(pd.Series(standard(values)).skew()))


def kurt(values: Values) -> float:
    return math.nan if len(values) < 4 or constant(values) else float(np.asarray(pd.Series(standard(values)).kurt()))


def standard(values: Values) -> Values:
    """Bring to a scale that pandas does not take for zero."""
    centred: Values = values - values.mean()
    centred /= np.abs(centred).max()
    return centred


def bars_since(window: Values, best: Callable[[Values], float]) -> float:
    oldest = int(np.flatnonzero(window == best(window[~np.isnan(window)]))[0])
    return float(len(window) - 1 - oldest)


def line(y: Values, x: Values) -> tuple[float, float]:
    """Return slope and intercept of y on x."""
    if constant(x):
        return math.nan, math.nan
    slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    return float(slope), float(y.mean() - slope * x.mean())


def correlation(x: Values, y: Values) -> float:
    if constant(x) or constant(y):
        return math.nan
    a, b = x - x.mean(), y - y.mean()
    return float(np.clip((a * b).sum() / (math.sqrt((a**2).sum()) * math.sqrt((b**2).sum())), -1, 1))


def covariance(x: Values, y: Values, ddof: float) -> float:
    return float(((x - x.mean()) * (y - y.mean())).sum() / (len(x) - ddof)) if len(x) > ddof else math.nan


def weighted(window: Values, weight: Callable[[int], float]) -> float:
    weights = np.array([weight(age) for age in range(len(window))])[::-1]
    there = ~np.isnan(window)
    return float((weights[there] * window[there]).sum() / weights[there].sum())


Window = Callable[[Values, Values, Mapping[str, float]], float]

ONE_SERIES: Mapping[str, Window] = {
    "ts_sum": lambda v, w, p: math.fsum(v),
    "ts_mean": lambda v, w, p: math.fsum(v) / len(v),
    "ts_std": lambda v, w, p: math.sqrt(spread(v, p["ddof"])),
    "ts_var": lambda v, w, p: spread(v, p["ddof"]),
    "ts_zscore": lambda v, w, p: score(w[-1], v, p["ddof"]),
    "ts_skew": lambda v, w, p: skew(v),
    "ts_kurt": lambda v, w, p: kurt(v),
    "ts_min": lambda v, w, p: float(v.min()),
    "ts_max": lambda v, w, p: float(v.max()),
    "ts_argmin": lambda v, w, p: bars_since(w, lambda each: float(each.min())),
    "ts_argmax": lambda v, w, p: bars_since(w, lambda each: float(each.max())),
    "ts_rank": lambda v, w, p: math.nan if math.isnan(w[-1]) else percentile(w[-1], v),
    "ts_median": lambda v, w, p: float(np.median(v)),
    "ts_quantile": lambda v, w, p: float(np.quantile(v, p["q"])),
    "ts_mad": lambda v, w, p: float(np.abs(v - v.mean()).mean()),
    "ts_product": lambda v, w, p: float(np.prod(v)),
    "ts_count": lambda v, w, p: float((v != 0).sum()),
    "ts_drawdown": lambda v, w, p: float(np.divide(w[-1], v.max()) - 1),
    "decay_linear": lambda v, w, p: weighted(w, lambda age: p["window"] - age),
    "ema": lambda v, w, p: weighted(w, lambda age: (1 - 2 / (p["window"] + 1)) ** age),
}

TWO_SERIES: Mapping[str, Callable[[Values, Values, Mapping[str, float]], float]] = {
    "ts_corr": lambda x, y, p: correlation(x, y),
    "ts_cov": lambda x, y, p: covariance(x, y, p["ddof"]),
    "ts_beta": lambda y, x, p: line(y, x)[0],
}


def rolling(name: str, x: Values, numbers: Mapping[str, float]) -> Values:
    """Apply an operator to each window of each name; fewer rows than the window at the start are a window too."""
    out = np.full(x.shape, np.nan)
    for day, j in np.ndindex(*x.shape):
        window = x[max(0, day - int(numbers["window"]) + 1) : day + 1, j]
        there = window[~np.isnan(window)]
        if len(there) >= numbers["min_periods"]:
            out[day, j] = trend(name, window) if name in TREND else ONE_SERIES[name](there, window, numbers)
    return out


TREND = ("ts_slope", "ts_residual", "ts_rsquare")


def trend(name: str, window: Values) -> float:
    """Fit a line to the window against time."""
    there = ~np.isnan(window)
    clock = np.arange(len(window)).astype(float) + 1000.0
    slope, level = line(window[there], clock[there])
    if name == "ts_slope":
        return slope
    if name == "ts_residual":
        return float(window[-1] - level - slope * clock[-1])
    return correlation(clock[there], window[there]) ** 2


def rolling_two(name: str, x: Values, y: Values, numbers: Mapping[str, float]) -> Values:
    """Apply an operator to each pair of windows, where both are present."""
    out = np.full(x.shape, np.nan)
    for day, j in np.ndindex(*x.shape):
        part = slice(max(0, day - int(numbers["window"]) + 1), day + 1)
        a, b = x[part, j], y[part, j]
        both = ~np.isnan(a) & ~np.isnan(b)
        if both.sum() >= numbers["min_periods"]:
            out[day, j] = TWO_SERIES[name](a[both], b[both], numbers)
    return out


def lagged(name: str, x: Values, numbers: Mapping[str, float]) -> Values:
    window = int(numbers["window"])
    then = np.full(x.shape, np.nan)
    then[window:] = x[: max(len(x) - window, 0)]
    choices: dict[str, Values] = {"delay": then, "delta": x - then, "ts_returns": x / then - 1}
    return choices[name]


Row = Callable[[Values, Mapping[str, float]], Values]


def bucket(x: Values, numbers: Mapping[str, float]) -> Values:
    places = [Fraction(int(2 * place), 2 * len(x)) for place in pd.Series(x).rank()]
    return np.array([math.ceil(int(numbers["n"]) * place) for place in places], float)


def held(x: Values, numbers: Mapping[str, float]) -> Values:
    reach = numbers["limit"] * math.sqrt(spread(x, 1)) if len(x) > 1 else math.inf
    return np.clip(x, x.mean() - reach, x.mean() + reach)


ACROSS: Mapping[str, Row] = {
    "rank": lambda x, p: np.asarray(pd.Series(x).rank(pct=True), float),
    "zscore": lambda x, p: np.array([score(each, x, p["ddof"]) for each in x]),
    "scale": lambda x, p: x * p["to"] / np.abs(x).sum(),
    "winsorize": held,
    "demean": lambda x, p: x - x.mean(),
    "quantile_bucket": bucket,
}


def across(row: Row, x: Values, member: NDArray[np.bool_], numbers: Mapping[str, float]) -> Values:
    """Apply an operator to the present members of each day."""
    out = np.full(x.shape, np.nan)
    for day in range(len(x)):
        there = member[day] & ~np.isnan(x[day])
        if there.any():
            out[day, there] = row(x[day, there], numbers)
    return out


def grouped(
    name: str, x: Values, codes: NDArray[np.int16], member: NDArray[np.bool_], p: Mapping[str, float]
) -> Values:
    """Apply an operator to each group by itself."""
    out = np.full(x.shape, np.nan)
    for code in set(codes[codes >= 0]):
        inside = member & (codes == code)
        found = across(ACROSS[name.removeprefix("group_")], x, inside, p)
        out[inside] = found[inside]
    return out


def powered(x: Values, y: Values) -> Values:
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.power(x, y))


def answered(answer: NDArray[np.bool_], *known: Values) -> Values:
    return np.where(np.isnan(sum(known)), np.nan, answer)


CELLS: Mapping[str, Callable[..., Values]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "neg": lambda x: -x,
    "abs": np.abs,
    "sign": np.sign,
    "log": np.log,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "power": powered,
    "signed_power": lambda x, y: np.where(np.isnan(x), np.nan, np.sign(x) * powered(np.abs(x), y)),
    "max": np.maximum,
    "min": np.minimum,
    "lt": lambda x, y: answered(x < y, x, y),
    "le": lambda x, y: answered(x <= y, x, y),
    "gt": lambda x, y: answered(x > y, x, y),
    "ge": lambda x, y: answered(x >= y, x, y),
    "eq": lambda x, y: answered(x == y, x, y),
    "ne": lambda x, y: answered(x != y, x, y),
    "and": lambda x, y: answered((x != 0) & (y != 0), x, y),
    "or": lambda x, y: answered((x != 0) | (y != 0), x, y),
    "not": lambda x: answered(x == 0, x),
    "where": lambda c, x, y: np.where(np.isnan(c), np.nan, np.where(c != 0, x, y)),
}


def apply(node: Node, args: list[Any], panel: Panel) -> Values:
    """Apply an operator to the values of its arguments; not finite is missing."""
    family, numbers = OPERATORS[node.op].family, parameters(node)
    with np.errstate(all="ignore"):
        if node.op in ("delay", "delta", "ts_returns"):
            out = lagged(node.op, args[0], numbers)
        elif family == "time series":
            two = node.op in TWO_SERIES
            out = rolling_two(node.op, args[0], args[1], numbers) if two else rolling(node.op, args[0], numbers)
        elif family == "cross-section":
            groups = args[1] if len(args) > 1 else np.zeros(panel.universe.shape[1], np.int16)
            out = grouped(node.op, args[0], groups, panel.universe, numbers)
        elif node.op == "clip":
            out = np.clip(args[0], numbers["low"], numbers["high"])
        else:
            out = CELLS[node.op](*args)
        return np.where(np.abs(out) <= np.finfo(np.float32).max, out, np.nan)


def leaf(node: Node, panel: Panel) -> Any:
    """Return a column, a number on every cell, or the groups."""
    if node.op == "group":
        return panel.groups[node.name]
    if node.op == "number":
        return np.full(panel.universe.shape, np.float32(node.value), np.float64)
    return narrow(panel.fields[node.name])


def narrow(values: Values) -> Values:
    return values.astype(np.float32).astype(np.float64)


def evaluate(node: Node, panel: Panel) -> Any:
    """Compute a tree, one step after the other, each rounded to float32."""
    if node.is_leaf:
        return leaf(node, panel)
    args = [evaluate(arg, panel) for arg in node.args]
    if len(args) > 2 and node.op in FOLDED:
        total = args[0]
        for arg in args[1:]:
            total = narrow(apply(node, [total, arg], panel))
        return total
    return narrow(apply(node, args, panel))
