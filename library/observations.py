"""Observations of one library factor: its daily RankIC on days after the panel on which it was judged."""

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
"""Largest difference of two readings of a day's RankIC from adjusted prices and rounding."""
ChangedDay = tuple[str, float | None, float | None]
"""A day, its recorded RankIC, and the RankIC on the present panel."""


@dataclass(frozen=True)
class Observations:
    """All observations of a factor: days in order and the RankIC of each in the claimed direction, NaN undefined."""

    days: tuple[str, ...]
    daily: NDArray[np.float64]

    @classmethod
    def of(cls, sightings: Sequence[Sighting], sign: int) -> Observations:
        """Return the observations of sightings, whose RankICs are of the factor as written."""
        daily = [np.nan if sighting.rank_ic is None else sign * sighting.rank_ic for sighting in sightings]
        return cls(tuple(sighting.day for sighting in sightings), np.asarray(daily, dtype=np.float64))


@dataclass(frozen=True)
class FactorReading:
    """The reading of one factor on a panel.

    `unlike` are recorded days whose RankIC differs on this panel. `lacking` says why there is no reading. `absent`
    counts the names on which the factor was judged and which the panel lacks.
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
        """Return the note that the panel lacks names on which the factor was judged; empty if it has them all.

        The choice of names may depend on the new days: a list of surviving names does by itself.
        """
        count = len(self.terms.names)
        return f"the panel lacks {self.absent} of the {count} names on which it was judged" if self.absent else ""

    @property
    def terms(self) -> JudgementTerms:
        """Return the terms on which the factor was judged; only judged factors are watched."""
        assert self.entry.terms is not None
        return self.entry.terms

    @cached_property
    def observations(self) -> Observations:
        """Return all days of the factor, old and new."""
        return Observations.of([*self.before, *self.new], self.terms.sign)

    def list_ended_quarters(self) -> range:
        """Return the numbers of the quarters that end within the new days."""
        length = quarter_days(self.terms.horizon_days)
        return range(len(self.before) // length, len(self.observations.days) // length)


def find_changed_days(before: Sequence[Sighting], now: Mapping[str, float | None]) -> list[ChangedDay]:
    """Return the days on which two readings differ, or which the later one lacks."""
    if not now:
        return []
    days = list(now)
    inside = [sighting for sighting in before if days[0] <= sighting.day <= days[-1]]
    pairs = [(sighting, now.get(sighting.day)) for sighting in inside]
    return [(old.day, old.rank_ic, value) for old, value in pairs if not _agree(old.rank_ic, value)]


def _agree(was: float | None, now: float | None) -> bool:
    if was is None or now is None:
        return was is now
    return abs(was - now) <= RANK_IC_TOLERANCE
