"""Map methods and functions of numpy and pandas to operators of the language.

The mapping serves similarity alone, so it is generous: options that hardly change the order of names (`min_periods`,
`adjust`, `method`) are ignored, and steps that only change the container (`.values`, `pd.DataFrame(...)`) are dropped.
A step without an operator stays a step of its own kind, `py.NAME`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from ..language.node import Node, number_node
from .values import Call, DayRow, FlippedFrame, Literal, Spans, Value

MAX_WINDOW_DAYS = 5000


class Make(Protocol):
    """Builds nodes of bounded size."""

    def node(self, value: Value) -> Node:
        """Return a value as a tree."""

    def make(self, op: str, *args: Value, **params: float) -> Node:
        """Return an operator on some values."""


IdiomRule = Callable[[Call, Make], Value | None]

CONTAINER_STEPS = frozenset(
    {"array", "asarray", "ascontiguousarray", "astype", "convert_dtypes", "copy", "DataFrame", "droplevel", "dropna",
     "float", "float64", "infer_objects", "int", "nan_to_num_", "reindex", "reindex_like", "rename", "rename_axis",
     "replace", "reset_index", "Series", "set_axis", "set_flags", "sort_index", "squeeze", "to_frame", "to_numpy",
     "tz_localize", "values"}
)  # fmt: skip  # a table
"""Steps that change the container of a value, but hardly the value."""

CELL_FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        **{name: name for name in ("abs", "log", "exp", "sqrt", "sign", "tanh", "arctan", "floor", "ceil", "square")},
        "absolute": "abs", "fabs": "abs", "negative": "neg", "neg": "neg", "isna": "is_missing", "isnull": "is_missing",
        "isnan": "is_missing", "invert": "not", "logical_not": "not",
    }
)  # fmt: skip  # a table
"""Functions of single cells."""

PAIR_FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        **{name: name for name in ("add", "sub", "mul", "div", "gt", "lt", "ge", "le", "eq", "ne")},
        "subtract": "sub", "multiply": "mul", "divide": "div", "truediv": "div", "true_divide": "div", "pow": "power",
        "power": "power", "float_power": "power", "radd": "add", "rmul": "mul", "maximum": "max", "fmax": "max",
        "minimum": "min", "fmin": "min", "greater": "gt", "less": "lt", "greater_equal": "ge", "less_equal": "le",
        "equal": "eq", "not_equal": "ne", "logical_and": "and", "logical_or": "or", "combine_first": "coalesce",
    }
)  # fmt: skip  # a table
SWAPPED_FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {"rsub": "sub", "rdiv": "div", "rtruediv": "div", "rpow": "power"}
)

DAY_REDUCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "mean": "mean_across",
        "nanmean": "mean_across",
        "sum": "sum_across",
        "nansum": "sum_across",
        "std": "std_across",
        "nanstd": "std_across",
        "median": "median_across",
        "nanmedian": "median_across",
        "count": "count_across",
    }
)
"""Reductions of a day's names to one number."""

SPANS: Mapping[str, str] = MappingProxyType(
    {
        **{name: f"ts_{name}" for name in ("mean", "sum", "std", "var", "min", "max", "median", "skew", "kurt")},
        **{name: f"ts_{name}" for name in ("corr", "cov", "rank", "argmax", "argmin", "quantile", "count")},
        "prod": "ts_product", "nanmean": "ts_mean", "nansum": "ts_sum", "nanstd": "ts_std", "amax": "ts_max",
        "amin": "ts_min", "nanmax": "ts_max", "nanmin": "ts_min", "idxmax": "ts_argmax", "idxmin": "ts_argmin",
        "nanmedian": "ts_median", "nanvar": "ts_var", "rankdata": "ts_rank", "nanargmax": "ts_argmax",
        "nanargmin": "ts_argmin", "product": "ts_product",
    }
)  # fmt: skip  # a table
"""Reductions of a window to one number."""


