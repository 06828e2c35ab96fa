"""One factor scored on one window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..factors import RowOrder, order_rows, rank_rows, row_rank_correlation
from ..market import Panel
from .book import Costs, LongShort, long_short
from .exposures import Exposures, measure_exposures, residual
from .labels import forward_returns, inside, next_open_returns
from .settings import EvidenceSettings
from .sheet import Sheet, Warned
from .significance import newey_west_t
from .survivorship import Survivorship
from .windows import HORIZONS, Window

Frame = NDArray[np.float64]
Values = NDArray[np.float32]
DECAY_STEP = 5
LAG_PER_HORIZON = 2
QUANTILES = 5


@dataclass(frozen=True)
class Target:
    """What a window's factors are scored against, cut and sorted once; rows are the window's days.

    `label` and `returns` are the main horizon's label (residual unless configured raw) and raw return, `thin` the order
    of every fifth day's labels by horizon, `earned` the next day's open-to-open returns.
    """

    label: Frame
    order: RowOrder
    thin: Mapping[int, RowOrder]
    returns: Frame
    earned: Frame
    years: NDArray[np.str_]
    inhabited: int


@dataclass(frozen=True)
class Scorer:
    """Scores factors of one panel; labels are made once and kept."""

    panel: Panel
    settings: EvidenceSettings

    @cached_property
    def exposures(self) -> Exposures:
        """Return market, sector and size exposures, trailing."""
        return measure_exposures(self.panel)

    @cached_property
    def labels(self) -> Mapping[int, Frame]:
        """Return the label of each horizon, `[T, N]`: residual or raw, as configured."""
        horizons = sorted({*HORIZONS, self.settings.horizon_days})
        return {days: self._label(forward_returns(self.panel, days)) for days in horizons}

    @cached_property
    def returns(self) -> Frame:
        """Return the raw label of the main horizon, `[T, N]`."""
        return forward_returns(self.panel, self.settings.horizon_days)

    @cached_property
    def daily_returns(self) -> Frame:
        """Return what each name earns from the open of t+1 to the open of t+2, `[T, N]`."""
        return next_open_returns(self.panel)

    @property
    def lag(self) -> int:
        """Return the Newey-West lag, in days."""
        return LAG_PER_HORIZON * self.settings.horizon_days

    def _label(self, raw: Frame) -> Frame:
        """Return a label; a residual one is taken in logs, so that half the variance is not read as a return."""
        return residual(np.log1p(raw), self.exposures) if self.settings.returns == "residual" else raw

    @cached_property
    def _targets(self) -> dict[Window, Target]:
        return {}

    @cached_property
    def _sizes(self) -> dict[Window, Survivorship]:
        return {}

    def target(self, window: Window) -> Target:
        """Return what factors are scored against on a window; made at the first question."""
        if window not in self._targets:
            horizon = self.settings.horizon_days
            label = inside(self.labels[horizon], window, horizon)
            thin = {days: inside(self.labels[days], window, days)[::DECAY_STEP] for days in HORIZONS}
            self._targets[window] = Target(
                label=label,
                order=order_rows(label),
                thin={days: order_rows(rows) for days, rows in thin.items()},
                returns=inside(self.returns, window, horizon),
                earned=inside(self.daily_returns, window, 1),
                years=self.panel.dates[window.start : window.stop].astype("datetime64[Y]").astype(str),
                inhabited=int(np.count_nonzero(window.cut(self.panel.universe))),
            )
        return self._targets[window]

    def daily_rank_ic(self, values: Values, window: Window) -> NDArray[np.float64]:
        """Return the RankIC of each day of a window, NaN where it is undefined, `[days]`."""
        return row_rank_correlation(window.cut(values), self.target(window).order)

    def score(self, values: Values, window: Window, sign: int | None = None) -> Sheet:
        """Score a factor's values `[T, N]` on a window.

        Parameters
        ----------
        values
            Known at the close of each row's day; NaN missing.
        window
            Labels that end outside it are missing.
        sign
            Direction of the long-short book, 1 or -1; None takes the sign of this window's mean RankIC.
        """
        target, factor = self.target(window), window.cut(values)
        order = order_rows(factor)
        daily = row_rank_correlation(order, target.order)
        test = newey_west_t(daily, self.lag)
        book = self._book(order, target, sign if sign is not None else (-1 if test.mean < 0 else 1))
        covered = float(order.counts.sum()) / max(target.inhabited, 1)
        thin = order.take(slice(None, None, DECAY_STEP))
        return Sheet(
            window=window.name,
            first=window.first_day,
            last=window.last_day,
            days=test.days,
            horizon_days=self.settings.horizon_days,
            rank_ic=test.mean,
            ic=_mean(_row_correlation(factor, target.label)),
            icir=_ratio(test.mean, daily),
            t=test.t,
            turnover=book.turnover,
            gross_sharpe=book.sharpe_gross,
            net_sharpe=book.sharpe_net,
            decay={days: _mean(row_rank_correlation(thin, label)) for days, label in target.thin.items()},
            quantile_returns=_quantile_returns(factor, target.returns),
            by_year={str(year): _mean(daily[target.years == year]) for year in np.unique(target.years)},
            coverage=covered,
            warnings=(*self._warnings(covered, test.mean), *self._survivors(values, window)),
            daily=daily,
            net_daily=book.net,
        )

    def _book(self, order: RowOrder, target: Target, sign: int) -> LongShort:
        ranks = rank_rows(order)
        if sign < 0:  # of -x: rank n + 1 - r; ranks are whole or half, so that rounding first makes it exact
            count = np.maximum(order.counts, 1)[:, None]
            ranks = (count + 1 - np.rint(2 * count * ranks) / 2) / count
        costs = Costs(self.settings.costs.bps_per_side, self.settings.costs.borrow_bps_per_year)
        return long_short(ranks, target.earned, costs, self.settings.horizon_days)

    def _warnings(self, covered: float, mean: float) -> tuple[Warned, ...]:
        found = [Warned("data", note) for note in self.panel.notes]
        if abs(mean) > self.settings.leak_rank_ic:
            text = f"mean RankIC {mean:.3f} is beyond {self.settings.leak_rank_ic}: look for a leak before believing it"
            found.append(Warned("leak_alarm", text))
        if covered < 0.5:
            found.append(Warned("thin_coverage", "fewer than half of the universe's cells have a value"))
        return tuple(found)

    def _survivors(self, values: Values, window: Window) -> tuple[Warned, ...]:
        """Return the doubt that a factor lives on the size effect of a list of survivors."""
        if window not in self._sizes:
            self._sizes[window] = Survivorship(self.panel, window, self.exposures.size, self.settings.horizon_days)
        said = self._sizes[window].objection(values)
        return (Warned("survivorship", said),) if said else ()


def _mean(series: NDArray[np.float64]) -> float:
    known = series[~np.isnan(series)]
    return float(known.mean()) if known.size else float("nan")


def _ratio(mean: float, daily: NDArray[np.float64]) -> float:
    known = daily[~np.isnan(daily)]
    spread = float(known.std(ddof=1)) if known.size > 1 else 0.0
    return mean / spread if spread > 0 else float("nan")


def _row_correlation(a: Values, b: Frame) -> NDArray[np.float64]:
    """Return the Pearson correlation of each row over the cells that both have; NaN under 10 of them."""
    both = ~(np.isnan(a) | np.isnan(b))
    count = both.sum(axis=1)
    safe = np.maximum(count, 1)
    x = np.where(both, a, 0.0).astype(np.float64)
    y = np.where(both, b, 0.0)
    x = np.where(both, x - (x.sum(axis=1) / safe)[:, None], 0.0)
    y = np.where(both, y - (y.sum(axis=1) / safe)[:, None], 0.0)
    scale = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    usable = (count >= 10) & (scale > 0)
    return np.where(usable, (x * y).sum(axis=1) / np.where(usable, scale, 1.0), np.nan)


def _quantile_returns(factor: Values, label: Frame) -> tuple[float, ...]:
    """Return the mean label over the day's mean in each fifth of the factor, days weighted equally."""
    both = ~(np.isnan(factor) | np.isnan(label))
    ranks = rank_rows(np.where(both, factor, np.nan).astype(np.float32))
    count = np.maximum(both.sum(axis=1), 1)
    excess = np.where(both, label - (np.where(both, label, 0.0).sum(axis=1) / count)[:, None], 0.0)
    bucket = np.where(both, np.ceil(ranks * QUANTILES), 0.0).astype(np.int64)
    place = (bucket + (QUANTILES + 1) * np.arange(len(bucket))[:, None]).ravel()
    size = len(bucket) * (QUANTILES + 1)
    held = np.bincount(place, minlength=size).reshape(len(bucket), -1)[:, 1:]
    total = np.bincount(place, weights=excess.ravel(), minlength=size).reshape(len(bucket), -1)[:, 1:]
    daily = np.where(held > 0, total / np.maximum(held, 1), np.nan)
    return tuple(_mean(column) for column in daily.T)
