"""Run all stress tests on several factors: each altered panel is made once and shared.

Only the days of the given panel are read. Agents, the command line and the close of a campaign all give the search
window, so every figure here is a search fact: it contains nothing of selection or sealed days, and may steer a search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...factors import RowOrder, order_rows, rank_rows, row_rank_correlation
from ...market import Panel
from ..newey_west import LAG_PER_HORIZON
from ..scoring.exposures import Exposures, measure_exposures
from ..scoring.labels import build_label, forward_returns, next_open_returns
from ..scoring.long_short import TRADING_DAYS_PER_YEAR, Costs, measure_long_short
from ..settings import EvidenceSettings
from .judgement import (
    MIN_CLEAN_T,
    LabelOverlap,
    MeanDifference,
    Scenario,
    StressOutcome,
    StressReading,
    StressResult,
    compare_same_days,
    compare_stretch,
    find_scenario,
    judge_outcomes,
)
from .moves import PanelMoves
from .perturbations import spoil_panel
from .regimes import build_regimes
from .stretches import Stretch, find_known_stretches, find_stretches

Series = NDArray[np.float64]
Rows = NDArray[np.bool_]
Values = NDArray[np.floating]
DailyPair = tuple[Series, Series]
"""RankIC and net return of each day, ``[T]`` each."""
Evaluate = Callable[[Panel], Sequence[Values]]
"""Computes every factor on a panel, each ``[T, N]``, known at the close of its day, NaN missing."""

After = Callable[[int], object]
"""Called after each scenario with the number done so far."""

STRESS_SEED: Final = 1
"""Default seed: all factors meet the same stresses."""

Frame = NDArray[np.float64]
ONE_POINT = Costs(1.0, 0.0)
ONE_POINT_OF_BORROW = Costs(0.0, 1.0)


def run_stress_tests(
    evaluate: Evaluate, panel: Panel, settings: EvidenceSettings, seed: int = STRESS_SEED, after: After | None = None
) -> list[StressResult]:
    """Test factors under historical stretches, synthetic regimes, spoiled data, and worse fills and costs.

    Parameters
    ----------
    evaluate
        Computes the factors on a panel of the same names, without look-ahead and without state from an earlier panel.
        It is called once on the panel itself and once for each altered one.
    panel
        The days that may be read; T days, N names.
    settings
        Horizon, label and costs.
    seed
        Seed of every draw.
    after
        Called after each scenario with the number done so far.

    Returns
    -------
    list of StressResult
        One for each factor, in their order. Figures are in the direction of the factor's mean RankIC on the clean days;
        a net Sharpe is after the settings' costs.
    """
    rehearsal = Rehearsal(panel, settings, seed)
    parts = [rehearsal.part(values) for values in evaluate(panel)]
    outcomes: list[list[StressOutcome]] = [[] for _ in parts]
    for done, factor_outcomes in enumerate(rehearsal.run(evaluate, parts), 1):
        for place, outcome in enumerate(factor_outcomes):
            outcomes[place].append(outcome)
        if after is not None:
            after(done)
    return [judge_outcomes(part.clean, outcomes[place]) for place, part in enumerate(parts)]


@dataclass(frozen=True, eq=False)
class CleanFactor:
    """A factor on the clean days: its sorted values, its direction, and its daily RankIC and returns."""

    values: NDArray[np.float32]
    order: RowOrder
    sign: int
    rank_ic: Series
    book: LongShortDays
    net: Series
    clean: dict[str, float]

    @property
    def alive(self) -> bool:
        """True if its RankIC on the clean days is significant."""
        return self.clean["t"] >= MIN_CLEAN_T

    @property
    def pays(self) -> bool:
        """True if its return before costs is significant too, and that after costs is positive."""
        return self.alive and self.clean["gross_t"] >= MIN_CLEAN_T and self.clean["net_sharpe"] > 0


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """The stresses of one panel; each is computed when needed and not kept."""

    panel: Panel
    settings: EvidenceSettings
    seed: int = STRESS_SEED

    @cached_property
    def exposures(self) -> Exposures:
        """Return the exposures on the true days."""
        return measure_exposures(self.panel)

    @cached_property
    def moves(self) -> PanelMoves:
        """Return the split moves of the true days."""
        return PanelMoves(self.panel, self.exposures)

    @cached_property
    def everywhere(self) -> Rows:
        """Return all days."""
        return np.ones(self.panel.days, np.bool_)

    @cached_property
    def ruler(self) -> PanelLabels:
        """Return the labels of the true days."""
        return PanelLabels.of(self.panel, self.exposures, self.settings)

    @cached_property
    def stretches(self) -> list[Stretch]:
        """Return the historical stretches: those of the panel's own prices, and known dates of stress."""
        last = self.panel.days - self.settings.horizon_days - 1
        return [*find_stretches(self.panel, self.moves, last), *find_known_stretches(self.panel, last)]

    @property
    def clock(self) -> LabelOverlap:
        """Return the overlap of labels."""
        horizon = self.settings.horizon_days
        return LabelOverlap(horizon, LAG_PER_HORIZON * horizon)

    def part(self, values: Values) -> CleanFactor:
        """Measure a factor's values ``[T, N]`` on the clean days."""
        order = order_rows(self._keep_members(values, self.panel))
        daily = self.ruler.rank_ic(order)
        mean = self._compare_with_zero(daily)
        sign = -1 if mean.clean < 0 else 1
        book = self.ruler.book(order, sign)
        net = self._charge_costs(book)
        gross, present = self._compare_with_zero(book.gross), net[~np.isnan(net)]
        clean = {
            "rank_ic": sign * mean.clean,
            "t": sign * mean.t,
            "net_sharpe": sharpe(present),
            "gross_t": gross.t,
            "break_even_bps": book.break_even(self.settings.costs.borrow_bps_per_year),
            "days": float(mean.days),
        }
        return CleanFactor(self._keep_members(values, self.panel), order, sign, sign * daily, book, net, clean)

    def run(self, evaluate: Evaluate, parts: Sequence[CleanFactor]) -> Iterator[list[StressOutcome]]:
        """Yield the outcomes of every scenario, one for each factor."""
        yield from self._run_history(parts)
        yield from self._run_regimes(evaluate, parts)
        yield from self._run_spoiled_data(evaluate, parts)
        yield from self._run_fills(parts)

    def _run_history(self, parts: Sequence[CleanFactor]) -> Iterator[list[StressOutcome]]:
        """Compare the days of each stretch with all others."""
        for stretch in self.stretches:
            inside = np.zeros(self.panel.days, np.bool_)
            inside[stretch.start : stretch.stop] = True
            days = str(self.panel.dates[stretch.start]), str(self.panel.dates[stretch.stop - 1])
            scenario = Scenario(stretch.code, "history", stretch.words, *days)
            yield [self._measure_stretch(scenario, part, inside) for part in parts]

    def _measure_stretch(self, scenario: Scenario, part: CleanFactor, inside: Rows) -> StressOutcome:
        clock = self.clock
        has_rank_ic, has_return = (~np.isnan(series) for series in (part.rank_ic, part.net))
        rank_ic = compare_stretch(part.rank_ic[has_rank_ic], inside[has_rank_ic], clock)
        returns = compare_stretch(part.net[has_return], inside[has_return], clock)
        gross = self._compare_with_zero(part.book.gross[~inside]).t
        stretch_sharpe, other_sharpe = sharpe(part.net[has_return & inside]), sharpe(part.net[has_return & ~inside])
        book = self._read_book(returns, part, gross, other_sharpe, stretch_sharpe)
        return StressOutcome(scenario, rank_ic.days, self._read_rank_ic(rank_ic, part), book)

    def _run_regimes(self, evaluate: Evaluate, parts: Sequence[CleanFactor]) -> Iterator[list[StressOutcome]]:
        """Compute, label and trade the factors in each regime."""
        for regime in build_regimes(self.moves, self.seed):
            ruler = PanelLabels.of(regime.panel, self.exposures, self.settings)
            side = self.settings.costs.bps_per_side * np.where(regime.rows, regime.costs, 1.0)
            outcomes = []
            for part, values in zip(parts, evaluate(regime.panel), strict=True):
                order = order_rows(self._keep_members(values, regime.panel))
                after = (part.sign * ruler.rank_ic(order), self._charge_costs(ruler.book(order, part.sign), side))
                outcomes.append(self._compare_outcome(find_scenario(regime.code), part, after, regime.rows))
            yield outcomes

    def _run_spoiled_data(self, evaluate: Evaluate, parts: Sequence[CleanFactor]) -> Iterator[list[StressOutcome]]:
        """Compute the factors on spoiled data, and measure them on the true market."""
        for spoiled in spoil_panel(self.panel, self.seed):
            outcomes = []
            for part, values in zip(parts, evaluate(spoiled.panel), strict=True):
                frame = spoiled.spread(self._keep_members(values, spoiled.panel), self.panel.days)
                order = order_rows(frame)
                rank_ic = compare_same_days(part.rank_ic, part.sign * self.ruler.rank_ic(order), self.clock)
                scenario = find_scenario(spoiled.code)
                outcomes.append(
                    StressOutcome(
                        scenario, rank_ic.days, self._read_rank_ic(rank_ic, part), None, *_measure_likeness(part, order)
                    )
                )
            yield outcomes

    def _run_fills(self, parts: Sequence[CleanFactor]) -> Iterator[list[StressOutcome]]:
        """Trade the same values later, at another price, or at higher costs."""
        close = PanelLabels.at_the_close(self.panel, self.exposures, self.settings)
        late = [self._trade_late(part, self.ruler, 1) for part in parts]
        yield [
            self._compare_outcome(find_scenario("late_1"), part, after) for part, after in zip(parts, late, strict=True)
        ]
        yield [
            self._compare_outcome(find_scenario("late_2"), part, self._trade_late(part, self.ruler, 2))
            for part in parts
        ]
        yield [
            self._compare_outcome(find_scenario("next_close"), part, self._trade_late(part, close, 0)) for part in parts
        ]
        halves = [(part.net + net) / 2 for part, (_, net) in zip(parts, late, strict=True)]
        side, borrow = self.settings.costs.bps_per_side, self.settings.costs.borrow_bps_per_year
        yield [self._compare_book_only("half_late", part, net) for part, net in zip(parts, halves, strict=True)]
        yield [self._compare_book_only("costs_doubled", part, part.book.net(2 * side, borrow)) for part in parts]
        yield [self._compare_book_only("borrow_doubled", part, part.book.net(side, 2 * borrow)) for part in parts]

    def _trade_late(self, part: CleanFactor, ruler: PanelLabels, late: int) -> DailyPair:
        """Return RankIC and net return of each day when values are traded `late` days later."""
        order = part.order
        if late:
            old = np.full_like(part.values, np.nan)
            old[late:] = part.values[:-late]
            order = order_rows(old)
        return part.sign * ruler.rank_ic(order), self._charge_costs(ruler.book(order, part.sign))

    def _compare_outcome(
        self, scenario: Scenario, part: CleanFactor, after: DailyPair, rows: Rows | None = None
    ) -> StressOutcome:
        """Compare RankIC and net return with the clean ones on the same days."""
        rows = self.everywhere if rows is None else rows
        rank_ic = compare_same_days(part.rank_ic[rows], after[0][rows], self.clock)
        return StressOutcome(
            scenario, rank_ic.days, self._read_rank_ic(rank_ic, part), self._compare_books(part, after[1], rows)
        )

    def _compare_book_only(self, code: str, part: CleanFactor, net: Series) -> StressOutcome:
        """Compare net returns only, where the stress does not change RankIC."""
        return StressOutcome(
            find_scenario(code), int(part.clean["days"]), None, self._compare_books(part, net, self.everywhere)
        )

    def _compare_books(self, part: CleanFactor, net: Series, rows: Rows) -> StressReading:
        """Compare net returns with the clean ones on the same days."""
        returns = compare_same_days(part.net[rows], net[rows], self.clock)
        gross = self._compare_with_zero(part.book.gross[rows]).t
        has_return = rows & ~np.isnan(part.net)
        return self._read_book(
            returns, part, gross, sharpe(part.net[has_return]), sharpe(np.nan_to_num(net[has_return]))
        )

    def _read_rank_ic(self, difference: MeanDifference, part: CleanFactor) -> StressReading:
        alive = part.alive and difference.counted >= self.clock.least and difference.t >= MIN_CLEAN_T
        return StressReading(difference.clean, difference.stressed, difference.error, difference.p, alive)

    def _read_book(
        self, difference: MeanDifference, part: CleanFactor, gross: float, clean: float, stressed: float
    ) -> StressReading:
        """Return the reading in Sharpe ratios; the error is scaled by clean Sharpe over clean mean."""
        alive = part.pays and difference.counted >= self.clock.least and gross >= MIN_CLEAN_T and clean > 0
        error = difference.error * clean / difference.clean if difference.clean else float("nan")
        return StressReading(clean, stressed, error, difference.p, alive)

    def _charge_costs(self, book: LongShortDays, side: Series | float | None = None) -> Series:
        costs = self.settings.costs
        return book.net(costs.bps_per_side if side is None else side, costs.borrow_bps_per_year)

    def _compare_with_zero(self, series: Series) -> MeanDifference:
        return compare_same_days(series, np.zeros(series.shape), self.clock)

    def _keep_members(self, values: Values, panel: Panel) -> NDArray[np.float32]:
        return np.where(panel.universe, values, np.float32(np.nan)).astype(np.float32, copy=False)


