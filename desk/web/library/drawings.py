"""The drawings on the pages of the library: evidence on new days with its limits, and RankIC by window."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ....evidence import LAG_PER_HORIZON, newey_west_t
from ...figures import NORMAL_QUANTILE_95, any_value, number
from ...report.plots import Curve, LineChart, line_chart
from ...report.svg import Frame, Scale, drawing, element, nice_ticks, path_data

if TYPE_CHECKING:
    from ....library import Condition

CHART_FRAME: Final = Frame(520, 250, left=58)
SPARK_FRAME: Final = Frame(140, 30, left=2, right=2, top=3, bottom=3)
MIN_E_VALUE: Final = 1e-3
"""E-values below are drawn here: the axis is logarithmic."""
WINDOWS_DRAWN: Final = 4
"""Search, selection, sealed and all new days; their quarters follow."""
MAX_QUARTERS_DRAWN: Final = 8
SLOT_WIDTH: Final = 76.0
MIN_RANGE: Final = 1e-3
"""Of an axis on which nothing is known."""


def _log(value: float) -> float:
    return math.log10(max(value, MIN_E_VALUE))


def draw_evidence_spark(condition: Condition) -> str:
    """Return the evidence that decides on an entry at the ends of its quarters, from 1, with the limit."""
    row = condition.entry
    watched = row.status == "watchlist"
    values = [1.0, *(condition.e_values if watched else condition.decay_e_values)]
    limit = condition.record()["proves_at"] if watched else condition.rules.retire_e or None
    if len(values) < 2:
        return ""
    logs = [_log(value) for value in values]
    bounds = [*logs, 0.0, *([_log(limit)] if limit else [])]
    across, upward = SPARK_FRAME.across(0, len(logs) - 1), SPARK_FRAME.upward(min(bounds), max(bounds))
    pieces = []
    if limit:
        y = upward(_log(limit))
        pieces.append(element("line", class_="line limit", x1=0.0, x2=SPARK_FRAME.width, y1=y, y2=y))
    pieces.append(
        element("path", class_="line since", d=path_data([(across(k), upward(log)) for k, log in enumerate(logs)]))
    )
    what = "e-value, proven at" if watched else "decay e-value, retired at"
    label = f"{what} {any_value(limit)}; now {any_value(values[-1])}"
    return drawing(SPARK_FRAME.width, SPARK_FRAME.height, label, pieces)


def draw_evidence(facts: Mapping[str, Any], retire_e: float) -> list[tuple[str, str, str]]:
    """Return the charts over the new days of a factor, each with its title and a note; none before two days.

    Parameters
    ----------
    facts
        The factor as `describe_fully` gives it.
    retire_e
        The e-detector that retires a factor; 0 for none.
    """
    quarters, charts = facts["quarters"], []
    if quarters:
        days = [date.fromisoformat(day) for day in (facts["judged_to"], *(one["day"] for one in quarters))]
        charts.append(
            _draw_e_values(
                "Evidence on new days",
                (days, [1.0, *(one["e_value"] for one in quarters)]),
                facts["proves_at"],
                "e-value against no RankIC in the direction held; logarithmic",
            )
        )
        charts.append(
            _draw_e_values(
                "Decay",
                (days, [1.0, *(one["decay"]["e_value"] for one in quarters)]),
                retire_e or None,
                "e-detector against at least half of the RankIC on selection; logarithmic",
            )
        )
    if len(facts["daily"]) > 1:
        charts.append(_draw_cumulative(facts))
    return charts


def _draw_e_values(
    title: str, line: tuple[Sequence[date], Sequence[float]], limit: float | None, note: str
) -> tuple[str, str, str]:
    days, values = line
    curves = [Curve("since", days, [_log(value) for value in values])]
    if limit:
        curves.append(Curve("limit", [days[0], days[-1]], [_log(limit)] * 2))
    said = f"{title}, {any_value(values[-1])}{f' against {any_value(limit)}' if limit else ''}"
    chart = line_chart(LineChart(said, curves, lambda log: any_value(10.0**log), frame=CHART_FRAME))
    return title, chart, f"{note}{f'; dashed: {any_value(limit)}' if limit else ''}"


def _draw_cumulative(facts: Mapping[str, Any]) -> tuple[str, str, str]:
    """Draw the daily RankIC added up with its 95 % band, and dashed the bar of decay."""
    days = [date.fromisoformat(one["day"]) for one in facts["daily"]]
    daily = np.asarray([np.nan if one["rank_ic"] is None else one["rank_ic"] for one in facts["daily"]])
    steps = np.cumsum(~np.isnan(daily))  # a day without a value adds neither to the sum nor to its error
    deviation = newey_west_t(daily, _lag(facts)).daily_deviation
    spread = NORMAL_QUANTILE_95 * deviation * np.sqrt(steps) if math.isfinite(deviation) else np.zeros(len(days))
    curves = [Curve("since", days, np.nancumsum(daily).tolist(), spread=spread.tolist())]
    note = "daily values added up, with a 95 % band"
    bar = facts["decay"]["bar"] if facts["decay"] else None
    if bar is not None:
        curves.append(Curve("limit", [days[0], days[-1]], [bar * int(steps[0]), bar * int(steps[-1])]))
        note += "; dashed: the bar of decay"
    chart = line_chart(LineChart("RankIC since, added up", curves, lambda value: number(value, 1), frame=CHART_FRAME))
    return "RankIC since, added up", chart, note


def list_windows(facts: Mapping[str, Any], selection_t: float | None) -> list[dict[str, Any]]:
    """Return RankIC by window in the direction held, with half the width of its 95 % interval; None where unknown.

    After search, selection and sealed stand all new days, then their quarters, the newest at the end.
    """
    search, sealed = facts["search"] or {}, facts["sealed"] or {}
    rows = [
        _tell_window("search", "search", facts["search_rank_ic"], search.get("t")),
        _tell_window("selection", "selection", facts["selection_rank_ic"], selection_t),
        _tell_window("sealed", "sealed", sealed.get("rank_ic"), sealed.get("t")),
        _tell_window("since", "since", facts["rank_ic_since"], facts["t_since"]),
    ]
    first, places = 0, {one["day"]: place for place, one in enumerate(facts["daily"])}
    for quarter in facts["quarters"]:
        end = places[quarter["day"]] + 1
        part = [np.nan if one["rank_ic"] is None else one["rank_ic"] for one in facts["daily"][first:end]]
        first = end
        error = newey_west_t(part, _lag(facts)).standard_error
        half = NORMAL_QUANTILE_95 * error if math.isfinite(error) else None
        rows.append({"window": f"to {quarter['day']}", "kind": "since", "rank_ic": quarter["rank_ic"], "half": half})
    return rows


def _lag(facts: Mapping[str, Any]) -> int:
    return int(LAG_PER_HORIZON * (facts["horizon_days"] or 0))


def _tell_window(name: str, kind: str, rank_ic: float | None, t: float | None) -> dict[str, Any]:
    half = abs(NORMAL_QUANTILE_95 * rank_ic / t) if rank_ic is not None and t else None
    return {"window": name, "kind": kind, "rank_ic": rank_ic, "half": half}


def draw_windows(rows: Sequence[Mapping[str, Any]]) -> str:
    """Draw RankIC by window with its intervals: the windows, then the last quarters of new days."""
    shown = [*rows[:WINDOWS_DRAWN], *rows[WINDOWS_DRAWN:][-MAX_QUARTERS_DRAWN:]]
    frame = Frame(58.0 + SLOT_WIDTH * len(shown), 250, left=58)
    known = [(row["rank_ic"], row["half"] or 0.0) for row in shown if row["rank_ic"] is not None]
    ends = [0.0, *(value + side * half for value, half in known for side in (-1, 1))]
    room = 0.06 * (max(ends) - min(ends)) or MIN_RANGE
    upward = frame.upward(min(ends) - room, max(ends) + room)
    pieces = []
    for value in nice_ticks(upward.low, upward.high):
        y = upward(value)
        kind = "rule" if value else "zero"
        pieces.append(element("line", class_=kind, x1=frame.left, x2=frame.width - frame.right, y1=y, y2=y))
        pieces.append(element("text", number(value, 3), class_="axis", x=frame.left - 6, y=y + 3.5, text_anchor="end"))
    for place, row in enumerate(shown):
        pieces += _draw_window(row, frame.left + (place + 0.5) * SLOT_WIDTH - 5, frame, upward)
    return drawing(frame.width, frame.height, "RankIC by window, with 95 % intervals", pieces)


def _draw_window(row: Mapping[str, Any], middle: float, frame: Frame, upward: Scale) -> list[str]:
    name = row["window"].removeprefix("to ")
    pieces = [element("text", name, class_="axis", x=middle, y=frame.height - 6, text_anchor="middle")]
    value, half = row["rank_ic"], row["half"]
    if value is not None:
        top, bottom = sorted((upward(value), upward(0.0)))
        size = {"x": middle - 14, "y": top, "width": 28.0, "height": max(bottom - top, 0.5)}
        pieces.append(element("rect", class_=f"bar {row['kind']}", **size))
        if half is not None:
            reach = {"y1": upward(value - half), "y2": upward(value + half)}
            pieces.append(element("line", class_="whisker", x1=middle, x2=middle, **reach))
    return pieces
