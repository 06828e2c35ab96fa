"""Score a factor on one window: RankIC with its t, IC, decay, quintile returns, and the long-short after costs.

With `evidence.screen_t` a factor is first scored on every fifth search day (`Scorer.examine`): a fifth of the work, and
nearly all the information, because labels of five days overlap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...factors import RowOrder, order_rows, row_rank_correlation
from ...market import Panel
from ..gate.mean_test import MeanTest, run_mean_test
from ..newey_west import LAG_PER_HORIZON, newey_west_t
from ..settings import CostSettings, EvidenceSettings
from ..windows import HORIZONS, Window
from .exposures import Exposures, idiosyncratic_volatility, measure_exposures, residualise_label
from .holding_ic import holding_rank_ic
from .labels import cut_label, forward_returns, next_open_returns
from .long_short import (
    BOUGHT,
    BOUGHT_INVERSE,
    SOLD,
    SOLD_INVERSE,
    TRADING_DAYS_PER_YEAR,
    Costs,
    LongShort,
    sides_long_short,
)
from .metrics import FactorMetrics, FactorWarning, round_significant
from .rank_ic import Daily, LabelOrders, daily_statistics
from .survivorship import Survivorship

Frame = NDArray[np.float64]
Values = NDArray[np.float32]

SCREEN_STEP_DAYS = 5
DECAY_STEP = SCREEN_STEP_DAYS


@dataclass(frozen=True)
class Target:
    """The labels and returns of one window, cut and sorted once for all factors; rows are the window's days.

    `label` and `returns` are the main horizon's label (residual unless configured raw) and raw return, `thin` the order
    of every fifth day's labels by horizon, `earned` the next day's open-to-open returns.
    """

    label: Frame
    order: RowOrder
    orders: LabelOrders
    thin: LabelOrders
    returns: Frame
    earned: Frame
    years: Mapping[str, slice]
    present: NDArray[np.int64]

    @property
    def inhabited(self) -> int:
        """Return the number of universe cells of the window."""
        return int(self.present.sum())

    def every(self, step: int) -> Target:
        """Return the target of every `step`-th day; `thin`, which has every fifth day already, is not cut again."""
        if step not in self._by_step:
            rows = slice(None, None, step)
            order = self.order.take(rows)
            self._by_step[step] = Target(
                label=np.ascontiguousarray(self.label[rows]),
                order=order,
                orders=LabelOrders.stack([(self.orders.horizons[0], order)], 1),
                thin=replace(self.thin, step=1),
                returns=np.ascontiguousarray(self.returns[rows]),
                earned=self.earned[rows],
                years={year: slice(-(-days.start // step), -(-days.stop // step)) for year, days in self.years.items()},
                present=self.present[rows],
            )
        return self._by_step[step]

    @cached_property
    def _by_step(self) -> dict[int, Target]:
        return {}


@dataclass(frozen=True)
class Scorer:
    """Scores factors of one panel; labels are computed once and cached."""

    panel: Panel
    settings: EvidenceSettings

    def changed(self, *, costs: CostSettings | None = None, horizon_days: int | None = None) -> Scorer:
        """Return a scorer with other costs or another horizon, which shares what does not depend on them."""
        days = horizon_days or self.settings.horizon_days
        update = {"costs": costs or self.settings.costs, "horizon_days": days}
        other = Scorer(self.panel, self.settings.model_copy(update=update))
        kept = ("exposures", "risk", "daily_returns", "_thin_orders", "_one_day_orders")
        of_horizon = ("main_label", "returns", "_targets", "_survivorship_tests")
        shared = kept if days != self.settings.horizon_days else (*kept, *of_horizon)
        for name in shared:
            other.__dict__[name] = getattr(self, name)
        return other

    @cached_property
    def exposures(self) -> Exposures:
        """Return the trailing exposures of the panel."""
        return measure_exposures(self.panel)

    @cached_property
    def risk(self) -> Frame | None:
        """Return the idiosyncratic volatility that divides residual labels, `[T, N]`; None without scaling."""
        return idiosyncratic_volatility(self.panel, self.exposures) if self.settings.label_scale == "own_risk" else None

    @cached_property
    def main_label(self) -> Frame:
        """Return the label that factors are scored against, `[T, N]`."""
        return self.label(self.settings.horizon_days)

    def label(self, days: int, rows: slice = slice(None)) -> Frame:
        """Return the label of any horizon on some rows, `[rows, N]`: residual or raw, as configured.

        Residual labels are of log returns, so that half the variance of a name is not read as a return.
        """
        raw = forward_returns(self.panel, days)[rows]
        if self.settings.returns == "raw":
            return raw
        return residualise_label(np.log1p(raw), self.exposures.on(rows), None if self.risk is None else self.risk[rows])

    @cached_property
    def returns(self) -> Frame:
        """Return the raw label of the main horizon, `[T, N]`."""
        return forward_returns(self.panel, self.settings.horizon_days)

    @cached_property
    def daily_returns(self) -> Frame:
        """Return each name's return from the open of t+1 to the open of t+2, `[T, N]`."""
        return next_open_returns(self.panel)

    @property
    def lag(self) -> int:
        """Return the Newey-West lag, in days."""
        return LAG_PER_HORIZON * self.settings.horizon_days

    @cached_property
    def _targets(self) -> dict[Window, Target]:
        return {}

    @cached_property
    def _thin_orders(self) -> dict[tuple[Window, tuple[int, ...]], LabelOrders]:
        return {}

    @cached_property
    def _one_day_orders(self) -> dict[Window, RowOrder]:
        return {}

    @cached_property
    def _survivorship_tests(self) -> dict[Window, Survivorship]:
        return {}

    def target(self, window: Window) -> Target:
        """Return the target of a window, computed at the first call."""
        if window not in self._targets:
            horizon = self.settings.horizon_days
            label = cut_label(self.main_label, window, horizon)
            order = order_rows(label)
            self._targets[window] = Target(
                label=label,
                order=order,
                orders=LabelOrders.stack([(horizon, order)], 1),
                thin=self.thin(window, HORIZONS),
                returns=label if self.settings.returns == "raw" else cut_label(self.returns, window, horizon),
                earned=cut_label(self.daily_returns, window, 1),
                years=_slice_years(self.panel.dates[window.start : window.stop]),
                present=np.count_nonzero(window.cut(self.panel.universe), axis=1),
            )
        return self._targets[window]

    def thin(self, window: Window, horizons: Sequence[int]) -> LabelOrders:
        """Return the order of every fifth day's labels at several horizons, in days; computed at the first call."""
        asked = (window, tuple(horizons))
        if asked not in self._thin_orders:
            rows = slice(window.start, window.stop, DECAY_STEP)
            orders = []
            for days in horizons:
                label = self.label(days, rows)
                label[-(-max(window.days - days - 1, 0) // DECAY_STEP) :] = np.nan  # labels that end outside the window
                orders.append((days, order_rows(label)))
            self._thin_orders[asked] = LabelOrders.stack(orders, DECAY_STEP)
        return self._thin_orders[asked]

    def daily_rank_ic(self, values: Values, window: Window) -> NDArray[np.float64]:
        """Return the RankIC of each day of a window.

        Parameters
        ----------
        values
            Factor ``[T, N]`` of the panel's days, NaN missing.
        window
            Days to score; labels that end outside it are missing.

        Returns
        -------
        NDArray[np.float64]
            ``[window.days]`` Spearman correlations, ties averaged; NaN where fewer than 10 names have both.
        """
        return row_rank_correlation(window.cut(values), self.target(window).order)

    def record_daily_rank_ic(self, values: Values, window: Window) -> dict[str, Any]:
        """Return `daily_rank_ic` as JSON: `dates` and `rank_ic`, one of each a day; null where undefined."""
        return self._record_daily(self.daily_rank_ic(values, window), window)

    def _record_daily(self, rank_ic: NDArray[np.float64], window: Window) -> dict[str, Any]:
        dates = [str(day) for day in self.panel.dates[window.start : window.stop]]
        return {"dates": dates, "rank_ic": [round_significant(value) for value in rank_ic]}

    def record_series(self, values: Values, window: Window, sign: int) -> dict[str, Any]:
        """Return a factor's daily series as JSON: `record_daily_rank_ic` with returns.

        `net` has the long-short's return after costs of each day in the direction `sign`, null where undefined;
        `quintiles` has by month (YYYY-MM) the return of each quintile above the mean of all symbols.
        """
        target, horizon = self.target(window), self.settings.horizon_days
        daily = daily_statistics(window.cut(values), target.label, target.orders, target.returns, target.thin)
        net = self._measure_long_short(daily, target, sign).net
        recorded = self._record_daily(daily.rank_ic, window)
        months = np.array([day[:7] for day in recorded["dates"]])
        # A label is the return of `horizon` days, so a day's part of it is one of so many.
        sums = {month: np.nansum(daily.fifths[months == month], axis=0) / horizon for month in sorted({*months})}
        quintiles = {str(month): [round_significant(part) for part in parts] for month, parts in sums.items()}
        return {**recorded, "net": [round_significant(value) for value in net], "quintiles": quintiles}

    def held(self, values: Values, window: Window) -> NDArray[np.float64] | None:
        """Return the daily RankIC `[days]` of the ranks held with one-day returns; None where labels are tested."""
        if self.settings.test == "labels":
            return None
        if window not in self._one_day_orders:
            label = self.label(1, slice(window.start, window.stop))
            label[-2:] = np.nan  # the last one-day returns end outside
            self._one_day_orders[window] = order_rows(label)
        return holding_rank_ic(window.cut(values), self._one_day_orders[window], self.settings.horizon_days)

    def proof(self, values: Values, window: Window) -> MeanTest:
        """Return the test that a trial would make of a factor on a window."""
        daily, holding = self.daily_rank_ic(values, window), self.held(values, window)
        return run_mean_test(daily, holding, self.settings.horizon_days, self.lag)

    def score(self, values: Values, window: Window, sign: int | None = None) -> FactorMetrics:
        """Score a factor's values `[T, N]` on a window.

        Parameters
        ----------
        values
            Values known at the close of each row's day; NaN missing.
        window
            Days to score; labels that end outside it are missing.
        sign
            Direction of the long-short, 1 or -1; None takes the sign of this window's mean RankIC.
        """
        target = self.target(window)
        daily = daily_statistics(window.cut(values), target.label, target.orders, target.returns, target.thin)
        mean = _average(daily.rank_ic)
        book = self._measure_long_short(daily, target, sign if sign is not None else (-1 if mean < 0 else 1))
        sheet = self._build_metrics(daily, target, window, self.lag)
        return replace(
            sheet,
            **_list_figures(book),
            warnings=(*sheet.warnings, *self._warn_of_survivorship(values, window)),
            net_daily=book.net,
        )

    def examine(self, values: Values, window: Window) -> FactorMetrics:
        """Score a factor on every fifth day, and on all days only where its t there reaches `screen_t`.

        As `score`. Metrics of every fifth day have the warning `make_screening_note` and no daily net returns.
        """
        if not self.settings.screen_t:
            return self.score(values, window)
        target = self.target(window)
        thin_target = target.every(SCREEN_STEP_DAYS)
        daily = daily_statistics(
            window.cut(values)[::SCREEN_STEP_DAYS],
            thin_target.label,
            thin_target.orders,
            thin_target.returns,
            thin_target.thin,
        )
        sheet = self._build_metrics(daily, thin_target, window, -(-self.lag // SCREEN_STEP_DAYS))
        if abs(sheet.t) >= self.settings.screen_t:
            return self.score(values, window)
        book = thin_book(daily, self.settings.horizon_days, self._costs, -1 if sheet.rank_ic < 0 else 1)
        warnings = (*sheet.warnings, make_screening_note(sheet.t), *self._warn_of_survivorship(values, window))
        return replace(sheet, **_list_figures(book), warnings=warnings)

    def _build_metrics(self, daily: Daily, target: Target, window: Window, lag: int) -> FactorMetrics:
        """Return the metrics of a factor without those of its long-short."""
        test = newey_west_t(daily.rank_ic, lag)
        coverage = float(daily.counts.sum()) / max(target.inhabited, 1)
        return FactorMetrics(
            window=window.name,
            first=window.first_day,
            last=window.last_day,
            days=test.days,
            horizon_days=self.settings.horizon_days,
            rank_ic=test.mean,
            ic=_average(daily.ic),
            icir=_compute_icir(test.mean, daily.rank_ic),
            t=test.t,
            turnover=math.nan,
            gross_sharpe=math.nan,
            net_sharpe=math.nan,
            decay=dict(zip(target.thin.horizons, map(float, daily.decay), strict=True)),
            quantile_returns=tuple(map(_average, daily.fifths.T)),
            by_year={year: _average(daily.rank_ic[days]) for year, days in target.years.items()},
            coverage=coverage,
            warnings=self._list_warnings(coverage, test.mean),
            daily=daily.rank_ic,
        )

    def _measure_long_short(self, daily: Daily, target: Target, sign: int) -> LongShort:
        horizon = self.settings.horizon_days
        return sides_long_short(daily.sides, daily.counts, target.earned, self._costs, horizon, sign=sign)

    @property
    def _costs(self) -> Costs:
        return Costs(self.settings.costs.bps_per_side, self.settings.costs.borrow_bps_per_year)

    def _list_warnings(self, coverage: float, mean: float) -> tuple[FactorWarning, ...]:
        warnings = [FactorWarning("data", note) for note in self.panel.notes]
        if abs(mean) > self.settings.leak_rank_ic:
            text = f"mean RankIC {mean:.3f} is beyond {self.settings.leak_rank_ic}: look for a leak before believing it"
            warnings.append(FactorWarning("leak_alarm", text))
        if coverage < 0.5:
            warnings.append(FactorWarning("thin_coverage", "fewer than half of the universe's cells have a value"))
        return tuple(warnings)

    def _warn_of_survivorship(self, values: Values, window: Window) -> tuple[FactorWarning, ...]:
        """Return the warning that a factor leans on size on a list of survivors, if it does."""
        if window not in self._survivorship_tests:
            self._survivorship_tests[window] = Survivorship(
                self.panel, window, self.exposures.size, self.settings.horizon_days
            )
        objection = self._survivorship_tests[window].objection(values)
        return (FactorWarning("survivorship", objection),) if objection else ()


def _list_figures(book: LongShort | ThinBook) -> dict[str, Any]:
    return {"turnover": book.turnover, "gross_sharpe": book.sharpe_gross, "net_sharpe": book.sharpe_net}


def _slice_years(dates: NDArray[np.datetime64]) -> dict[str, slice]:
    """Return where each year begins and ends among ascending dates."""
    years, starts = np.unique(dates.astype("datetime64[Y]"), return_index=True)
    ends = [*starts[1:], len(dates)]
    return {str(year): slice(int(a), int(b)) for year, a, b in zip(years, starts, ends, strict=True)}


def _average(series: NDArray[np.float64]) -> float:
    present = series[~np.isnan(series)]
    return float(present.mean()) if present.size else float("nan")


def _compute_icir(mean: float, daily: NDArray[np.float64]) -> float:
    present = daily[~np.isnan(daily)]
    spread = float(present.std(ddof=1)) if present.size > 1 else 0.0
    return mean / spread if spread > 0 else float("nan")


@dataclass(frozen=True)
class ThinBook:
    """Estimates for the long-short of a factor from every fifth day; see `thin_book`."""

    turnover: float
    sharpe_gross: float
    sharpe_net: float


def thin_book(daily: Daily, horizon: int, costs: Costs, sign: int) -> ThinBook:
    """Estimate turnover and Sharpe ratios from days that are `SCREEN_STEP_DAYS` apart.

    Parameters
    ----------
    daily
        Statistics of those days; quintiles of h-day returns.
    horizon
        h, in days.
    costs
        Costs of trading and borrowing.
    sign
        1 holds the factor as it is, -1 its opposite.

    Returns
    -------
    ThinBook
        Turnover over h days is estimated by the share of a side's names that differs between one of these days and the
        next. Sharpe ratios are those of h-day returns, annualised by ``sqrt(252 / h)``. NaN where unknown.
    """
    spread = sign * (daily.fifths[:, -1] - daily.fifths[:, 0])
    bits = (BOUGHT, SOLD) if sign > 0 else (BOUGHT_INVERSE, SOLD_INVERSE)
    changed_share = float(np.mean([_measure_changed_share(daily.sides, np.int8(bit)) for bit in bits]))
    cost = (
        4.0 * changed_share * costs.side + horizon * costs.borrow
    )  # both sides, out of the old names and into the new
    return ThinBook(
        changed_share / horizon, _annualise_sharpe(spread, horizon), _annualise_sharpe(spread - cost, horizon)
    )


def make_screening_note(t: float) -> FactorWarning:
    """Return the warning that metrics rest on every fifth day."""
    return FactorWarning(
        "screened", f"its t on every fifth day is {t:.1f}: no whole sheet was made (evidence.screen_t)"
    )


def _measure_changed_share(sides: NDArray[np.int8], bit: np.int8) -> float:
    """Return the mean share of a side's names that were not on it on the row before; NaN if no row has names."""
    on_side = (sides & bit) != 0
    counts = np.count_nonzero(on_side[1:], axis=1)
    new = np.count_nonzero(on_side[1:] & ~on_side[:-1], axis=1)
    comparable = (counts > 0) & (np.count_nonzero(on_side[:-1], axis=1) > 0)
    return float((new[comparable] / counts[comparable]).mean()) if comparable.any() else math.nan


def _annualise_sharpe(returns: NDArray[np.float64], horizon: int) -> float:
    present = returns[~np.isnan(returns)]
    deviation = float(present.std(ddof=1)) if present.size > 1 else 0.0
    return float(present.mean()) / deviation * math.sqrt(TRADING_DAYS_PER_YEAR / horizon) if deviation > 0 else math.nan