def _measure_likeness(part: CleanFactor, order: RowOrder) -> tuple[float, float]:
    """Return the mean daily rank correlation with the clean values, and the share of cells that is left."""
    daily = row_rank_correlation(order, part.order)
    present = daily[~np.isnan(daily)]
    cell_share = float(order.counts.sum()) / max(float(part.order.counts.sum()), 1.0)
    return (float(present.mean()) if present.size else float("nan")), cell_share


@dataclass(frozen=True, eq=False)
class LongShortDays:
    """Daily figures of a factor's long-short, ``[T]``, NaN before the first sleeve and on days without returns.

    `gross` is the return before costs. `trading` and `borrow` are the costs of one basis point per side and of one
    basis point of borrowing per year.
    """

    gross: Series
    trading: Series
    borrow: Series

    def net(self, bps_per_side: Series | float, borrow_bps: float) -> Series:
        """Return the daily return after costs in basis points, ``[T]``."""
        return np.asarray(self.gross - bps_per_side * self.trading - borrow_bps * self.borrow)

    def break_even(self, borrow_bps: float) -> float:
        """Return the break-even cost in basis points per side; NaN for a portfolio that never trades."""
        traded = float(np.nansum(self.trading))
        return float(np.nansum(self.gross - borrow_bps * self.borrow)) / traded if traded > 0 else math.nan


