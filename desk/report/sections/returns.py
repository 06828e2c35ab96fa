"""A factor over time: equity, drawdown, months, quintiles, and the spread of its daily RankIC."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING

from ...figures import number, percent
from ..plots import Bars, Curve, LineChart, bar_chart, line_chart
from ..svg import Frame

if TYPE_CHECKING:
    from ....evaluation.closing import DailyRankIC, DailyRankICByWindow, Figure

HALF_FRAME = Frame(460, 200)
QUINTILE_FRAME = Frame(460, 235)
DRAWDOWN_FRAME = Frame(460, 110)
MONTHS_FRAME = Frame(460, 150)
MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
HISTOGRAM_BINS_EACH_SIDE = 8
SHARE_IN_INNER_BINS = 0.98
LABELLED_BIN = 4
"""Every so many bins from zero are labelled."""


@dataclass(frozen=True)
class MonthCell:
    """A month in the table of returns: its text, and a style: "up" or "down", and "selection" where it lies there."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class FactorReturns:
    """Drawings and the table of months; an empty drawing means that the run did not record its series.

    Attributes
    ----------
    months
        A year, its twelve months and the year's return, per cent after costs.
    """

    equity: str
    drawdown: str
    quintiles: str
    by_month: str
    histogram: str
    months: Sequence[tuple[str, Sequence[MonthCell]]]


def draw_returns(curve: DailyRankICByWindow | None) -> FactorReturns:
    """Return what a factor earned and foresaw, from its daily series."""
    windows = _list_windows(curve)
    earned = [(kind, _list_known(window.dates, window.net)) for kind, window in windows]
    earned = [(kind, days) for kind, days in earned if days]
    foreseen = [(kind, _list_known(window.dates, window.rank_ic)) for kind, window in windows]
    equity, falls = _draw_equity(earned)
    return FactorReturns(
        equity=equity,
        drawdown=falls,
        quintiles=_draw_quintiles([(kind, window.quintiles) for kind, window in windows if window.quintiles]),
        by_month=_draw_months([(kind, days) for kind, days in foreseen if days]),
        histogram=_draw_histogram([(kind, [value for _, value in days]) for kind, days in foreseen if days]),
        months=_list_months(earned),
    )


Days = Sequence[tuple[date, float]]
Windows = Sequence[tuple[str, Days]]


def _list_windows(curve: DailyRankICByWindow | None) -> list[tuple[str, DailyRankIC]]:
    return [("search", curve.search), ("selection", curve.selection)] if curve else []


def _list_known(dates: Sequence[str], values: Sequence[Figure]) -> Days:
    return [(date.fromisoformat(day), value) for day, value in zip(dates, values, strict=False) if value is not None]


def _mark_selection(windows: Windows) -> list[tuple[date, str]]:
    """Return the mark of the first selection day, where days before it are drawn too."""
    starts = [(days[0][0], kind) for kind, days in windows]
    return starts[1:] if len(starts) > 1 else []


def _draw_equity(windows: Windows) -> tuple[str, str]:
    """Draw equity, which starts at 1 and compounds over both windows, and its fall from the highest value before."""
    if not windows:
        return "", ""
    grown = compound(earned for _, days in windows for _, earned in days)
    lines: list[Curve] = []
    falls: list[Curve] = []
    for kind, days in windows:
        values, depths = zip(*islice(grown, len(days)), strict=True)
        dates = [day for day, _ in days]
        lines.append(Curve(kind, dates, values))
        falls.append(Curve(kind, dates, depths, filled=True))
    marks = _mark_selection(windows)
    equity = LineChart("Equity after costs", lines, lambda each: number(each, 2), marks, HALF_FRAME, base=1.0)
    fall = LineChart("Drawdown after costs", falls, lambda each: percent(each, 0), (), DRAWDOWN_FRAME)
    return line_chart(equity), line_chart(fall)


def compound(returns: Iterable[float]) -> Iterator[tuple[float, float]]:
    """Yield the equity after each return, from 1, and its fall from the highest value before, 0 or below."""
    value = highest = 1.0
    for earned in returns:
        value *= 1.0 + earned
        highest = max(highest, value)
        yield value, value / highest - 1.0


