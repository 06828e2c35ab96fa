"""What a tear sheet shows of a factor's daily series: returns, years, spread of the RankIC, and a usual check list."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Final

from ..figures import DASH, number, percent
from ..report.sections.returns import MONTH_NAMES, FactorReturns, compound, draw_returns, group_months

if TYPE_CHECKING:
    from ...evaluation.closing import DailyRankIC, DailyRankICByWindow, FactorEntry, Figure, WindowMetrics

MIN_YEAR_DAYS: Final = 60
"""Days of a year from which on its Sharpe ratio counts as a year's."""
MIN_FITNESS_TURNOVER: Final = 0.125
SIDES_OF_A_TRADE: Final = 2
"""The check list counts what is bought and what is sold; the sheet's turnover is one-way, half of that."""


@dataclass(frozen=True)
class YearLine:
    """One year of a window.

    Attributes
    ----------
    days
        Days with a RankIC.
    positive
        Share of these days on which the RankIC has the sign of the factor.
    returned, sharpe, fall
        Compounded return after costs, its Sharpe ratio, and the deepest fall of the year's equity; decimal, None where
        returns are not on record.
    """

    year: str
    window: str
    days: int
    rank_ic: Figure
    positive: Figure
    returned: Figure
    sharpe: Figure
    fall: Figure


@dataclass(frozen=True)
class LimitLine:
    """One check: its figures on search and selection days as text, the limit, and whether all are inside it."""

    check: str
    search: str
    selection: str
    limit: str
    holds: bool | None


@dataclass(frozen=True)
class TearSheet:
    """Drawings and months of the daily series, years, figures of the daily RankIC by window, and the check list."""

    returns: FactorReturns
    months: Sequence[str]
    years: Sequence[YearLine]
    spread: Sequence[Sequence[str]]
    limits: Sequence[LimitLine]


def build_tear_sheet(entry: FactorEntry, curve: DailyRankICByWindow | None) -> TearSheet:
    """Return the tear sheet of a factor; selection days are there only if it had a trial."""
    sign = -1 if (entry.metrics.search.rank_ic or 0.0) < 0 else 1
    if curve is not None and entry.metrics.selection is None:
        curve = curve.model_copy(update={"selection": type(curve.selection)()})
    series = _list_series(curve)
    years = [line for word, daily in series for line in _list_years(word, daily, sign)]
    limits = _list_limits(entry, series, years)
    return TearSheet(draw_returns(curve), MONTH_NAMES, years, _describe_spread(series), limits)


Series = Sequence[tuple[str, "DailyRankIC"]]


def _list_series(curve: DailyRankICByWindow | None) -> Series:
    windows = [("search", curve.search), ("selection", curve.selection)] if curve else []
    return [(word, daily) for word, daily in windows if any(value is not None for value in daily.rank_ic)]


def _list_years(word: str, daily: DailyRankIC, sign: int) -> list[YearLine]:
    lines = []
    for year in sorted({day[:4] for day in daily.dates}):
        places = [place for place, day in enumerate(daily.dates) if day.startswith(year)]
        ranks = [value for value in (daily.rank_ic[place] for place in places) if value is not None]
        net = [daily.net[place] for place in places] if daily.net else []
        returns = [value for value in net if value is not None]
        if not ranks:
            continue
        lines.append(
            YearLine(
                year,
                word,
                len(ranks),
                fmean(ranks),
                sum(value * sign > 0 for value in ranks) / len(ranks),
                math.prod(1.0 + value for value in returns) - 1.0 if returns else None,
                _compute_sharpe(returns),
                _find_fall(returns),
            )
        )
    return lines


def _compute_sharpe(returns: Sequence[float]) -> Figure:
    import numpy as np

    from ...evidence.scoring import annual_sharpe

    ratio = annual_sharpe(np.array(returns, dtype=np.float64))
    return ratio if math.isfinite(ratio) else None


def _find_fall(returns: Sequence[float]) -> Figure:
    """Return the deepest fall of the equity from its highest value before, 0 or below."""
    return min((0.0, *(fall for _, fall in compound(returns)))) if returns else None