@dataclass(frozen=True, eq=False)
class PanelLabels:
    """The labels of one panel, sorted once.

    Attributes
    ----------
    order
        Order of the main horizon's labels, residual or raw as the settings say.
    earned
        Return of each name from one fill to the next day's, ``[T, N]``, decimal.
    horizon
        Days from entry to exit, and number of sleeves.
    """

    order: RowOrder
    earned: Frame
    horizon: int

    @classmethod
    def of(cls, panel: Panel, exposures: Exposures, settings: EvidenceSettings) -> PanelLabels:
        """Return the labels of a panel; `exposures` may be those of the true days."""
        raw = forward_returns(panel, settings.horizon_days)
        label = build_label(raw, panel, exposures, settings.returns, settings.label_scale)
        return cls(order_rows(label), next_open_returns(panel), settings.horizon_days)

    @classmethod
    def at_the_close(cls, panel: Panel, exposures: Exposures, settings: EvidenceSettings) -> PanelLabels:
        """Return the labels of trading at the next close instead of the next open."""
        fields = {**panel.fields, "open": panel.fields["close"]}
        return cls.of(replace(panel, fields=fields), exposures, settings)

    def rank_ic(self, order: RowOrder) -> Series:
        """Return the daily RankIC ``[T]`` of a factor with sorted values, NaN where undefined."""
        return row_rank_correlation(order, self.order)

    def book(self, order: RowOrder, sign: int) -> LongShortDays:
        """Return the long-short of a factor, or of its opposite for a negative sign."""
        ranks = rank_rows(order)
        if sign < 0:
            count = np.maximum(order.counts, 1)[:, None]
            ranks = (
                count + 1 - np.rint(2 * ranks * count) / 2
            ) / count  # exact, since quintile edges are compared with 0.2 and 0.8
        traded = measure_long_short(ranks, self.earned, ONE_POINT, self.horizon)
        borrowed = measure_long_short(ranks, self.earned, ONE_POINT_OF_BORROW, self.horizon)
        return LongShortDays(traded.gross, traded.gross - traded.net, borrowed.gross - borrowed.net)


def sharpe(series: Series) -> float:
    """Return the annual Sharpe ratio of daily returns ``[D]`` without NaN; NaN without variation."""
    deviation = float(series.std(ddof=1)) if series.size > 1 else 0.0
    return float(series.mean()) / deviation * math.sqrt(TRADING_DAYS_PER_YEAR) if deviation > 0 else math.nan
