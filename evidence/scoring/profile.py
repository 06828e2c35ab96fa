"""The profile of a factor: decay by day, market regimes, exposures, capacity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...factors import rank_rows, row_rank_correlation
from ...market import Panel
from ..newey_west import newey_west_t
from ..windows import Window
from .capacity import measure_capacity
from .exposures import market_return, neutralise_ranks
from .long_short import BOUGHT, BOUGHT_INVERSE, SOLD, SOLD_INVERSE
from .metrics import round_significant
from .rank_ic import Daily, LabelOrders, daily_statistics
from .scorer import DECAY_STEP, Scorer

Frame = NDArray[np.float64]
Values = NDArray[np.float32]
DECAY_DAYS = range(1, 21)

Series = NDArray[np.float64]
Flags = NDArray[np.bool_]
TREND_DAYS = 60
STORM_DAYS = 20


@dataclass(frozen=True)
class Profiler:
    """Describes factors of one panel in more detail than a search can afford: about a second each."""

    scorer: Scorer
    window: Window

    def profile(self, values: Values) -> dict[str, Any]:
        """Describe a factor.

        Parameters
        ----------
        values
            Factor ``[T, N]``, NaN missing.

        Returns
        -------
        dict
            `decay`: mean RankIC by horizon, 1 to 20 days, on every fifth day.

            `by_regime`: see `market_regimes` and `mean_by_regime`.

            `exposures`: mean daily rank correlation with size, beta, momentum, volatility and price level, and the
            share of the variance of the factor's ranks that lies between sectors.

            `neutralised`: `rank_ic`, `icir` and `t` of the residual of the factor's ranks on sector, size, beta,
            momentum and volatility, and the share of the RankIC that is `kept`.

            `capacity`: see `Capacity`.
        """
        scorer, window = self.scorer, self.window
        sheet, target = scorer.score(values, window), scorer.target(window)
        daily = daily_statistics(window.cut(values), target.label, target.orders, target.returns, self._thin)
        return {
            "decay": self._record_decay(daily),
            "by_regime": mean_by_regime(sheet.daily, self._regimes, scorer.lag),
            "exposures": self._measure_exposures(values),
            "neutralised": self._measure_neutralised(values, sheet.rank_ic),
            "capacity": self._measure_capacity(daily, sheet.net_daily, reverse=sheet.rank_ic < 0),
        }

    def capacity(self, values: Values) -> dict[str, Any]:
        """Return the capacity of a factor held as written; see `Capacity`."""
        target = self.scorer.target(self.window)
        daily = daily_statistics(self.window.cut(values), target.label, target.orders, target.returns, target.thin)
        return self._measure_capacity(daily, self.scorer.score(values, self.window, 1).net_daily, reverse=False)

    @cached_property
    def _regimes(self) -> Mapping[str, NDArray[np.bool_]]:
        return market_regimes(self.scorer.panel, self.window)

    @cached_property
    def _styles(self) -> Mapping[str, Frame]:
        exposures = self.scorer.exposures
        return {name: getattr(exposures, name) for name in ("size", "beta", "momentum", "volatility")}

    @cached_property
    def _thin(self) -> LabelOrders:
        return self.scorer.thin(self.window, DECAY_DAYS)

    def _record_decay(self, daily: Daily) -> dict[str, float | None]:
        return {str(days): round_significant(value) for days, value in zip(DECAY_DAYS, daily.decay, strict=True)}

    def _measure_exposures(self, values: Values) -> dict[str, float | None]:
        thin = np.ascontiguousarray(self.window.cut(values)[::DECAY_STEP])
        correlations = {
            name: row_rank_correlation(thin, np.ascontiguousarray(self.window.cut(style)[::DECAY_STEP]))
            for name, style in {**self._styles, "price": self.scorer.exposures.price}.items()
        }
        shares = variance_between_groups(thin, self.scorer.exposures.sector)
        return {name: _average(daily) for name, daily in correlations.items()} | {"sector": _average(shares)}

    def _measure_neutralised(self, values: Values, plain: float) -> dict[str, float | None]:
        styles = [self.window.cut(style) for style in self._styles.values()]
        pure = neutralise_ranks(self.window.cut(values), styles, self.scorer.exposures.sector)
        daily = row_rank_correlation(pure.astype(np.float32), self.scorer.target(self.window).order)
        test = newey_west_t(daily, self.scorer.lag)
        spread = float(np.nanstd(daily, ddof=1)) if test.days > 1 else 0.0
        return {
            "rank_ic": round_significant(test.mean),
            "icir": round_significant(test.mean / spread) if spread > 0 else None,
            "t": round_significant(test.t),
            "kept": round_significant(test.mean / plain) if plain else None,
        }

    def _measure_capacity(self, daily: Daily, net: NDArray[np.float64], *, reverse: bool) -> dict[str, Any]:
        bits = (BOUGHT_INVERSE, SOLD_INVERSE) if reverse else (BOUGHT, SOLD)
        bought, sold = ((daily.sides & bit) != 0 for bit in bits)
        horizon = self.scorer.settings.horizon_days
        return measure_capacity(self.scorer.panel, self.window, (bought, sold), horizon, net).record()


def variance_between_groups(values: Values, groups: NDArray[np.int16]) -> NDArray[np.float64]:
    """Return the share of each day's variance of ranks that lies between groups, ``[D]``.

    Parameters
    ----------
    values
        Factor ``[D, N]``, NaN missing.
    groups
        Codes ``[N]``; names without one (-1) are a group of their own.

    Returns
    -------
    NDArray[np.float64]
        In [0, 1]; NaN where fewer than ten names have a value, all values are equal, or there is one group only. Under
        chance alone it is about one less than the number of groups, over the number of names.
    """
    ranks = rank_rows(values)
    codes = groups.astype(np.int64) + 1
    out = np.full(len(ranks), np.nan)
    for day, row in enumerate(ranks):
        present = ~np.isnan(row)
        if np.count_nonzero(present) < 10 or len(np.unique(codes[present])) < 2:
            continue
        centred, groups_present = row[present] - row[present].mean(), codes[present]
        count = np.maximum(np.bincount(groups_present), 1)
        total = float(centred @ centred)
        if total > 0:
            out[day] = float((np.bincount(groups_present, weights=centred) ** 2 / count).sum()) / total
    return out


def _average(daily: NDArray[np.float64]) -> float | None:
    present = daily[~np.isnan(daily)]
    return round_significant(float(present.mean())) if present.size else None


def market_regimes(panel: Panel, window: Window) -> dict[str, Flags]:
    """Return the days of a window that belong to each regime, ``[window.days]`` each.

    Notes
    -----
    `rising` and `falling`: sign of the market's return over 60 days, the market being the equal-weighted universe.
    `calm`, `usual` and `stormy`: terciles of the window by the standard deviation of the market's last 20 days. The
    terciles are of the whole window, so they describe it but cannot be traded on. The first days, which have no full 60
    or 20 days before them, belong to none.
    """
    market = market_return(panel)
    trend, storm = (
        window.cut(series) for series in (_trailing_total(np.log1p(market), TREND_DAYS), _trailing_deviation(market))
    )
    low, high = np.nanquantile(storm, [1 / 3, 2 / 3]) if not np.isnan(storm).all() else (np.nan, np.nan)
    return {
        "rising": trend > 0,
        "falling": trend <= 0,
        "calm": storm <= low,
        "usual": (storm > low) & (storm <= high),
        "stormy": storm > high,
    }


def mean_by_regime(daily: Series, regimes: Mapping[str, Flags], lag: int) -> dict[str, dict[str, float | int | None]]:
    """Return the mean of a daily series in each regime: ``{rank_ic, t, days}``.

    Parameters
    ----------
    daily
        Series ``[D]``, NaN on days without a value, which are left out.
    regimes
        Flags ``[D]`` by name, from `market_regimes`.
    lag
        Newey-West lag in days. Products of days in different regimes are 0, as in a regression of the series on a dummy
        for each regime.
    """
    return {name: _summarise_regime(daily, days & ~np.isnan(daily), lag) for name, days in regimes.items()}


def _summarise_regime(daily: Series, chosen: Flags, lag: int) -> dict[str, float | int | None]:
    days = int(np.count_nonzero(chosen))
    if days < 2:
        return {"rank_ic": None, "t": None, "days": days}
    mean = float(daily[chosen].mean())
    score = np.where(chosen, daily - mean, 0.0)
    variance = float(score @ score)
    for step in range(1, min(lag, len(score) - 1) + 1):
        variance += 2.0 * (1.0 - step / (lag + 1)) * float(score[step:] @ score[:-step])
    error = math.sqrt(max(variance, 0.0)) / days
    return {
        "rank_ic": round_significant(mean),
        "t": round_significant(mean / error) if error > 0 else None,
        "days": days,
    }


def _trailing_total(series: Series, days: int) -> Series:
    """Sum the last `days` values, NaN before there are so many."""
    out = np.full(len(series), np.nan)
    if len(series) >= days:
        out[days - 1 :] = np.lib.stride_tricks.sliding_window_view(series, days).sum(axis=1)
    return out


def _trailing_deviation(market: Series) -> Series:
    out = np.full(len(market), np.nan)
    if len(market) >= STORM_DAYS:
        out[STORM_DAYS - 1 :] = np.lib.stride_tricks.sliding_window_view(market, STORM_DAYS).std(axis=1, ddof=1)
    return out
