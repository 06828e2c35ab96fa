"""Formulas as a user of pandas writes them, in float64, nothing shared: the values that the others are compared with."""

from __future__ import annotations

import warnings
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
    return Interpreter(columns, TABLE, shared=False)


if __name__ == "__main__":
    serve(make)
