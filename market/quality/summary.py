"""What a panel holds at a glance: its span, its fields, and three series over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..panel import Panel, compute_simple_returns
from ..traded import measure_traded_money

BUCKETS = 48
"""Stretches of equal length into which the days are cut, one character of a plot each."""


@dataclass(frozen=True)
class FieldSummary:
    """One field: the share of the cells of price rows that hold a value, and its lowest and highest value."""

    filled: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class PanelOverview:
    """What a panel holds.

    Attributes
    ----------
    days, symbols : int
        Its size.
    first_day, last_day : str
        Its span, ISO dates.
    members : tuple of int
        Symbols in the universe on the first and on the last day.
    listed, vanished : int
        Symbols without a price row on the first five days, and on the last five.
    gaps : int
        Cells without a price row between a symbol's first and last one.
    fields : mapping
        A summary of each field but returns.
    series : mapping
        For each stretch of days: symbols in the universe a day, the median absolute daily return (decimal), and the
        median of the money traded; None where nothing is known.
    """

    days: int
    symbols: int
    first_day: str
    last_day: str
    members: tuple[int, int]
    listed: int
    vanished: int
    gaps: int
    fields: Mapping[str, FieldSummary]
    series: Mapping[str, tuple[float | None, ...]]


def summarise_panel(panel: Panel) -> PanelOverview:
    """Return what a panel holds."""
    there = np.isfinite(panel.fields["open"]) | np.isfinite(panel.fields["close"])
    edge = min(5, panel.days)
    ever = there.any(axis=0)
    return PanelOverview(
        days=panel.days,
        symbols=panel.names,
        first_day=str(panel.dates[0]),
        last_day=str(panel.dates[-1]),
        members=(int(panel.universe[0].sum()), int(panel.universe[-1].sum())),
        listed=int((ever & ~there[:edge].any(axis=0)).sum()),
        vanished=int((ever & ~there[-edge:].any(axis=0)).sum()),
        gaps=_count_gaps(there),
        fields={name: _summarise_field(panel.fields[name], there) for name in panel.fields if name != "returns"},
        series=_cut_series(panel),
    )


def _count_gaps(there: NDArray[np.bool_]) -> int:
    """Return the number of empty cells between the first and the last row of each symbol."""
    begun = np.maximum.accumulate(there, axis=0)
    goes_on = np.maximum.accumulate(there[::-1], axis=0)[::-1]
    return int((begun & goes_on & ~there).sum())


def _summarise_field(values: NDArray[np.float64], there: NDArray[np.bool_]) -> FieldSummary:
    known = values[np.isfinite(values)]
    share = float(np.isfinite(values[there]).mean()) if there.any() else 0.0
    return FieldSummary(share, *((float(known.min()), float(known.max())) if known.size else (None, None)))


def _cut_series(panel: Panel) -> dict[str, tuple[float | None, ...]]:
    """Return the three series, each value of a stretch of days."""
    edges = np.linspace(0, panel.days, min(BUCKETS, panel.days) + 1).astype(int)
    moves = np.abs(compute_simple_returns(panel.fields["close"]))
    traded = measure_traded_money(panel)
    stretches = [slice(begin, end) for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]
    return {
        "symbols": tuple(float(panel.universe[rows].sum(axis=1).mean()) for rows in stretches),
        "move": tuple(_find_median(moves[rows]) for rows in stretches),
        "traded": tuple(_find_median(traded[rows]) for rows in stretches),
    }


def _find_median(values: NDArray[np.float64]) -> float | None:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if known.size else None