def _describe_spread(series: Series) -> list[Sequence[str]]:
    """Return rows of a label and one figure for each window that is shown."""
    columns = []
    for _, daily in series:
        values = [value for value in daily.rank_ic if value is not None]
        mean, deviation = fmean(values), pstdev(values)
        scaled = [(value - mean) / deviation for value in values] if deviation else []
        skew, tails = (fmean([one**power for one in scaled]) if scaled else None for power in (3, 4))
        months = [fmean(each) for each in group_months(zip(daily.dates, daily.rank_ic, strict=False)).values()]
        columns.append(
            (
                number(deviation, 3),
                number(skew, 2, sign=True),
                number(tails - 3 if tails is not None else None, 2, sign=True),
                percent(sum(value > 0 for value in values) / len(values), 0),
                percent(sum(value > 0 for value in months) / len(months), 0) if months else DASH,
            )
        )
    labels = ("standard deviation, daily", "skewness", "excess kurtosis", "days above zero", "months above zero")
    return [(label, *cells) for label, *cells in zip(labels, *columns, strict=True)] if columns else []


# The check list that WorldQuant BRAIN made usual. It decides nothing here: the gate has its own steps.


def _list_limits(entry: FactorEntry, series: Series, years: Sequence[YearLine]) -> list[LimitLine]:
    windows: list[tuple[str, WindowMetrics]] = [("search", entry.metrics.search)]
    if entry.metrics.selection is not None:
        windows.append(("selection", entry.metrics.selection))
    returns = {word: [value for value in daily.net if value is not None] for word, daily in series}
    sharpes = {word: metrics.net_sharpe for word, metrics in windows}
    turnovers = {word: _count_both_sides(metrics) for word, metrics in windows}
    fitness = {word: _compute_fitness(metrics, returns.get(word, [])) for word, metrics in windows}
    worst = {word: _find_worst_year(word, years) for word, _ in windows}
    near = {"search": None if entry.library_correlation is None else abs(entry.library_correlation)}
    return [
        _check("Sharpe ratio after costs", sharpes, 2, (1.25, math.inf)),
        _check("fitness", fitness, 2, (1.0, math.inf)),
        _check("Sharpe ratio after costs, worst year", worst, 2, (0.0, math.inf)),
        _check("turnover a day, bought and sold", turnovers, None, (0.01, 0.70)),
        _check("largest correlation with the library", near, 2, (0.0, 0.7)),
    ]


def _compute_fitness(metrics: WindowMetrics, returns: Sequence[float]) -> Figure:
    """Return Sharpe x sqrt(annual return / turnover), all after costs; a turnover below 12.5 % counts as 12.5 %."""
    from ...evidence.scoring import TRADING_DAYS_PER_YEAR

    turnover = _count_both_sides(metrics)
    if metrics.net_sharpe is None or turnover is None or not returns:
        return None
    yearly = abs(fmean(returns)) * TRADING_DAYS_PER_YEAR
    return metrics.net_sharpe * math.sqrt(yearly / max(turnover, MIN_FITNESS_TURNOVER))


def _count_both_sides(metrics: WindowMetrics) -> Figure:
    """Return what is bought and sold in a day, as a share of gross."""
    return None if metrics.turnover is None else SIDES_OF_A_TRADE * metrics.turnover


def _find_worst_year(word: str, years: Sequence[YearLine]) -> Figure:
    whole = [line.sharpe for line in years if line.window == word and line.days >= MIN_YEAR_DAYS]
    return min((ratio for ratio in whole if ratio is not None), default=None)


def _check(check: str, figures: dict[str, Figure], digits: int | None, bounds: tuple[float, float]) -> LimitLine:
    """Return a line of the list; `digits` None writes shares."""

    def write(value: Figure) -> str:
        return percent(value) if digits is None else number(value, digits)

    known = [value for value in figures.values() if value is not None]
    low, high = bounds
    limit = f"at least {write(low)}" if math.isinf(high) else f"{write(low)} to {write(high)}"
    holds = all(low <= value <= high for value in known) if known else None
    return LimitLine(check, write(figures.get("search")), write(figures.get("selection")), limit, holds)
