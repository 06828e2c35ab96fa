"""When a factor is said to break: it keeps less than half, and the loss is more than noise.

A reading compares a figure under stress with the clean one. Where the stress leaves the days as they are, the two daily
series are compared day by day, and the error is the Newey-West error of the mean difference; a day on which the stressed
factor says nothing counts 0. A historical stretch is compared with all other days, and the error joins those of both means;
that of each is the larger of its own and the one that its length would give with the other's spread, since few days may look
calmer than they are. Each p-value is one-sided, for a loss, from `null_distribution` at the days of the shorter side.

A reading is judged if there was something to lose: the clean figure is beyond noise, both over all days and over those that
are compared (RankIC with t >= 2; a book is judged where that holds, its return before costs has it too, and the net Sharpe is
above zero), and both sides have at least three times the lag in days. The words:

    breaks    keeps under half, and the loss is beyond noise
    weakens   keeps half to nine tenths, and the loss is beyond noise
    unclear   keeps under half, but as much is lost by luck
    holds     everything else that is judged
    untested  not judged

"Beyond noise" is Holm's rule over all readings of a factor that are judged: a factor that loses nothing anywhere is said to
break or weaken somewhere with a chance of at most one in twenty. What is lost to costs is arithmetic and always beyond noise;
the clean figure that it is compared with still has its own error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ..gate.significance import NeweyWest, newey_west_t, null_distribution

__all__ = ["MeanDifference", "StressReading", "StressWord", "compare_same_days", "compare_stretch", "judge_readings"]

Series = NDArray[np.float64]
Rows = NDArray[np.bool_]
StressWord = Literal["breaks", "weakens", "unclear", "holds", "untested"]

HOLM_LEVEL: Final = 0.05
MIN_CLEAN_T: Final = 2.0
BREAKS_BELOW_SHARE, WEAKENS_BELOW_SHARE = 0.5, 0.9
MIN_DAYS_IN_LAGS: Final = 3
MAX_COUNTED_DAYS: Final = 500
SMALL_T: Final = 1.5


@dataclass(frozen=True)
class MeanDifference:
    """A mean under stress against the clean one, and the chance of a loss as large where there is none.

    `days` are those under stress, `counted` those of the shorter side. `error` is the standard error of ``clean - stressed``; `t` is the clean mean's own.
    """

    days: int
    clean: float
    stressed: float
    error: float
    p: float
    t: float
    counted: int


@dataclass(frozen=True)
class StressReading:
    """One figure of one factor under one stress; `alive` says that there was something to lose, and days to show it."""

    clean: float
    stressed: float
    error: float
    p: float
    alive: bool

    @property
    def keeps(self) -> float:
        """Return the share that is left; NaN where there was nothing."""
        return self.stressed / self.clean if self.clean > 0 else math.nan


@dataclass(frozen=True)
class LabelOverlap:
    """How long labels overlap: the horizon in days, and the Newey-West lag."""

    horizon: int
    lag: int

    @property
    def least(self) -> int:
        """Return the days below which nothing is judged."""
        return MIN_DAYS_IN_LAGS * self.lag

    def p_value(self, t: float, days: int) -> float:
        """Return the one-sided p of a Newey-West t.

        Days are counted down to the next step, which is conservative. Below `SMALL_T`, where no verdict hangs on it, p
        is the normal one, which costs nothing.
        """
        if days < self.least or math.isnan(t):
            return 1.0
        if t < SMALL_T:
            return 0.5 * math.erfc(t / math.sqrt(2.0))
        counted = self.least
        while 2 * counted <= min(days, MAX_COUNTED_DAYS):
            counted *= 2
        return null_distribution(counted, self.horizon, self.lag).p_value(t)


def compare_same_days(clean: Series, stressed: Series, clock: LabelOverlap) -> MeanDifference:
    """Compare two daily series of the same days; a day that is NaN in `clean` is dropped, in `stressed` it is 0."""
    known = ~np.isnan(clean)
    before, after = clean[known], np.nan_to_num(stressed[known])
    own, loss = newey_west_t(before, clock.lag), newey_west_t(before - after, clock.lag)
    if loss.days and math.isnan(loss.t):  # the same loss every day: certain, if it is one
        return MeanDifference(
            own.days, own.mean, own.mean - loss.mean, 0.0, 0.0 if loss.mean > 0 else 1.0, own.t, own.days
        )
    p = clock.p_value(loss.t, own.days)
    return MeanDifference(own.days, own.mean, own.mean - loss.mean, loss.standard_error, p, own.t, own.days)


def compare_stretch(series: Series, inside: Rows, clock: LabelOverlap) -> MeanDifference:
    """Compare the days of a stretch with all others; `clean` are the others."""
    there, others = newey_west_t(series[inside], clock.lag), newey_west_t(series[~inside], clock.lag)
    error = math.hypot(_cautious_error(there, others), _cautious_error(others, there))
    t = (others.mean - there.mean) / error if error > 0 else math.nan
    counted = min(there.days, others.days)
    return MeanDifference(there.days, others.mean, there.mean, error, clock.p_value(t, counted), others.t, counted)


def _cautious_error(one: NeweyWest, other: NeweyWest) -> float:
    """Return the error of a mean: its own, or what the other side's spread makes of its length, if that is larger."""
    if one.days == 0:
        return math.nan
    return max(one.standard_error, other.daily_deviation / math.sqrt(one.days))


def judge_readings(readings: Sequence[StressReading]) -> list[StressWord]:
    """Return the word for each reading of one factor."""
    alive = sorted((reading.p, place) for place, reading in enumerate(readings) if reading.alive)
    certain: set[int] = set()
    for done, (p, place) in enumerate(alive):
        if p > HOLM_LEVEL / (len(alive) - done):
            break
        certain.add(place)
    return [_word(reading, place in certain) for place, reading in enumerate(readings)]


def _word(reading: StressReading, certain: bool) -> StressWord:
    if not reading.alive or math.isnan(reading.keeps):
        return "untested"
    if reading.keeps < BREAKS_BELOW_SHARE:
        return "breaks" if certain else "unclear"
    return "weakens" if certain and reading.keeps < WEAKENS_BELOW_SHARE else "holds"