def read_method(call: Call, make: Make) -> Value | None:
    """Return the step of a method, or of a numpy function of its first argument; None if the language has none."""
    owner = call.owner
    if isinstance(owner, Spans):
        return _reduce_windows(call, owner, make)
    if isinstance(owner, FlippedFrame):
        return _read_flipped(call, owner, make)
    if call.name in CONTAINER_STEPS:
        return owner
    rule = IDIOM_RULES.get(call.name)
    if rule is not None:
        return rule(call, make)
    if call.name in CELL_FUNCTIONS:
        return make.make(CELL_FUNCTIONS[call.name], owner)
    return (
        _read_pair(call, make)
        if call.name in PAIR_FUNCTIONS or call.name in SWAPPED_FUNCTIONS
        else _reduce_day(call, make)
    )


def read_attribute(owner: Value, name: str, make: Make) -> Value | None:
    """Return the value of an attribute; None if it is a method or unknown."""
    if name in ("values", "array", "real"):
        return owner
    if name == "T":
        return owner.x if isinstance(owner, FlippedFrame) else FlippedFrame(make.node(owner))
    return None


def _read_pair(call: Call, make: Make) -> Value | None:
    second = call.argument("other", 0)
    if second is None:
        return None
    if call.name in SWAPPED_FUNCTIONS:
        return make.make(SWAPPED_FUNCTIONS[call.name], second, call.owner)
    return make.make(PAIR_FUNCTIONS[call.name], call.owner, second)


def _reduce_day(call: Call, make: Make) -> Value | None:
    """Reduce over the names of a day; a reduction over all days is a step that the language lacks."""
    if call.is_across and call.name in DAY_REDUCTIONS:
        return make.make(DAY_REDUCTIONS[call.name], call.owner)
    if call.name in (*DAY_REDUCTIONS, "min", "max", "var", "prod", "quantile"):
        return make.make(f"py.{call.name}_{'across' if call.is_across else 'all'}", call.owner, *call.args)
    return None


def _read_windowed(op: str, call: Call, make: Make, name: str, default: float | None = None) -> Value | None:
    """Return an operator with a known number of days as its window."""
    days = call.number(name, 0, default)
    if days is None or call.is_across or days != int(days) or abs(days) > MAX_WINDOW_DAYS:
        return None
    if days < 0:
        return make.make("py.lead", call.owner, Literal(-days))
    return make.make(op, call.owner, window=days) if days else call.owner


def _read_rank(call: Call, make: Make) -> Value:
    ascending = call.named.get("ascending")
    down = isinstance(ascending, Literal) and ascending.value is False
    across = call.is_across or call.name == "rankdata"
    ranked = make.make("rank" if across else "py.rank_all", call.owner)
    return make.make("neg", ranked) if down else ranked


def _read_rolling(call: Call, make: Make) -> Value | None:
    days = call.number("window", 0)
    is_whole = days is not None and days == int(days) and 0 < days <= MAX_WINDOW_DAYS
    centred = call.named.get("center")
    if not is_whole or (isinstance(centred, Literal) and centred.value):
        return None
    return Spans("rolling", make.node(call.owner), int(days or 0))


def _read_ewm(call: Call, make: Make) -> Value | None:
    """Read the span of exponential weights from span, alpha, com or halflife."""
    span, alpha = call.number("span", -1), call.number("alpha", -1)
    com, half = call.number("com", 0), call.number("halflife", -1)
    if com is not None:
        alpha = 1.0 / (1.0 + com) if com > -1 else None
    if half:
        alpha = 1.0 - math.exp(-math.log(2.0) / half)
    if alpha is not None and 0 < alpha <= 1:
        span = 2.0 / alpha - 1.0
    if span is None or not 1 <= span <= MAX_WINDOW_DAYS:
        return None
    return Spans("ewm", make.node(call.owner), round(span))


def _read_clip(call: Call, make: Make) -> Value:
    low, high = (call.argument(name, place) for place, name in enumerate(("lower", "upper")))
    clipped: Value = call.owner
    for op, bound in (("max", low), ("min", high)):
        if bound is not None and bound != Literal(None):
            clipped = make.make(op, clipped, bound)
    return clipped


