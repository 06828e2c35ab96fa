"""All stress tests at once: each altered panel is made once and shared, and a factor is a function from a panel to values.

Only the days that are given are read: those of the search window, for agents, the command line and the close of a campaign
alike. So every figure here is a search fact. Nothing of the selection or sealed days can reach its reader, and a stress test
may steer a search.
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
from .stretches import find_known_stretches, find_stretches

Series = NDArray[np.float64]
Rows = NDArray[np.bool_]
Values = NDArray[np.floating]
DailyPair = tuple[Series, Series]
"""RankIC and net return of each day."""
Evaluate = Callable[[Panel], Sequence[Values]]
"""Computes every factor on a panel, each ``[T, N]``, known at the close of its day, NaN missing."""

After = Callable[[int], object]
"""Is told how many scenarios were met."""

STRESS_SEED: Final = 1
"""Of every draw, unless told otherwise: all factors meet the same disasters."""

Frame = NDArray[np.float64]
ONE_POINT = Costs(1.0, 0.0)
ONE_POINT_OF_BORROW = Costs(0.0, 1.0)


def run_stress_tests(
    evaluate: Evaluate, panel: Panel, settings: EvidenceSettings, seed: int = STRESS_SEED, after: After | None = None
) -> list[StressResult]:
    """Put factors through historical stretches, synthetic regimes, spoiled data, and worse fills and costs.

    Parameters
    ----------
    evaluate
        Computes the factors on a panel of the same names; it may not look ahead, nor remember an earlier panel. It is
        called once on the panel itself and once for each altered one.
    panel
        The days that may be read, and no other; T days, N names.
    settings
        Horizon, label and costs.
    seed
        Of every draw.
    after
        Is told after each scenario how many were met.

    Returns
    -------
    list of StressResult
        One for each factor, in their order. Figures are in the direction that the factor's own mean RankIC on the clean
        days gives it; a net Sharpe is after the settings' costs.
    """
    rehearsal = Rehearsal(panel, settings, seed)
    parts = [rehearsal.part(values) for values in evaluate(panel)]
    outcomes: list[list[StressOutcome]] = [[] for _ in parts]
    for met, found in enumerate(rehearsal.run(evaluate, parts), 1):
        for place, outcome in enumerate(found):
            outcomes[place].append(outcome)
        if after is not None:
            after(met)
    return [judge_outcomes(part.clean, outcomes[place]) for place, part in enumerate(parts)]


@dataclass(frozen=True, eq=False)
class CleanFactor:
    """A factor on the clean days: its values sorted, its direction, and what it earns each day."""

    values: NDArray[np.float32]
    order: RowOrder
    sign: int
    rank_ic: Series
    book: LongShortDays
    net: Series
    clean: dict[str, float]

    @property
    def alive(self) -> bool:
        """Tell whether it is beyond noise on the clean days."""
        return self.clean["t"] >= MIN_CLEAN_T

    @property
    def pays(self) -> bool:
        """Tell whether its book is, before costs, and earns something after them."""
        return self.alive and self.clean["gross_t"] >= MIN_CLEAN_T and self.clean["net_sharpe"] > 0


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """The stresses of one panel, made when they are needed and forgotten after."""

    panel: Panel
    settings: EvidenceSettings
    seed: int = STRESS_SEED

    @cached_property
    def exposures(self) -> Exposures:
        """Return what everybody is exposed to on the true days."""
        return measure_exposures(self.panel)

    @cached_property
    def moves(self) -> PanelMoves:
        """Return the true days' moves, taken apart."""
        return PanelMoves(self.panel, self.exposures)

    @cached_property
    def everywhere(self) -> Rows:
        """Return all days."""
        return np.ones(self.panel.days, np.bool_)

    @cached_property
    def ruler(self) -> PanelLabels:
        """Return the labels of the true days."""
        return PanelLabels.of(self.panel, self.exposures, self.settings)

    @property
    def clock(self) -> LabelOverlap:
        """Return how long labels overlap."""
        horizon = self.settings.horizon_days
        return LabelOverlap(horizon, LAG_PER_HORIZON * horizon)

    def part(self, values: Values) -> CleanFactor:
        """Measure a factor on the clean days."""
        order = order_rows(self._member(values, self.panel))
        daily = self.ruler.rank_ic(order)
        found = self._compare_with_zero(daily)
        sign = -1 if found.clean < 0 else 1
        book = self.ruler.book(order, sign)
        net = self._net(book)
        gross, kept = self._compare_with_zero(book.gross), net[~np.isnan(net)]
        clean = {
            "rank_ic": sign * found.clean, "t": sign * found.t, "net_sharpe": sharpe(kept), "gross_t": gross.t,
            "break_even_bps": book.break_even(self.settings.costs.borrow_bps_per_year), "days": float(found.days),
        }  # fmt: skip
        return CleanFactor(self._member(values, self.panel), order, sign, sign * daily, book, net, clean)

    def run(self, evaluate: Evaluate, parts: Sequence[CleanFactor]) -> Iterator[list[StressOutcome]]:
        """Yield the outcomes of every scenario, one for each factor."""
        yield from self._history(parts)
        yield from self._regimes(evaluate, parts)
        yield from self._data(evaluate, parts)
        yield from self._fills(parts)

    def _history(self, parts: Sequence[CleanFactor]) -> Iterator[list[StressOutcome]]:
        """Compare the days of each stretch with all others."""
        last = self.panel.days - self.settings.horizon_days - 1
        stretches = [*find_stretches(self.panel, self.moves, last), *find_known_stretches(self.panel, last)]
        for stretch in stretches:
            inside = np.zeros(self.panel.days, np.bool_)
            inside[stretch.start : stretch.stop] = True
            days = str(self.panel.dates[stretch.start]), str(self.panel.dates[stretch.stop - 1])
            named = Scenario(stretch.code, "history", stretch.words, *days)
            yield [self._measure_stretch(named, part, inside) for part in parts]

    def _measure_stretch(self, named: Scenario, part: CleanFactor, inside: Rows) -> StressOutcome:
        clock = self.clock
        known, held = (~np.isnan(series) for series in (part.rank_ic, part.net))
        ranked = compare_stretch(part.rank_ic[known], inside[known], clock)
        earned = compare_stretch(part.net[held], inside[held], clock)
        gross = self._compare_with_zero(part.book.gross[~inside]).t
        there, others = sharpe(part.net[held & inside]), sharpe(part.net[held & ~inside])
        book = self._book_reading(earned, part, gross, others, there)
        return StressOutcome(named, ranked.days, self._rank_ic_reading(ranked, part), book)

    def _regimes(self, evaluate: Evaluate, parts: Sequence[CleanFactor]) -> Iterator[list[StressOutcome]]:
        """Compute, label and trade the factors in each market."""
        for regime in build_regimes(self.moves, self.seed):
            ruler = PanelLabels.of(regime.panel, self.exposures, self.settings)
            side = self.settings.costs.bps_per_side * np.where(regime.rows, regime.costs, 1.0)
            found = []
            for part, values in zip(parts, evaluate(regime.panel), strict=True):
                order = order_rows(self._member(values, regime.panel))
                after = (part.sign * ruler.rank_ic(order), self._net(ruler.book(order, part.sign), side))
                found.append(self._compare_outcome(find_scenario(regime.code), part, after, regime.rows))
            yield found

    def _data(self, evaluate: Evaluate, parts: Sequence[CleanFactor]) -> Iterator[list[StressOutcome]]:
        """Compute the factors on spoiled data, and measure them on the true market."""
        for told in spoil_panel(self.panel, self.seed):
            found = []
            for part, values in zip(parts, evaluate(told.panel), strict=True):
                spread = told.spread(self._member(values, told.panel), self.panel.days)
                order = order_rows(spread)
                ranked = compare_same_days(part.rank_ic, part.sign * self.ruler.rank_ic(order), self.clock)
                named = find_scenario(told.code)
                found.append(
                    StressOutcome(
                        named, ranked.days, self._rank_ic_reading(ranked, part), None, *_likeness(part, order)
                    )
                )
            yield found

    def _fills(self, parts: Sequence[CleanFactor]) -> Iterator[list[StressOutcome]]:
        """Trade the same values later, at another price, or dearer."""
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
        yield [self._book_only("half_late", part, net) for part, net in zip(parts, halves, strict=True)]
        yield [self._book_only("costs_doubled", part, part.book.net(2 * side, borrow)) for part in parts]
        yield [self._book_only("borrow_doubled", part, part.book.net(side, 2 * borrow)) for part in parts]

    def _trade_late(self, part: CleanFactor, ruler: PanelLabels, late: int) -> DailyPair:
        """Return RankIC and net return of each day when the values of some days ago are traded."""
        order = part.order
        if late:
            old = np.full_like(part.values, np.nan)
            old[late:] = part.values[:-late]
            order = order_rows(old)
        return part.sign * ruler.rank_ic(order), self._net(ruler.book(order, part.sign))

    def _compare_outcome(
        self, named: Scenario, part: CleanFactor, after: DailyPair, rows: Rows | None = None
    ) -> StressOutcome:
        """Compare RankIC and book with the clean ones on the same days."""
        rows = self.everywhere if rows is None else rows
        ranked = compare_same_days(part.rank_ic[rows], after[0][rows], self.clock)
        return StressOutcome(named, ranked.days, self._rank_ic_reading(ranked, part), self._books(part, after[1], rows))

    def _book_only(self, code: str, part: CleanFactor, net: Series) -> StressOutcome:
        """Compare a book with itself, where RankIC is not concerned."""
        return StressOutcome(
            find_scenario(code), int(part.clean["days"]), None, self._books(part, net, self.everywhere)
        )

    def _books(self, part: CleanFactor, net: Series, rows: Rows) -> StressReading:
        """Compare a day's net returns with the clean ones on the same days."""
        earned = compare_same_days(part.net[rows], net[rows], self.clock)
        gross = self._compare_with_zero(part.book.gross[rows]).t
        known = rows & ~np.isnan(part.net)
        return self._book_reading(earned, part, gross, sharpe(part.net[known]), sharpe(np.nan_to_num(net[known])))

    def _rank_ic_reading(self, found: MeanDifference, part: CleanFactor) -> StressReading:
        alive = part.alive and found.counted >= self.clock.least and found.t >= MIN_CLEAN_T
        return StressReading(found.clean, found.stressed, found.error, found.p, alive)

    def _book_reading(
        self, found: MeanDifference, part: CleanFactor, gross: float, clean: float, stressed: float
    ) -> StressReading:
        """Return the reading in Sharpe ratios; the error of the difference is put on the clean one's scale."""
        alive = part.pays and found.counted >= self.clock.least and gross >= MIN_CLEAN_T and clean > 0
        error = found.error * clean / found.clean if found.clean else float("nan")
        return StressReading(clean, stressed, error, found.p, alive)

    def _net(self, book: LongShortDays, side: Series | float | None = None) -> Series:
        costs = self.settings.costs
        return book.net(costs.bps_per_side if side is None else side, costs.borrow_bps_per_year)

    def _compare_with_zero(self, series: Series) -> MeanDifference:
        return compare_same_days(series, np.zeros(series.shape), self.clock)

    def _member(self, values: Values, panel: Panel) -> NDArray[np.float32]:
        return np.where(panel.universe, values, np.float32(np.nan)).astype(np.float32, copy=False)


