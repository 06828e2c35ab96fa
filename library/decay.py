"""Test whether an accepted factor has decayed: two tests on its new days, at the end of each quarter.

The bar is `decay_share` = half of the mean RankIC on selection. A factor is accepted for a high RankIC, so its true one
is lower; a sound factor still has about half.

*Decaying* is a flag for a person: the mean of the last `flag_days` = 252 scored days is below the bar, with a
Newey-West t whose p-value, from the exact null distribution of overlapping labels, is at most `flag_p` = 0.02. The flag
is removed when that mean is at the bar again. *Retired* is meant to last, so it needs an e-detector (`eprocess.py`) of
`retire_e` = 10 against "the expected RankIC is at least the bar": a factor exactly at the bar is retired at most once
in 10 quarters on average, under any dependence between quarters.

Measured (1,000 series, h = 5, slow factor, RankIC of a day with standard deviation 0.08, 0.03 on selection, five
years):

==================================  ==========  ============  ============  ===================  =======================
                                    retired or flagged within five years    median days to it, in trading days
                                    --------------------------------------  --------------------------------------------
test, at the end of each quarter    as shown    3/4 as shown  half (bar)    dead from the start  dead after two years
==================================  ==========  ============  ============  ===================  =======================
t of 252 days, p 0.02 (flag)        0.007       0.05          0.22          504                  567
t of 252 days, p 0.05               0.024       0.13          0.43          315                  315
t of all days since, p 0.02         0.004       0.02          0.10          504                  1,323
e-detector of 5                     0.000       0.001         0.05          819                  819
e-detector of 10 (retirement)       0.000       0.000         0.003         1,197                1,197
e-detector of 20                    0.000       0.000         0.000         1,575                1,575
==================================  ==========  ============  ============  ===================  =======================

A factor that turns against its sign is flagged after 189 days and retired after 378. The flag comes early. Retirement
by rule needs bets that are valid under any distribution of the days (`eprocess.py`); a person can retire a factor
earlier by hand. A test on all days since would hide a death after good years. Two years of days allow no faster
detection of the death of a RankIC of 0.03; one of 0.05 is flagged after about a year.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..evidence import LAG_PER_HORIZON, LibrarySettings, newey_west_t, null_distribution
from ..evidence.scoring import round_significant
from .eprocess import e_detector, quarter_days, settle_quarters

MIN_DECAY_DAYS = 126


@dataclass(frozen=True)
class SelectionRecord:
    """A factor on selection: mean RankIC in the claimed direction, standard deviation of a day, horizon in days."""

    rank_ic: float
    deviation: float
    horizon: int


@dataclass(frozen=True)
class DecayTest:
    """The decay tests at the end of one quarter.

    Attributes
    ----------
    day
        The last scored day of the quarter.
    rank_ic, t, p_value
        Mean RankIC of the last `flag_days` scored days in the claimed direction, its Newey-West t against the bar, and
        the one-sided p-value of a mean this low; t and p-value are NaN before 126 days.
    bar
        `decay_share` of the RankIC on selection.
    e_value
        The e-detector against a mean of at least the bar.
    """

    day: str
    rank_ic: float
    t: float
    p_value: float
    bar: float
    e_value: float

    def record(self) -> dict[str, object]:
        """Return the JSON form."""
        numbers = {
            name: round_significant(getattr(self, name)) for name in ("rank_ic", "t", "p_value", "bar", "e_value")
        }
        return {"day": self.day, **numbers}


def run_decay_tests(
    days: Sequence[str], daily: ArrayLike, promise: SelectionRecord, rules: LibrarySettings, *, first: int = 0
) -> list[DecayTest]:
    """Return the tests at the end of each complete quarter, from number `first` (counted from 0) on.

    Parameters
    ----------
    days, daily
        Scored days in order and the RankIC of each in the claimed direction, ``[D]``; NaN where undefined.
    promise
        The factor on selection.
    rules
        Decay share, look-back and thresholds.
    """
    values = np.asarray(daily, dtype=np.float64)
    bar = rules.decay_share * promise.rank_ic
    e_values = e_detector(settle_quarters(-values, -bar, promise.horizon))
    length = quarter_days(promise.horizon)
    quarters = list(enumerate(e_values))[first:]
    return [
        _test_quarter(days, values[: (number + 1) * length], bar, (promise, rules), float(e_value))
        for number, e_value in quarters
    ]


def _test_quarter(
    days: Sequence[str],
    values: np.ndarray[tuple[int], np.dtype[np.float64]],
    bar: float,
    terms: tuple[SelectionRecord, LibrarySettings],
    e_value: float,
) -> DecayTest:
    promise, rules = terms
    lag = LAG_PER_HORIZON * promise.horizon
    test = newey_west_t(values[-rules.flag_days :] - bar, lag)
    day = days[len(values) - 1]
    if test.days < max(MIN_DECAY_DAYS, lag + 1):
        return DecayTest(day, test.mean + bar, math.nan, math.nan, bar, e_value)
    p_value = null_distribution(test.days, promise.horizon, lag).p_value(-test.t)
    return DecayTest(day, test.mean + bar, test.t, p_value, bar, e_value)


def status_after(status: str, age: DecayTest, rules: LibrarySettings) -> tuple[str, str]:
    """Return the status of a factor after a quarter, and the reason if it changed."""
    if rules.retire_e > 0 and age.e_value >= rules.retire_e:
        return "retired", (
            f"e-detector {age.e_value:.3g}, {rules.retire_e:.3g} retires: its RankIC is below {age.bar:.4f}, "
            f"{rules.decay_share:.0%} of what selection showed; {age.rank_ic:+.4f} of late"
        )
    if status == "live" and age.p_value <= rules.flag_p:
        return "decaying", (
            f"mean RankIC {age.rank_ic:+.4f} of late, below {age.bar:.4f} with t {age.t:.2f}, p {age.p_value:.2g}"
        )
    if status == "decaying" and age.rank_ic >= age.bar:
        return "live", f"mean RankIC {age.rank_ic:+.4f} of late, no longer below {age.bar:.4f}"
    return status, ""