def _read_where(call: Call, make: Make) -> Value:
    """Read ``x.where(condition, other)``; one that only removes infinities or gaps is ignored."""
    condition = call.argument("cond", 0) or Literal(True)
    other = call.argument("other", 1)
    if other is None and _is_about_gaps(make.node(condition)):
        return call.owner
    branches: tuple[Value, Value] = (call.owner, Literal(math.nan) if other is None else other)
    return make.make("where", condition, *(branches if call.name == "where" else branches[::-1]))


def _is_about_gaps(condition: Node) -> bool:
    """Return whether a condition only tests for gaps, infinities, or non-zero values (which ratios need)."""
    if condition.op == "not":
        return _is_about_gaps(condition.args[0])
    if condition.op in ("and", "or"):
        return all(map(_is_about_gaps, condition.args))
    return condition.op in ("is_missing", "py.isfinite", "py.isinf") or (
        condition.op in ("ne", "eq") and number_node(0) in condition.args
    )


def _read_fill(call: Call, make: Make) -> Value | None:
    value = call.argument("value", 0)
    return None if value is None else make.make("where", make.make("is_missing", call.owner), value, call.owner)


def _read_log1p(call: Call, make: Make) -> Value:
    return make.make("log", make.make("add", call.owner, Literal(1)))


def _read_nan_to_num(call: Call, make: Make) -> Value:
    return make.make("where", make.make("is_missing", call.owner), Literal(0), call.owner)


def _read_notna(call: Call, make: Make) -> Value:
    return make.make("not", make.make("is_missing", call.owner))


def _read_between(call: Call, make: Make) -> Value | None:
    if len(call.args) < 2:
        return None
    low, high = (make.make(op, call.owner, bound) for op, bound in zip(("ge", "le"), call.args, strict=False))
    return make.make("and", low, high)


IDIOM_RULES: Mapping[str, IdiomRule] = MappingProxyType(
    {
        "shift": lambda call, make: _read_windowed("delay", call, make, "periods", 1),
        "diff": lambda call, make: _read_windowed("delta", call, make, "periods", 1),
        "pct_change": lambda call, make: _read_windowed("ts_returns", call, make, "periods", 1),
        "rank": _read_rank,
        "rankdata": _read_rank,
        "rolling": _read_rolling,
        "ewm": _read_ewm,
        "expanding": lambda call, make: Spans("expanding", make.node(call.owner), 0),
        "clip": _read_clip,
        "where": _read_where,
        "mask": _read_where,
        "fillna": _read_fill,
        "nan_to_num": _read_nan_to_num,
        "log1p": _read_log1p,
        "notna": _read_notna,
        "notnull": _read_notna,
        "between": _read_between,
    }
)


# Windows.


def _reduce_windows(call: Call, spans: Spans, make: Make) -> Value | None:
    """Reduce each window to a number."""
    if spans.kind == "ranked":
        return None
    if spans.kind == "ewm":
        return make.make("ema", spans.x, window=spans.window) if call.name == "mean" else None
    op = SPANS.get(call.name)
    if op is None or spans.kind != "rolling":
        return None
    if op == "ts_rank" and call.name == "rank" and isinstance(call.owner, Spans) and "axis" not in call.named:
        return make.make("ts_rank", spans.x, window=spans.window)
    if op in ("ts_corr", "ts_cov"):
        second = call.argument("other", 0)
        return None if second is None else make.make(op, spans.x, second, window=spans.window)
    if op == "ts_quantile":
        share = call.number("q", 0, call.number("quantile", 0))
        return None if share is None else make.make(op, spans.x, window=spans.window, q=share)
    return make.make(op, spans.x, window=spans.window)


def _read_flipped(call: Call, owner: FlippedFrame, make: Make) -> Value | None:
    """Read a step on a transposed frame, where the rows axis holds the names of a day."""
    axis = call.named.get("axis")
    sideways = isinstance(axis, Literal) and axis.value in (1, "columns")
    keywords = {name: value for name, value in call.named.items() if name != "axis"}
    turned: Value = owner.x if sideways else DayRow(owner.x)
    unflipped = read_method(Call(call.name, turned, call.args, keywords), make)
    if unflipped is None:
        return None
    return FlippedFrame(make.node(unflipped))