def _likeness(part: CleanFactor, order: RowOrder) -> tuple[float, float]:
    """Return the mean daily rank correlation with the clean values, and the share of their cells that is left."""
    daily = row_rank_correlation(order, part.order)
    known = daily[~np.isnan(daily)]
    left = float(order.counts.sum()) / max(float(part.order.counts.sum()), 1.0)
    return (float(known.mean()) if known.size else float("nan")), left


@dataclass(frozen=True, eq=False)
class LongShortDays:
    """Daily figures of a factor's long-short, ``[T]``, NaN before the first sleeve and on days without returns.

    `gross` is earned before any charge; `trading` and `borrow` are what one basis point a side, and one a year, cost.
    """

    gross: Series
    trading: Series
    borrow: Series

    def net(self, bps_per_side: Series | float, borrow_bps: float) -> Series:
        """Return what is left of each day after charges in basis points."""
        return np.asarray(self.gross - bps_per_side * self.trading - borrow_bps * self.borrow)

    def break_even(self, borrow_bps: float) -> float:
        """Return the basis points a side at which nothing is left; NaN for a book that never trades."""
        paid = float(np.nansum(self.trading))
        return float(np.nansum(self.gross - borrow_bps * self.borrow)) / paid if paid > 0 else math.nan


@dataclass(frozen=True, eq=False)
class PanelLabels:
    """The labels of one panel, sorted once.

    Attributes
    ----------
    order
        Of the main horizon's labels, as the settings take them: residual or raw.
    earned
        What each name earns from one fill to the next day's, ``[T, N]``.
    horizon
        Days from entry to exit; as many sleeves.
    """

    order: RowOrder
    earned: Frame
    horizon: int

    @classmethod
    def of(cls, panel: Panel, exposures: Exposures, settings: EvidenceSettings) -> PanelLabels:
        """Return the ruler of a panel; what is exposed to what is given, so that it can be that of the true days."""
        raw = forward_returns(panel, settings.horizon_days)
        label = build_label(raw, panel, exposures, settings.returns, settings.label_scale)
        return cls(order_rows(label), next_open_returns(panel), settings.horizon_days)

    @classmethod
    def at_the_close(cls, panel: Panel, exposures: Exposures, settings: EvidenceSettings) -> PanelLabels:
        """Return the ruler of who trades at the next close instead of the next open."""
        fields = {**panel.fields, "open": panel.fields["close"]}
        return cls.of(replace(panel, fields=fields), exposures, settings)

    def rank_ic(self, order: RowOrder) -> Series:
        """Return each day's RankIC of a factor whose values are sorted, ``[T]``, NaN where undefined."""
        return row_rank_correlation(order, self.order)

    def book(self, order: RowOrder, sign: int) -> LongShortDays:
        """Return the long-short of a factor, or of its opposite."""
        ranks = rank_rows(order)
        if sign < 0:
            count = np.maximum(order.counts, 1)[:, None]
            ranks = (count + 1 - np.rint(2 * ranks * count) / 2) / count  # exact, as the edges of a fifth must be
        traded = measure_long_short(ranks, self.earned, ONE_POINT, self.horizon)
        lent = measure_long_short(ranks, self.earned, ONE_POINT_OF_BORROW, self.horizon)
        return LongShortDays(traded.gross, traded.gross - traded.net, lent.gross - lent.net)


def sharpe(series: Series) -> float:
    """Return the annual Sharpe ratio of daily figures without NaN."""
    deviation = float(series.std(ddof=1)) if series.size > 1 else 0.0
    return float(series.mean()) / deviation * math.sqrt(TRADING_DAYS_PER_YEAR) if deviation > 0 else math.nan
