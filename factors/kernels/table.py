"""Say for each operator which kernel computes it, and how it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from . import across, elementwise, extremes, lags, logic, moments, orders, pairs, ranking, sums, weights


@dataclass(frozen=True, slots=True)
class Call:
    """How one operator is computed.

    Attributes
    ----------
    sweep : callable
        ``sweep(out, *arrays, *members, *numbers, *fixed, lo, hi)`` fills columns ``[lo, hi)`` of `out`, or rows where
        `by_rows`; members are the universe, if the names of a day are compared.
    cost : float
        About how many nanoseconds it takes a cell at a window of 20; the cache keeps what is dear.
    fixed : tuple of numbers
        What tells apart the operators that share a kernel.
    by_rows : bool
        True where rows do not depend on each other, False where columns do not.
    across : bool
        True where the universe is needed.
    swapped : bool
        True where the kernel takes the two panels the other way round.
    """

    sweep: Callable[..., None]
    cost: float = 1.0
    fixed: tuple[float, ...] = ()
    by_rows: bool = False
    across: bool = False
    swapped: bool = False


def _cell(sweep: Callable[..., None], cost: float = 1.0, swapped: bool = False) -> Call:
    return Call(sweep, cost, by_rows=True, swapped=swapped)


def _day(sweep: Callable[..., None], cost: float = 3.0) -> Call:
    return Call(sweep, cost, by_rows=True, across=True)


def _window(sweep: Callable[..., None], cost: float, *fixed: float) -> Call:
    return Call(sweep, cost, fixed)


_CELLS: Mapping[str, Call] = {
    "add": _cell(elementwise.add),
    "sub": _cell(elementwise.sub),
    "mul": _cell(elementwise.mul),
    "div": _cell(elementwise.div),
    "max": _cell(elementwise.larger),
    "min": _cell(elementwise.smaller),
    "neg": _cell(elementwise.neg),
    "abs": _cell(elementwise.size),
    "sign": _cell(elementwise.sign),
    "sqrt": _cell(elementwise.sqrt),
    "log": _cell(elementwise.log, 5.0),
    "exp": _cell(elementwise.exp, 5.0),
    "tanh": _cell(elementwise.tanh, 8.0),
    "sigmoid": _cell(elementwise.sigmoid, 6.0),
    "power": _cell(elementwise.power, 15.0),
    "signed_power": _cell(elementwise.signed_power, 15.0),
    "clip": _cell(elementwise.clip),
    "lt": _cell(logic.lt),
    "le": _cell(logic.le),
    "gt": _cell(logic.lt, swapped=True),
    "ge": _cell(logic.le, swapped=True),
    "eq": _cell(logic.eq),
    "ne": _cell(logic.ne),
    "and": _cell(logic.both),
    "or": _cell(logic.either),
    "not": _cell(logic.negate),
    "where": _cell(logic.where),
}

_WINDOWS: Mapping[str, Call] = {
    "delay": _window(lags.delay, 0.5),
    "delta": _window(lags.delta, 0.7),
    "ts_returns": _window(lags.ts_returns, 0.8),
    "ts_sum": _window(sums.rolling_sum, 1.5, sums.SUM),
    "ts_mean": _window(sums.rolling_sum, 1.5, sums.MEAN),
    "ts_count": _window(sums.rolling_sum, 1.5, sums.COUNT),
    "ts_product": _window(sums.rolling_product, 1.5),
    "ts_var": _window(moments.rolling_spread, 2.5, moments.VARIANCE),
    "ts_std": _window(moments.rolling_spread, 2.5, moments.DEVIATION),
    "ts_zscore": _window(moments.rolling_spread, 2.5, moments.SCORE),
    "ts_skew": _window(moments.rolling_shape, 6.0, moments.SKEW),
    "ts_kurt": _window(moments.rolling_shape, 6.0, moments.KURTOSIS),
    "ts_max": _window(extremes.rolling_extreme, 1.0, 1, 0),
    "ts_min": _window(extremes.rolling_extreme, 1.0, -1, 0),
    "ts_drawdown": _window(extremes.rolling_extreme, 1.0, 1, 1),
    "ts_argmax": _window(extremes.rolling_place, 1.5, 1),
    "ts_argmin": _window(extremes.rolling_place, 1.5, -1),
    "ts_rank": _window(orders.ts_rank, 4.0),
    "ts_median": _window(orders.rolling_median, 30.0),
    "ts_quantile": _window(orders.rolling_quantile, 30.0),
    "ts_mad": _window(orders.ts_mad, 6.0),
    "ts_corr": _window(pairs.rolling_pair, 5.0, 1.0, pairs.CORRELATION),
    "ts_cov": _window(pairs.rolling_pair, 5.0, pairs.COVARIANCE),
    "ts_beta": Call(pairs.rolling_pair, 5.0, (1.0, pairs.SLOPE), swapped=True),
    "ts_slope": _window(pairs.rolling_trend, 5.0, pairs.SLOPE),
    "ts_residual": _window(pairs.rolling_trend, 5.0, pairs.RESIDUAL),
    "ts_rsquare": _window(pairs.rolling_trend, 5.0, pairs.R_SQUARED),
    "decay_linear": _window(weights.decay_linear, 2.0),
    "ema": _window(weights.ema, 2.0),
}

_DAYS: Mapping[str, Call] = {
    "rank": _day(ranking.rank, 8.0),
    "quantile_bucket": _day(ranking.quantile_bucket, 8.0),
    "group_rank": _day(ranking.group_rank, 9.0),
    "zscore": _day(across.zscore),
    "scale": _day(across.scale, 2.0),
    "winsorize": _day(across.winsorize),
    "demean": _day(across.demean),
    "group_demean": _day(across.group_demean),
    "group_zscore": _day(across.group_zscore),
}

KERNELS: Mapping[str, Call] = MappingProxyType({**_CELLS, **_WINDOWS, **_DAYS})
