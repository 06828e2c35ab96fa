"""The chance that the next trial accepts a factor, by its true RankIC."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

from ...figures import number, percent
from ..svg import Frame, Scale, drawing, element, nice_ticks, path_data

if TYPE_CHECKING:
    from ....evaluation.closing import Results, SelectionPower

POWER_FRAME = Frame(460, 210, bottom=36)
CURVE_STEPS = 60
LIKELY_POWER = 0.8
"""Chance of acceptance that counts as likely: four times in five."""
REACH = 1.7
"""Length of the axis, in true RankICs that would be accepted four times in five."""


def draw_power(results: Results) -> str:
    """Draw the power of the first trial and of the next one, with the RankICs that trials measured as ticks.

    A trial that needs a measured RankIC r at its threshold, which is t standard errors, accepts a factor of a true
    RankIC x with probability Phi((x - r) t / r), by the normal law. Empty where the run stated no power.
    """
    known = [
        (kind, power)
        for kind, power in (("first", results.power_before), ("second", results.power))
        if power is not None and power.rank_ic_provable and power.t_required
    ]
    if not known:
        return ""
    far = REACH * max((power.rank_ic_likely or power.rank_ic_provable or 0.0) for _, power in known)
    across, upward = POWER_FRAME.across(0.0, far), POWER_FRAME.upward(0.0, 1.0)
    pieces = _draw_axes(across, upward)
    pieces += [_draw_curve(kind, power, across, upward) for kind, power in known]
    for value in list_measured(results):
        x = across(min(max(value, 0.0), far))
        pieces.append(element("line", class_="measured", x1=x, x2=x, y1=upward(0.0), y2=upward(0.0) - 10))
    return drawing(POWER_FRAME.width, POWER_FRAME.height, "Chance of acceptance by true RankIC", pieces)


def list_measured(results: Results) -> list[float]:
    """Return the RankIC on selection of each trial, in the direction held."""
    tested = [entry.metrics for entry in results.entries if entry.trial is not None]
    pairs = [(each.selection.rank_ic, each.search.rank_ic or 0.0) for each in tested if each.selection]
    return [-value if sign < 0 else value for value, sign in pairs if value is not None]


def _draw_axes(across: Scale, upward: Scale) -> list[str]:
    left, right = across(across.low), across(across.high)
    pieces: list[str] = []
    for share in (0.0, 0.25, 0.5, LIKELY_POWER, 1.0):
        y, kind = upward(share), "mark" if share == LIKELY_POWER else "zero" if share == 0 else "rule"
        pieces.append(element("line", class_=kind, x1=left, x2=right, y1=y, y2=y))
        pieces.append(element("text", percent(share, 0), class_="axis", x=left - 6, y=y + 3.5, text_anchor="end"))
    floor = upward(0.0)
    for value in nice_ticks(across.low, across.high):
        x = across(value)
        pieces.append(element("line", class_="tick", x1=x, x2=x, y1=floor, y2=floor + 4))
        pieces.append(element("text", number(value, 3), class_="axis", x=x, y=floor + 16, text_anchor="middle"))
    return [*pieces, element("text", "true RankIC", class_="axis", x=right, y=floor + 31, text_anchor="end")]


def _draw_curve(kind: str, power: SelectionPower, across: Scale, upward: Scale) -> str:
    needed, t = power.rank_ic_provable or 0.0, power.t_required or 0.0
    places: Sequence[float] = [across.high * step / CURVE_STEPS for step in range(CURVE_STEPS + 1)]
    law = NormalDist()
    points = [(across(x), upward(law.cdf((x - needed) * t / needed))) for x in places]
    return element("path", class_=f"line {kind}", d=path_data(points))
