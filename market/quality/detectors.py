"""All data checks, in the order in which they are reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import DataWarning
from ..panel import Panel
from .back_adjustment import find_adjusted_levels, find_adjusted_volume
from .bars import find_odd_bars, find_stale_prices
from .bounce import find_bid_ask_bounce
from .duplicates import find_twin_columns, find_twin_symbols
from .early_figures import find_early_figures
from .jumps import find_bad_ticks, find_unadjusted_splits
from .moves import LogMoves
from .renames import find_suspected_renames
from .shifted import find_shifted_columns, find_shifted_symbols
from .survivorship import find_survivorship
from .trading_days import find_calendar_gaps, find_thin_days

DETECTORS: Sequence[Callable[[LogMoves], DataWarning | None]] = (
    find_survivorship,
    find_adjusted_levels,
    find_adjusted_volume,
    find_bad_ticks,
    find_odd_bars,
    find_unadjusted_splits,
    find_stale_prices,
    find_shifted_symbols,
    find_shifted_columns,
    find_bid_ask_bounce,
    find_twin_symbols,
    find_twin_columns,
    find_suspected_renames,
    find_calendar_gaps,
    find_thin_days,
    find_early_figures,
)
"""The data checks, in the order in which they are reported."""


def find_data_warnings(panel: Panel) -> tuple[DataWarning, ...]:
    """Return all data warnings of a panel; the same panel gives the same warnings."""
    moves = LogMoves(panel)
    return tuple(warning for detector in DETECTORS if (warning := detector(moves)) is not None)
