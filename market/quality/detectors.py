"""Every detector of a trap of price data, in the order in which it is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..data_warning import DataWarning
from ..panel import Panel
from .bars import odd_bars
from .bounce import bid_ask_bounce
from .columns import shifted_columns, twin_columns
from .days import calendar_gaps, thin_days
from .levels import adjusted_levels, adjusted_volume
from .moves import LogMoves
from .shifts import shifted_names
from .splits import unadjusted_splits
from .stale import stale_prices
from .survivors import survivorship
from .ticks import bad_ticks
from .twins import twin_names

__all__ = ["DETECTORS", "find_data_warnings"]

DETECTORS: Sequence[Callable[[LogMoves], DataWarning | None]] = (
    survivorship,
    adjusted_levels,
    adjusted_volume,
    bad_ticks,
    odd_bars,
    unadjusted_splits,
    stale_prices,
    shifted_names,
    shifted_columns,
    bid_ask_bounce,
    twin_names,
    twin_columns,
    calendar_gaps,
    thin_days,
)
"""What is looked for, in the order in which it is told."""


def find_data_warnings(panel: Panel) -> tuple[DataWarning, ...]:
    """Return everything in a panel that looks wrong; the same panel gives the same answer."""
    moves = LogMoves(panel)
    return tuple(found for detector in DETECTORS if (found := detector(moves)) is not None)
