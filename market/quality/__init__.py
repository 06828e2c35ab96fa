"""The traps of price data: one module each, and `find_data_warnings`, which looks for all of them.

Nothing is repaired. A threshold follows from how its statistic is distributed on a market without the trap, as each
module says; none is tuned to a data set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .detectors import DETECTORS as DETECTORS, find_data_warnings as find_data_warnings
    from .moves import LogMoves as LogMoves
    from .survivors import survivorship as survivorship
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "detectors": "DETECTORS find_data_warnings",
            "moves": "LogMoves",
            "survivors": "survivorship",
        },
    )
