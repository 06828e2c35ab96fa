"""Data checks for prices; `find_data_warnings` runs all of them.

Nothing is repaired. Each threshold follows from the distribution of its statistic on clean data, as each module says;
none is tuned to a data set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .detectors import DETECTORS as DETECTORS, find_data_warnings as find_data_warnings
    from .moves import LogMoves as LogMoves
    from .survivorship import find_survivorship as find_survivorship
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "detectors": "DETECTORS find_data_warnings",
            "moves": "LogMoves",
            "survivorship": "find_survivorship",
        },
    )
