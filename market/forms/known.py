"""The day since which a row is known, which is never earlier than its cell says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import Audit
from .days import MISSING_DAY, read_day_times

if TYPE_CHECKING:
    from ..table import Table

KNOWN_COLUMN = "known"


def read_known_days(table: Table, audit: Audit) -> NDArray[np.int64]:
    """Return the first day on which each row is known: the next one where the exchange's clock is past midnight."""
    days, late = read_day_times(table, table.columns[KNOWN_COLUMN], KNOWN_COLUMN, audit, timed=True)
    return np.where(late & (days != MISSING_DAY), days + 1, days)


def find_early(known: NDArray[np.int64], days: NDArray[np.int64], what: str, audit: Audit) -> None:
    """Find rows that are known before the day that they are about, `what` in words."""
    early = (known != MISSING_DAY) & (days != MISSING_DAY) & (known < days)

    def describe(row: int) -> str:
        since, day = (str(np.datetime64(int(each[row]), "D")) for each in (known, days))
        return f"known since {since}, before {what}, {day}: nobody can know it then"

    audit.add_rows(KNOWN_COLUMN, np.flatnonzero(early), describe)
