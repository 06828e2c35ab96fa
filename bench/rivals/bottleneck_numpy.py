"""numpy and bottleneck in float32; equal subtrees of a batch are computed once and all of them kept."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from . import lags
from .interpreter import Interpreter, Table
from .wire import Array, load, serve

bn: Any = import_module("bottleneck")


def _moving(name: str, **given: float) -> Any:
    def compute(x: Array, window: int) -> Array:
        result: Array = getattr(bn, name)(x, window, axis=0, **given)
        return result

    return compute


def _argument(name: str) -> Any:
    """Bottleneck's own argument of an extreme; the newest wins a tie, and its window reaches as far."""

    def compute(x: Array, window: int) -> Array:
        result: Array = getattr(bn, name)(x, window, axis=0)
        return result

    return compute


def _ts_rank(x: Array, window: int) -> Array:
    """Turn bottleneck's rank in [-1, 1] into a percentile."""
    result: Array = ((bn.move_rank(x, window, axis=0) + 1) / 2 * (window - 1) + 1) / window
    return result


def _joint(x: Array, y: Array) -> tuple[Array, Array]:
    gone = np.isnan(x) | np.isnan(y)
    nothing = x.dtype.type(np.nan)
    return np.where(gone, nothing, x), np.where(gone, nothing, y)


def _cov(x: Array, y: Array, window: int) -> Array:
    x, y = _joint(x, y)
    means = bn.move_mean(x, window, axis=0) * bn.move_mean(y, window, axis=0)
    result: Array = (bn.move_mean(x * y, window, axis=0) - means) * (window / (window - 1))
    return result


def _corr(x: Array, y: Array, window: int) -> Array:
    x, y = _joint(x, y)
    result: Array = _cov(x, y, window) / (
        bn.move_std(x, window, axis=0, ddof=1) * bn.move_std(y, window, axis=0, ddof=1)
    )
    return result


def _standard(x: Array, window: int, power: int) -> Array:
    """Return the mean of the centred values to a power, over their variance to half of it."""
    mean, square = (bn.move_mean(x**exponent, window, axis=0) for exponent in (1, 2))
    cube = bn.move_mean(x**3, window, axis=0)
    variance = square - mean**2
    result: Array = (cube - 3 * mean * square + 2 * mean**3) / variance**1.5
    if power == 4:
        fourth = bn.move_mean(x**4, window, axis=0)
        result = (fourth - 4 * mean * cube + 6 * mean**2 * square - 3 * mean**4) / variance**2
    return result


def _skew(x: Array, window: int) -> Array:
    adjusted: Array = _standard(x, window, 3) * ((window * (window - 1)) ** 0.5 / (window - 2))
    return adjusted


def _kurt(x: Array, window: int) -> Array:
    raw = _standard(x, window, 4)
    return ((window + 1) * raw - 3 * (window - 1)) * ((window - 1) / ((window - 2) * (window - 3)))


def _zscore(x: Array, window: int) -> Array:
    result: Array = (x - bn.move_mean(x, window, axis=0)) / bn.move_std(x, window, axis=0, ddof=1)
    return result


def _rank(x: Array) -> Array:
    result: Array = (bn.nanrankdata(x, axis=1) / np.sum(~np.isnan(x), axis=1, keepdims=True)).astype(x.dtype)
    return result


TABLE: Table = {
    "ts_sum": _moving("move_sum"),
    "ts_mean": _moving("move_mean"),
    "ts_std": _moving("move_std", ddof=1),
    "ts_var": _moving("move_var", ddof=1),
    "ts_skew": _skew,
    "ts_kurt": _kurt,
    "ts_min": _moving("move_min"),
    "ts_max": _moving("move_max"),
    "ts_median": _moving("move_median"),
    "ts_argmax": _argument("move_argmax"),
    "ts_argmin": _argument("move_argmin"),
    "ts_rank": _ts_rank,
    "ts_corr": _corr,
    "ts_cov": _cov,
    "ts_zscore": _zscore,
    "ts_count": _moving("move_sum"),
    "ts_product": lags.product,
    "ts_slope": lags.slope,
    "ts_residual": lags.residual,
    "ts_rsquare": lags.rsquare,
    "decay_linear": lags.decay,
    "rank": _rank,
}


def make(data: Path, settings: dict[str, Any]) -> Interpreter:
    """Read the columns."""
    warnings.simplefilter("ignore")
    return Interpreter(load(data), TABLE, shared=True)


if __name__ == "__main__":
    serve(make)