def _draw_quintiles(windows: Sequence[tuple[str, Mapping[str, Sequence[Figure]]]]) -> str:
    """Draw each quintile's return above the mean of all symbols, added up by month; the lowest values are 1."""
    if not windows:
        return ""
    months = [(month, parts) for _, table in windows for month, parts in sorted(table.items())]
    days = [_end_month(month) for month, _ in months]
    lines: list[Curve] = []
    for place in range(max(len(parts) for _, parts in months)):
        total, values = 0.0, []
        for _, parts in months:
            total += (parts[place] if place < len(parts) else None) or 0.0
            values.append(total)
        lines.append(Curve(f"q{place + 1}", days, values))
    first = [min(table) for _, table in windows[1:]]
    marks = [(date.fromisoformat(f"{month}-01"), "selection") for month in first]
    return line_chart(LineChart("Return of each quintile", lines, lambda each: percent(each, 0), marks, QUINTILE_FRAME))


def _end_month(month: str) -> date:
    """Return the day at which a month (YYYY-MM) is drawn: the last that every month has."""
    return date.fromisoformat(f"{month}-28")


def group_months(days: Iterable[tuple[str, Figure]]) -> dict[str, list[float]]:
    """Return the values of each month (YYYY-MM) of ISO days, in order; a day without a value is left out."""
    months: dict[str, list[float]] = {}
    for day, value in days:
        if value is not None:
            months.setdefault(day[:7], []).append(value)
    return months


def _draw_months(windows: Windows) -> str:
    """Draw the mean RankIC of each month; a month of two windows has a bar of each, the later one in front."""
    if not windows:
        return ""
    grouped = {kind: group_months((day.isoformat(), value) for day, value in days) for kind, days in windows}
    names = sorted({month for months in grouped.values() for month in months})
    means = {kind: {name: math.fsum(each) / len(each) for name, each in one.items()} for kind, one in grouped.items()}
    rows = [(kind, [means[kind].get(name) for name in names]) for kind in means]
    years = [name[:4] if name.endswith("-01") else "" for name in names]
    title = "RankIC by month"
    return bar_chart(Bars(title, years, rows, lambda value: number(value, 2), MONTHS_FRAME, one_each=True))


def _draw_histogram(windows: Sequence[tuple[str, Sequence[float]]]) -> str:
    """Draw the share of days by daily RankIC, in bins around zero; the outer bins hold what lies beyond."""
    if not windows:
        return ""
    sizes = sorted(abs(value) for _, values in windows for value in values)
    largest = sizes[int(SHARE_IN_INNER_BINS * (len(sizes) - 1))] or 1.0
    width = _round_up(largest / HISTOGRAM_BINS_EACH_SIDE)
    places = range(-HISTOGRAM_BINS_EACH_SIDE, HISTOGRAM_BINS_EACH_SIDE + 1)
    rows = [(kind, list(_count_bins(values, width, places))) for kind, values in windows]
    names = [number(place * width, 2) if place % LABELLED_BIN == 0 else "" for place in places]
    return bar_chart(Bars("Days by their RankIC", names, rows, lambda value: percent(value, 0), MONTHS_FRAME))


def _count_bins(values: Sequence[float], width: float, places: range) -> Iterator[float]:
    nearest = [min(max(round(value / width), places[0]), places[-1]) for value in values]
    yield from (nearest.count(place) / len(nearest) for place in places)


def _round_up(value: float) -> float:
    """Return the next of 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1.0, 2.0, 2.5, 5.0, 10.0) if step * power >= value * 0.999)


def _list_months(windows: Windows) -> list[tuple[str, Sequence[MonthCell]]]:
    """Return a row for each year: its months and the whole year, compounded."""
    days = [(day, value, kind) for kind, window in windows for day, value in window]
    rows: list[tuple[str, Sequence[MonthCell]]] = []
    for year in sorted({day.year for day, _, _ in days}):
        of_year = [one for one in days if one[0].year == year]
        months = [[one for one in of_year if one[0].month == month] for month in range(1, len(MONTH_NAMES) + 1)]
        rows.append((str(year), [_make_cell(each) for each in (*months, of_year)]))
    return rows


def _make_cell(days: Sequence[tuple[date, float, str]]) -> MonthCell:
    """Return the compounded return of a month or year, per cent."""
    if not days:
        return MonthCell("")
    earned = round(100.0 * (math.prod(1.0 + value for _, value, _ in days) - 1.0), 1) + 0.0
    sides = "up" if earned > 0 else "down" if earned < 0 else ""
    kind = " selection" if all(kind == "selection" for _, _, kind in days) else ""
    return MonthCell(number(earned, 1), f"{sides}{kind}".strip())
