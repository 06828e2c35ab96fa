"""What a panel tells of one library factor on days that came after the panel on which it was judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..ledger import Sighting, StatusChange
from .entries import Entry, JudgementTerms
from .eprocess import quarter_days

RANK_IC_TOLERANCE = 1e-3
"""Largest difference between two readings of a day's RankIC that adjusted prices and rounding explain."""
ChangedDay = tuple[str, float | None, float | None]
"""A day, the RankIC that was seen on it, and the one that is told now."""


@dataclass(frozen=True)
class Observations:
    """All that was seen of a factor on new days: days in order and the RankIC of each in the claimed direction."""

    days: tuple[str, ...]
    daily: NDArray[np.float64]

    @classmethod
    def of(cls, sightings: Sequence[Sighting], sign: int) -> Observations:
        """Turn sightings, which are not signed, into a series."""
        daily = [np.nan if one.rank_ic is None else sign * one.rank_ic for one in sightings]
        return cls(tuple(one.day for one in sightings), np.asarray(daily, dtype=np.float64))


@dataclass(frozen=True)
class FactorReading:
    """What a panel tells of one factor.

    `find_changed_days` are days seen before of which it tells something else; `lacking` says why it tells nothing; `absent` counts the
    names on which it was judged that the panel does not have.
    """

    entry: Entry
    before: Sequence[Sighting]
    new: Sequence[Sighting] = ()
    unlike: Sequence[ChangedDay] = ()
    lacking: str = ""
    changes: Sequence[StatusChange] = ()
    absent: int = 0

    @property
    def left_out(self) -> str:
        """Say that the panel lacks names on which the factor was judged; nothing where it has them all.

        Whoever left them out may have known the new days: a list of those who are still there does it by itself.
        """
        of = len(self.terms.names)
        return f"the panel lacks {self.absent} of the {of} names on which it was judged" if self.absent else ""

    @property
    def terms(self) -> JudgementTerms:
        """Return how the factor was judged; it was, or it would not be watched."""
        assert self.entry.terms is not None
        return self.entry.terms

    @cached_property
    def seen(self) -> Observations:
        """Return all days of the factor, old and new."""
        return Observations.of([*self.before, *self.new], self.terms.sign)

    def ended(self) -> range:
        """Return the numbers of the quarters that end within the new days."""
        length = quarter_days(self.terms.horizon_days)
        return range(len(self.before) // length, len(self.seen.days) // length)


def find_changed_days(before: Sequence[Sighting], now: Mapping[str, float | None]) -> list[ChangedDay]:
    """Return the days of which two readings differ, or which the later one skips."""
    if not now:
        return []
    days = list(now)
    inside = [one for one in before if days[0] <= one.day <= days[-1]]
    return [(one.day, one.rank_ic, now.get(one.day)) for one in inside if not _agree(one.rank_ic, now.get(one.day))]


def _agree(was: float | None, now: float | None) -> bool:
    if was is None or now is None:
        return was is now
    return abs(was - now) <= RANK_IC_TOLERANCE
