"""The day since which a row is known, which is never earlier than its cell says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import Audit
from .arrays import to_flags
from .days import MISSING_DAY, read_days

if TYPE_CHECKING:
    from ..table import Table

KNOWN_COLUMN = "known"
TIME_OF_DAY = r"[T ]\s*([0-9]{1,2}:[0-9]{2})"
MIDNIGHT = r"[T ]\s*0{1,2}:00(:00(\.0+)?)?\s*([Zz]|[-+][0-9:]+)?$"
TIME_AT_END = r"[T ]\s*[0-9]{1,2}:[0-9:.]+\s*([APap][Mm])?$"


def read_known_days(table: Table, audit: Audit) -> NDArray[np.int64]:
    """Return the first day on which each row is known: the next one where a time of day is given."""
    column = table.columns[KNOWN_COLUMN]
    late = _find_times(column)
    if late.any() and not table.reading.time_zone:
        table = replace(table, columns={KNOWN_COLUMN: _cut_times(column)})
    days = read_days(table, KNOWN_COLUMN, audit)
    return np.where(late & (days != MISSING_DAY), days + 1, days)


def _find_times(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return which cells have a time of day but midnight."""
    if pa.types.is_timestamp(column.type):
        if column.type.tz is not None:
            column = pc.local_timestamp(column)
        return to_flags(pc.not_equal(column.cast(pa.date32(), safe=False).cast(column.type), column))
    from ..table import is_text

    if not is_text(column.type):
        return np.zeros(len(column), np.bool_)
    text = column.cast(pa.string())
    midnight = pc.match_substring_regex(text, MIDNIGHT)
    return to_flags(pc.and_not(pc.match_substring_regex(text, TIME_OF_DAY), midnight))


def _cut_times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the days of cells without a zone; zoned ones stay, and the reader asks for the zone."""
    if pa.types.is_timestamp(column.type):
        return column if column.type.tz is not None else column.cast(pa.date32(), safe=False)
    return pc.replace_substring_regex(column.cast(pa.string()), TIME_AT_END, "")
