"""Does an accepted factor still give what selection showed? Two tests on the days since, at the end of each quarter.

The bar is `decay_share` = half of the mean RankIC that selection showed: a factor is accepted for a high one, so that its
true RankIC is lower; half of it is what a fair one still has.

*Decaying* is a flag, to make somebody look: the mean of the last `flag_days` = 252 scored days lies below the bar, with a
Newey-West t whose p-value, from the exact null distribution of overlapping labels, is at most `flag_p` = 0.02. The flag
goes when that mean is back at the bar. *Retired* is meant to last, so it needs an e-detector (`eprocess.py`) of `retire_e`
= 10 against "the expected RankIC is at least the bar": a factor that gives the bar and no more is retired once in 10
quarters on average at most, whatever the dependence between quarters.

Measured (1,000 series, h = 5, slow factor, RankIC of a day with standard deviation 0.08, 0.03 on selection, five years):

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

A factor that turns against its sign is flagged after 189 days and retired after 378. The flag is the early word; retirement by
rule needs bets that hold for any law of the days (`eprocess.py`), and whoever does not want to wait retires by hand. All days since are the wrong window: a
death after good years stays hidden. Two years of days say no more than this about the death of a RankIC of 0.03; one of
0.05 is flagged after about a year.
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
    """What selection showed of a factor: mean RankIC in the claimed direction, deviation of a day, days of the label."""

    rank_ic: float
    deviation: float
    horizon: int


@dataclass(frozen=True)
class DecayTest:
    """The end of one quarter.

    Attributes
    ----------
    day
        The last scored day of it.
    rank_ic, t, p_value
        Mean RankIC of the last `flag_days` scored days in the claimed direction, its Newey-West t against the bar, and
        the probability of one as low where the true mean is the bar; NaN before 126 days.
    bar
        `decay_share` of what selection showed.
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
    """Return the tests at the end of each whole quarter, from the one with the number `first` on, counted from 0.

    Parameters
    ----------
    days, daily
        Scored days in order and the RankIC of each in the claimed direction, ``[D]``; NaN where undefined.
    promise
        What selection showed.
    rules
        Share, look-back and levels.
    """
    values = np.asarray(daily, dtype=np.float64)
    bar = rules.decay_share * promise.rank_ic
    found = e_detector(settle_quarters(-values, -bar, promise.horizon))
    length = quarter_days(promise.horizon)
    wanted = list(enumerate(found))[first:]
    return [_end(days, values[: (k + 1) * length], bar, (promise, rules), float(e)) for k, e in wanted]


def _end(
    days: Sequence[str],
    values: np.ndarray[tuple[int], np.dtype[np.float64]],
    bar: float,
    of: tuple[SelectionRecord, LibrarySettings],
    e_value: float,
) -> DecayTest:
    promise, rules = of
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
