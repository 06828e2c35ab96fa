"""The charts of the report as inline SVG: deterministic, scriptless, coloured by the page's own style sheet.

Drawn without a plotting library: a chart is 2 to 9 kB, its text stays text on screen and paper, and the bytes depend
on the numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from .svg import Frame, Scale, drawing, element, nice_ticks, path_data

WIDE_FRAME, NARROW_FRAME = Frame(520, 270), Frame(300, 170)
NARROW_SCREEN = 360.0
"""Width of a drawing for a telephone, in pixels; wide drawings have one each, since their letters would not be read."""
MAX_NARROW_NOTE_CHARS = 52
MAX_CHART_POINTS = 320  # of one drawn line: more than the pixels of paper can show
LETTER_WIDTH = 8.5
"""Of a date on an axis on a narrow screen, where letters are larger, in pixels of the drawing."""
MIN_YEARS_SHOWN = 3
"""Starts of years on an axis; where there are fewer, it shows quarters."""


@dataclass(frozen=True)
class Span:
    """A stretch of days on the timeline; `kind` is its style: search, embargo, selection or sealed."""

    kind: str
    label: str
    first: date
    last: date
    note: str = ""


@dataclass(frozen=True)
class Stage:
    """One step of the funnel: how many reached it, and a note on the others."""

    label: str
    amount: int
    note: str = ""


@dataclass(frozen=True)
class Curve:
    """A line through (day, value); `kind` is its style, `spread` half the width of a band around each value."""

    kind: str
    days: Sequence[date]
    values: Sequence[float]
    filled: bool = False
    spread: Sequence[float] = ()


@dataclass(frozen=True)
class LineChart:
    """Lines over time, with marked days and the format of the vertical axis."""

    label: str
    lines: Sequence[Curve]
    axis: Callable[[float], str]
    marks: Sequence[tuple[date, str]] = ()
    frame: Frame = WIDE_FRAME
    base: float | None = 0.0


@dataclass(frozen=True)
class Bars:
    """Groups of bars: one name per group, one row of values (None: unknown) per series.

    The axis reaches at least to `reach` on each side that has a bar, so that bars near zero look near zero. `spreads`
    has half the length of the whisker on each bar, by series; empty, or None for a bar without one. `one_each` is for
    groups of which only one series has a value: its bar takes the whole width.
    """

    label: str
    names: Sequence[str]
    series: Sequence[tuple[str, Sequence[float | None]]]
    axis: Callable[[float], str]
    frame: Frame = NARROW_FRAME
    reach: float = 0.0
    spreads: Sequence[Sequence[float | None]] = ()
    one_each: bool = False


def timeline(label: str, spans: Sequence[Span], *, narrow: bool = False) -> str:
    """Draw the windows on one bar, each as long as its days; a narrow drawing has their names alone."""
    frame = Frame(NARROW_SCREEN if narrow else 960, 60 if narrow else 92, left=0, right=0)
    across = frame.across(spans[0].first.toordinal(), spans[-1].last.toordinal() + 1)
    pieces = [piece for span in spans for piece in _draw_span(span, across, narrow=narrow)]
    return drawing(frame.width, frame.height, label, pieces)


def _draw_span(span: Span, across: Scale, *, narrow: bool) -> list[str]:
    left, right = across(span.first.toordinal()), across(span.last.toordinal() + 1)
    box = element("rect", class_=f"span {span.kind}", x=left, y=24.0, width=max(right - left, 1.0), height=30.0)
    if span.kind == "embargo":
        return [box]
    if narrow:
        return [box, element("text", span.label, class_="axis", x=left + 4, y=43.0)]
    return [
        box,
        element("text", span.label, class_="strong", x=left + 10, y=44.0),
        element("text", span.note, class_="note", x=right - 10, y=44.0, text_anchor="end"),
        element("line", class_="tick", x1=left, x2=left, y1=54.0, y2=60.0),
        element("text", span.first.isoformat(), class_="axis", x=left, y=74.0),
        element("text", span.last.isoformat(), class_="axis", x=right, y=16.0, text_anchor="end"),
    ]


def funnel(label: str, stages: Sequence[Stage]) -> str:
    """Draw the number that reached each step; heights are logarithmic, or the last steps would vanish."""
    width, height, middle = 960.0, 176.0, 66.0
    column = width / len(stages)
    top = math.log10(1 + max(stage.amount for stage in stages)) or 1.0
    halves = [2.0 + 50.0 * math.log10(1 + stage.amount) / top for stage in stages]
    pieces: list[str] = []
    for k, (stage, half) in enumerate(zip(stages, halves, strict=True)):
        pieces += _draw_stage(stage, k * column, column, (middle, half))
        if k + 1 < len(stages):
            pieces.append(_draw_funnel_join((k + 1) * column, middle, half, halves[k + 1]))
    return drawing(width, height, label, pieces)


def narrow_funnel(label: str, stages: Sequence[Stage]) -> str:
    """Draw the number that reached each step as rows, for a narrow screen; lengths are logarithmic."""
    top = math.log10(1 + max(stage.amount for stage in stages)) or 1.0
    pieces: list[str] = []
    y = 0.0
    for stage in stages:
        width = 4.0 + (NARROW_SCREEN - 84.0) * math.log10(1 + stage.amount) / top
        pieces.append(element("text", stage.label, class_="strong", x=0.0, y=y + 13))
        pieces.append(element("rect", class_="stage", x=0.0, y=y + 19, width=width, height=18.0))
        pieces.append(element("text", f"{stage.amount:,}", class_="strong", x=width + 8, y=y + 33))
        notes = _wrap_words(stage.note, MAX_NARROW_NOTE_CHARS)
        pieces += [element("text", line, class_="note", x=0.0, y=y + 52 + 15 * k) for k, line in enumerate(notes)]
        y += 47 + 15 * max(len(notes), 1)
    return drawing(NARROW_SCREEN, y, label, pieces)


def _draw_stage(stage: Stage, left: float, column: float, place: tuple[float, float]) -> list[str]:
    middle, half = place
    box = element("rect", class_="stage", x=left, y=middle - half, width=column - 36, height=2 * half)
    inside = half > 16
    return [
        box,
        element("text", f"{stage.amount:,}", class_="big", x=left + 12, y=middle + 7 if inside else middle - half - 8),
        element("text", stage.label, class_="strong", x=left, y=138.0),
        *(
            element("text", line, class_="note", x=left, y=155.0 + 15 * k)
            for k, line in enumerate(_wrap_words(stage.note, 34)[:2])
        ),
    ]


def _draw_funnel_join(x: float, middle: float, half: float, following: float) -> str:
    corners = [(x - 36, middle - half), (x, middle - following), (x, middle + following), (x - 36, middle + half)]
    return element("path", class_="join", d=path_data(corners, close=True))


def _wrap_words(text: str, width: int) -> list[str]:
    lines: list[str] = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines if lines != [""] else []


def line_chart(chart: LineChart) -> str:
    """Draw lines over time; a chart without a single point says so."""
    lines = [line for line in chart.lines if line.days]
    if not lines:
        return _draw_empty(chart.label, chart.frame)
    across, upward = _make_time_scales(chart, lines)
    pieces = [*_draw_grid(chart.frame, upward, chart.axis), *_draw_dates(chart.frame, across)]
    pieces += [piece for mark in chart.marks for piece in _draw_mark(mark, across, chart.frame)]
    pieces += [_draw_band(line, across, upward) for line in lines if line.spread]
    pieces += [_draw_line(line, across, upward) for line in lines]
    return drawing(chart.frame.width, chart.frame.height, chart.label, pieces)


def _make_time_scales(chart: LineChart, lines: Sequence[Curve]) -> tuple[Scale, Scale]:
    values = [value for line in lines for value in line.values]
    bands = [(value, half) for line in lines for value, half in zip(line.values, line.spread, strict=False)]
    values += [value + side * half for value, half in bands for side in (-1, 1)]
    values += [] if chart.base is None else [chart.base]
    days = [day.toordinal() for line in lines for day in (line.days[0], line.days[-1])]
    return chart.frame.across(min(days), max(days)), chart.frame.upward(*_pad_range(min(values), max(values)))


def _pad_range(low: float, high: float) -> tuple[float, float]:
    room = 0.06 * (high - low) or max(abs(high), 1e-3)
    return (low - room if low < 0 else low), (high + room if high > 0 else high)


def _pick_places(line: Curve) -> list[int]:
    """Return the places of the points that are drawn, the last one included."""
    step = max(1, math.ceil(len(line.days) / MAX_CHART_POINTS))
    return [*range(0, len(line.days) - 1, step), len(line.days) - 1]


def _draw_band(line: Curve, across: Scale, upward: Scale) -> str:
    places = _pick_places(line)
    upper, lower = (
        [(across(line.days[k].toordinal()), upward(line.values[k] + side * line.spread[k])) for k in places]
        for side in (1, -1)
    )
    return element("path", class_=f"band {line.kind}", d=path_data([*upper, *reversed(lower)], close=True))


def _draw_line(line: Curve, across: Scale, upward: Scale) -> str:
    points = [(across(line.days[k].toordinal()), upward(line.values[k])) for k in _pick_places(line)]
    drawn = element("path", class_=f"line {line.kind}", d=path_data(points))
    if not line.filled:
        return drawn
    floor = upward(min(max(0.0, upward.low), upward.high))
    shade = path_data([(points[0][0], floor), *points, (points[-1][0], floor)])
    return element("path", class_=f"area {line.kind}", d=shade) + drawn  # the line ends where the days end


def _draw_grid(frame: Frame, upward: Scale, axis: Callable[[float], str]) -> list[str]:
    pieces: list[str] = []
    for value in nice_ticks(upward.low, upward.high):
        y = upward(value)
        kind = "zero" if value == 0 else "rule"
        pieces.append(element("line", class_=kind, x1=frame.left, x2=frame.width - frame.right, y1=y, y2=y))
        pieces.append(element("text", axis(value), class_="axis", x=frame.left - 6, y=y + 3.5, text_anchor="end"))
    return pieces


def _draw_dates(frame: Frame, across: Scale) -> list[str]:
    """Draw the starts of years, or of quarters where fewer than three years are shown."""
    starts = _list_starts(*(date.fromordinal(int(day)) for day in (across.low, across.high)))
    room = (across(starts[1][1].toordinal()) - across(starts[0][1].toordinal())) if len(starts) > 1 else frame.width
    every = max(1, math.ceil((LETTER_WIDTH * max(len(label) for label, _ in starts) + 6) / room)) if starts else 1
    y = frame.height - frame.bottom
    pieces: list[str] = []
    for label, day in starts[::every]:
        x = across(day.toordinal())
        if x + LETTER_WIDTH * len(label) / 2 > frame.width:
            continue
        pieces.append(element("line", class_="tick", x1=x, x2=x, y1=y, y2=y + 4))
        pieces.append(element("text", label, class_="axis", x=x, y=y + 16, text_anchor="middle"))
    return pieces


def _list_starts(first: date, last: date) -> list[tuple[str, date]]:
    years = [(str(year), date(year, 1, 1)) for year in range(first.year + 1, last.year + 1)]
    if len(years) >= MIN_YEARS_SHOWN:
        return years
    quarters = (date(year, month, 1) for year in range(first.year, last.year + 1) for month in (1, 4, 7, 10))
    return [(f"{day:%Y-%m}", day) for day in quarters if first <= day <= last]


def _draw_mark(mark: tuple[date, str], across: Scale, frame: Frame) -> list[str]:
    x = across(mark[0].toordinal())
    return [
        element("line", class_="mark", x1=x, x2=x, y1=frame.top - 8, y2=frame.height - frame.bottom),
        element("text", mark[1], class_="note", x=x + 5, y=frame.top + 1),
    ]


def bar_chart(bars: Bars) -> str:
    """Draw groups of bars around zero."""
    values = [value for _, row in bars.series for value in row if value is not None]
    if not values:
        return _draw_empty(bars.label, bars.frame)
    for (_, row), spread in zip(bars.series, bars.spreads, strict=False):
        pairs = [(one, half) for one, half in zip(row, spread, strict=True) if one is not None and half is not None]
        values += [one + side * half for one, half in pairs for side in (-1, 1)]
    low, high = (-bars.reach if min(values) < 0 else 0.0), (bars.reach if max(values) > 0 else 0.0)
    upward = bars.frame.upward(*_pad_range(min(*values, low), max(*values, high)))
    slot = (bars.frame.width - bars.frame.right - bars.frame.left) / len(bars.names)
    pieces = _draw_grid(bars.frame, upward, bars.axis)
    for k, name in enumerate(bars.names):
        left = bars.frame.left + k * slot
        pieces += _draw_group(bars, k, (left, slot), upward)
        y = bars.frame.height - 6
        pieces.append(element("text", name, class_="axis", x=left + slot / 2, y=y, text_anchor="middle"))
    return drawing(bars.frame.width, bars.frame.height, bars.label, pieces)


def _draw_group(bars: Bars, group: int, place: tuple[float, float], upward: Scale) -> list[str]:
    left, slot = place
    beside = 1 if bars.one_each else len(bars.series)
    room = min(0.72 * slot, 44.0 * beside)
    width = room / beside
    start = left + (slot - room) / 2
    pieces: list[str] = []
    for k, (kind, row) in enumerate(bars.series):
        value = row[group]
        if value is not None:
            y = sorted((upward(value), upward(0.0)))
            x = start + (k % beside) * width
            box = {"x": x, "y": y[0], "width": max(width - 1, 1.0), "height": max(y[1] - y[0], 0.5)}
            pieces.append(element("rect", class_=f"bar {kind}", **box))
        half = bars.spreads[k][group] if bars.spreads else None
        if value is not None and half is not None:
            middle = start + (k % beside + 0.5) * width - 0.5
            ends = {"y1": upward(value - half), "y2": upward(value + half)}
            pieces.append(element("line", class_="whisker", x1=middle, x2=middle, **ends))
    return pieces


def _draw_empty(label: str, frame: Frame) -> str:
    text = element("text", "not reached", class_="note", x=frame.width / 2, y=frame.height / 2, text_anchor="middle")
    return drawing(frame.width, frame.height, label, [text])
