"""Formulas as a user of pandas writes them, in float64, nothing shared: the values that the others are compared with.

What pandas has no method for is written with `rolling(...).apply`, as its users do; with the setting `lags` it is
computed by numpy, one pass for each lag, which is faster.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from . import lags
from .interpreter import Interpreter, Table
from .wire import Array, load, serve


def _rolling(name: str, *given: Any) -> Any:
    """Return the function that calls one method of pandas' rolling windows."""

    def compute(x: Array, window: int, **numbers: float) -> Array:
        rolling = pd.DataFrame(x).rolling(window)
        result: Array = getattr(rolling, name)(*given, **numbers).to_numpy(copy=False)
        return result

    return compute


def _paired(name: str) -> Any:
    def compute(x: Array, y: Array, window: int) -> Array:
        result: Array = getattr(pd.DataFrame(x).rolling(window), name)(pd.DataFrame(y)).to_numpy(copy=False)
        return result

    return compute


def _zscore(x: Array, window: int) -> Array:
    rolling = pd.DataFrame(x).rolling(window)
    scaled: Array = (x - rolling.mean().to_numpy()) / rolling.std().to_numpy()
    return scaled


def _rank(x: Array) -> Array:
    return pd.DataFrame(x).rank(axis=1, pct=True).to_numpy(copy=False)


def _applied(function: Callable[[Array], float]) -> Callable[[Array, int], Array]:
    """Return the function that calls another one on every window."""

    def compute(x: Array, window: int) -> Array:
        return pd.DataFrame(x).rolling(window).apply(function, raw=True).to_numpy(copy=False)

    return compute


def _line(window: Array) -> tuple[float, float, float]:
    """Return slope, today's residual and R squared of the line on time."""
    days = np.arange(len(window)) - (len(window) - 1) / 2
    off = window - window.mean()
    slope = (days @ off) / (days @ days)
    return slope, off[-1] - slope * days[-1], slope**2 * (days @ days) / (off @ off)


def _decayed(window: Array) -> float:
    weights = np.arange(1, len(window) + 1)
    return float(window @ weights / weights.sum())


APPLIED: Table = {
    "ts_argmax": _applied(lambda window: float(len(window) - 1 - window.argmax())),
    "ts_argmin": _applied(lambda window: float(len(window) - 1 - window.argmin())),
    "ts_product": _applied(np.prod),
    "ts_slope": _applied(lambda window: _line(window)[0]),
    "ts_residual": _applied(lambda window: _line(window)[1]),
    "ts_rsquare": _applied(lambda window: _line(window)[2]),
    "decay_linear": _applied(_decayed),
}
TABLE: Table = {
    "ts_sum": _rolling("sum"),
    "ts_mean": _rolling("mean"),
    "ts_std": _rolling("std"),
    "ts_var": _rolling("var"),
    "ts_skew": _rolling("skew"),
    "ts_kurt": _rolling("kurt"),
    "ts_min": _rolling("min"),
    "ts_max": _rolling("max"),
    "ts_median": _rolling("median"),
    "ts_quantile": _rolling("quantile"),
    "ts_rank": lambda x, window: pd.DataFrame(x).rolling(window).rank(pct=True).to_numpy(copy=False),
    "ts_corr": _paired("corr"),
    "ts_cov": _paired("cov"),
    "ts_zscore": _zscore,
    "ts_count": _rolling("sum"),
    "ts_argmax": lags.since_highest,
    "ts_argmin": lambda x, window: lags.since_highest(-x, window),
    "ts_product": lags.product,
    "ts_slope": lags.slope,
    "ts_residual": lags.residual,
    "ts_rsquare": lags.rsquare,
    "decay_linear": lags.decay,
    "rank": _rank,
}


def make(data: Path, settings: dict[str, Any]) -> Interpreter:
    """Read the columns as float64."""
    warnings.simplefilter("ignore")
    columns = {name: values.astype(np.float64) for name, values in load(data).items()}
    return Interpreter(columns, TABLE if settings.get("lags") else {**TABLE, **APPLIED}, shared=False)


if __name__ == "__main__":
    serve(make)
