"""The drawings on the pages of paper books."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date

import numpy as np

from ....portfolio import chain_returns
from ...facts.books import StepLine
from ...figures import percent
from ...report.plots import Curve, LineChart, line_chart
from ...report.svg import Frame, drawing, element

METER_WIDTH, METER_HEIGHT = 120.0, 12.0
RETURNS_FRAME = Frame(520, 270, left=78)
"""Room for a percentage of three digits behind the point."""
FULL_RANGE, FINE_RANGE = 0.1, 0.01
"""Largest values of a chart above which its axis has whole percents, or tenths of them."""


def draw_returns(lines: Sequence[StepLine]) -> tuple[str, str]:
    """Return the growth and the drawdown of a book, gated and ungated, time-weighted; empty without two steps.

    A book that was worth nothing on a day has no returns after it, and is drawn up to that day.
    """
    if len(lines) < 2:
        return "", ""
    days = [date.fromisoformat(one.facts["day"]) for one in lines]
    flows = [one.facts["flow"] for one in lines]
    growth, falls = [], []
    for kind, name in (("book", "equity"), ("selection", "ungated_equity")):
        equity = [one.facts[name] for one in lines]
        end = next((place for place, worth in enumerate(equity) if worth <= 0), len(equity))
        curve = np.cumprod([1.0, *(1.0 + chain_returns(equity[:end], flows[:end]))]) if end > 1 else np.ones(end)
        growth.append(Curve(kind, days[:end], (curve - 1.0).tolist()))
        falls.append(Curve(kind, days[:end], (curve / np.maximum.accumulate(curve) - 1.0).tolist()))
    return (
        line_chart(
            LineChart(
                "Return since the first step, gated and ungated", growth, _choose_format(growth), frame=RETURNS_FRAME
            )
        ),
        line_chart(LineChart("Drawdown, gated and ungated", falls, _choose_format(falls), frame=RETURNS_FRAME)),
    )


def _choose_format(curves: Sequence[Curve]) -> Callable[[float], str]:
    """Return percentages with as many digits as their range needs."""
    values = [abs(value) for curve in curves for value in curve.values]
    largest = max(values, default=0.0)
    digits = 0 if largest > FULL_RANGE else 1 if largest > FINE_RANGE else 3
    return lambda value: percent(value, digits)


def draw_meter(used: float | None, passed: bool) -> str:
    """Return the share of a limit that is used as a bar, cut at the whole; an empty one where it is not known."""
    inside = METER_WIDTH * min(max(used or 0.0, 0.0), 1.0)
    kind = "meter-used" if passed else "meter-over"
    filled = inside if passed or used is not None else METER_WIDTH
    label = "share of the limit not known" if used is None else f"{percent(used, 0)} of the limit"
    room = element("rect", class_="meter-room", width=METER_WIDTH, height=METER_HEIGHT, rx=2)
    return drawing(
        METER_WIDTH,
        METER_HEIGHT,
        label,
        [room, element("rect", class_=kind, width=filled, height=METER_HEIGHT, rx=2)],
    )


def draw_sides(long: float, short: float, reach: float) -> str:
    """Return long and short exposure as a bar to each side of the middle; `reach` is the exposure of half the width."""
    middle = METER_WIDTH / 2
    right, left = (middle * min(side / reach, 1.0) if reach else 0.0 for side in (long, short))
    pieces = [
        element("rect", class_="meter-room", width=METER_WIDTH, height=METER_HEIGHT, rx=2),
        element("rect", class_="side-long", x=middle, width=right, height=METER_HEIGHT),
        element("rect", class_="side-short", x=middle - left, width=left, height=METER_HEIGHT),
        element("line", class_="zero", x1=middle, x2=middle, y1=0.0, y2=METER_HEIGHT),
    ]
    return drawing(METER_WIDTH, METER_HEIGHT, f"long {percent(long, 1)}, short {percent(short, 1)}", pieces)
