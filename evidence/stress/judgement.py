"""Judge a factor under stress: it breaks if it keeps less than half of a figure and the loss is significant.

A reading compares a figure under stress with the clean one. Where the stress leaves the days as they are, the two daily
series are compared day by day, and the error is the Newey-West error of the mean difference. A day without stressed
values counts as 0. A historical stretch is compared with all other days, and the error combines those of both means.
Each of these is the larger of the mean's own error and the error that its number of days would have with the other
side's spread, because a few days may look calmer than they are. Each p-value is one-sided, for a loss, from
`null_distribution` at the days of the shorter side.

A reading is judged if there was something to lose and days to show it. The clean figure must be significant, over all
days and over the days that are compared: RankIC with t >= 2; for a long-short also its return before costs with t >= 2,
and a net Sharpe above zero. Both sides must have at least three times the lag in days. The words:

    breaks    keeps under half, and the loss is significant
    weakens   keeps half to nine tenths, and the loss is significant
    unclear   keeps under half, but the loss may be chance
    holds     any other judged reading
    untested  not judged

"Significant" is Holm's rule over all judged readings of a factor: for a factor that loses nothing anywhere, the
probability that any reading breaks or weakens is at most 0.05. A loss to costs is arithmetic and always significant;
the clean figure that it is compared with still has its own error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from ..newey_west import NeweyWest, newey_west_t, null_distribution
from ..scoring.metrics import round_significant

STRESS_RULE_TEXT = (
    "A factor breaks where it keeps under half of a figure and the loss is beyond noise (Newey-West error of the "
    "difference, Holm's rule at 0.05 over all figures), or where under half of its cells have a value. A figure is "
    "judged where the clean RankIC has a t of 2 and there are days enough; a book, where its return before costs has "
    "it too and it earns its costs."
)
LOSING_BOOK_TEXT = "Its book loses after costs without any stress, so no book was judged."
MIN_COVERAGE_KEPT = 0.5
"""Share of its cells below which a factor on spoiled data counts as broken, whatever its other cells show."""

Series = NDArray[np.float64]
Rows = NDArray[np.bool_]
StressWord = Literal["breaks", "weakens", "unclear", "holds", "untested"]

HOLM_LEVEL: Final = 0.05
MIN_CLEAN_T: Final = 2.0
BREAKS_BELOW_SHARE, WEAKENS_BELOW_SHARE = 0.5, 0.9
MIN_DAYS_IN_LAGS: Final = 3
MAX_COUNTED_DAYS: Final = 500
SMALL_T: Final = 1.5

REGIMES_IN_WORDS: Final = {
    "crash": "crash, -20 % in 10 days",
    "grind": "grind, -20 % a year",
    "low_volatility": "low volatility, x 0.6",
    "sector_rotation": "sector rotation",
    "liquidity_drought": "liquidity drought, volume x 0.1",
}
PERTURBATION_WORDS: Final = {
    "tick_noise": "noise of a tick",
    "cents": "prices rounded to cents",
    "bad_ticks": "bad ticks, 1 in 10,000",
    "missing_1": "1 % of cells missing",
    "missing_5": "5 % of cells missing",
    "missing_day": "1 day in 50 missing",
    "wrong_split": "missed splits, 1 name in 10",
    "frozen_feed": "frozen feed, 5 % of cells",
}
FILL_WORDS: Final = {
    "late_1": "fills 1 day late",
    "late_2": "fills 2 days late",
    "next_close": "fills at the next close",
    "half_late": "half of each fill 1 day late",
    "costs_doubled": "costs doubled",
    "borrow_doubled": "borrow doubled",
}
WORST_FIRST: Sequence[StressWord] = ("breaks", "weakens", "unclear", "holds", "untested")


@dataclass(frozen=True)
class StressOutcome:
    """The outcome of one factor under one stress; a figure that the stress cannot change is None.

    Attributes
    ----------
    days
        Days that were compared.
    rank_ic, book
        Mean daily RankIC; Sharpe ratio after costs. Both in the direction in which the factor is held.
    agreement
        Mean daily rank correlation with the clean values; None where values are not changed or the market differs.
    coverage
        Cells with a value over those of the clean factor; None where `agreement` is.
    """

    scenario: Scenario
    days: int
    rank_ic: StressReading | None
    book: StressReading | None
    agreement: float | None = None
    coverage: float | None = None

    @property
    def silent(self) -> bool:
        """True if a factor that could be judged has lost over half of its values."""
        alive = self.rank_ic is not None and self.rank_ic.alive
        return alive and self.coverage is not None and self.coverage < MIN_COVERAGE_KEPT

    @property
    def readings(self) -> list[tuple[str, StressReading]]:
        """Return the readings that the stress has, with their keys."""
        readings = (("rank_ic", self.rank_ic), ("net_sharpe", self.book))
        return [(key, reading) for key, reading in readings if reading is not None]


@dataclass(frozen=True)
class StressResult:
    """The outcomes of one factor under all stresses; `words` are those of each outcome by key, in the same order."""

    clean: Mapping[str, float]
    outcomes: Sequence[StressOutcome]
    words: Sequence[Mapping[str, StressWord]]

    @property
    def breaks(self) -> list[str]:
        """Return the stresses that break it: ``crash, -20 % in 10 days (RankIC -0.010 against +0.030)``."""
        return [_describe_break(outcome, words) for outcome, words in self._find_broken()]

    @property
    def sentence(self) -> str:
        """Return one sentence that lists the stresses that break it."""
        is_judged = any(word != "untested" for words in self.words for word in words.values())
        if not is_judged:
            return (
                "No stress was judged: without stress no figure is significant (t below 2), or there are too few days."
            )
        sentence = f"Breaks in: {'; '.join(self.breaks)}." if self.breaks else "Breaks nowhere that could be judged."
        return f"{sentence} {LOSING_BOOK_TEXT}" if self.clean["net_sharpe"] <= 0 else sentence

    def _find_broken(self) -> list[tuple[StressOutcome, Mapping[str, StressWord]]]:
        pairs = zip(self.outcomes, self.words, strict=True)
        return [(outcome, words) for outcome, words in pairs if outcome.silent or "breaks" in words.values()]

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        pairs = zip(self.outcomes, self.words, strict=True)
        return {
            "sentence": self.sentence,
            "clean": {name: round_significant(value) for name, value in self.clean.items()},
            "weaknesses": [
                {
                    "code": "stress",
                    "scenario": outcome.scenario.code,
                    "value": _find_least_share(outcome),
                    "message": f"breaks in: {text}",
                }
                for (outcome, _), text in zip(self._find_broken(), self.breaks, strict=True)
            ],
            "scenarios": [_record_outcome(outcome, words) for outcome, words in pairs],
        }


def judge_outcomes(clean: Mapping[str, float], outcomes: Sequence[StressOutcome]) -> StressResult:
    """Judge all readings of one factor together, since Holm's rule is over all of them."""
    words = iter(judge_readings([reading for outcome in outcomes for _, reading in outcome.readings]))
    return StressResult(clean, outcomes, [{key: next(words) for key, _ in outcome.readings} for outcome in outcomes])


def _describe_break(outcome: StressOutcome, words: Mapping[str, StressWord]) -> str:
    """Name the stress and the figures that broke."""
    figures = []
    for key, reading in outcome.readings:
        if words[key] == "breaks":
            name, digits = ("RankIC", 3) if key == "rank_ic" else ("net Sharpe", 2)
            figures.append(f"{name} {reading.stressed:+.{digits}f} against {reading.clean:+.{digits}f}")
    if outcome.silent:
        figures.append(f"values in {100 * (outcome.coverage or 0.0):.0f} % of its cells")
    return f"{outcome.scenario.words} ({', '.join(figures)})"


def _find_least_share(outcome: StressOutcome) -> float | None:
    shares = [reading.keeps for _, reading in outcome.readings if not math.isnan(reading.keeps)]
    shares += [] if outcome.coverage is None else [outcome.coverage]
    return round_significant(min(shares)) if shares else None


def _record_outcome(outcome: StressOutcome, words: Mapping[str, StressWord]) -> dict[str, Any]:
    scenario = outcome.scenario
    dates = {"first": scenario.first, "last": scenario.last} if scenario.first else {}
    figures_kept = {"agreement": outcome.agreement, "coverage": outcome.coverage}
    rounded = {name: round_significant(value) for name, value in figures_kept.items() if value is not None}
    figures = {key: _record_reading(reading, words[key]) for key, reading in outcome.readings}
    verdict = "breaks" if outcome.silent else min(words.values(), key=WORST_FIRST.index)
    first = {"code": scenario.code, "group": scenario.group, "words": scenario.words, **dates, "days": outcome.days}
    return {**first, "verdict": verdict, **figures, **rounded}


def _record_reading(reading: StressReading, word: StressWord) -> dict[str, Any]:
    names = ("clean", "stressed", "keeps", "error", "p")
    return {**{name: round_significant(getattr(reading, name)) for name in names}, "verdict": word}


@dataclass(frozen=True)
class MeanDifference:
    """A mean under stress against the clean mean, with the p-value of the loss.

    `days` are those under stress, `counted` those of the shorter side. `error` is the standard error of ``clean -
    stressed``; `t` is that of the clean mean.
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
    """One figure of one factor under one stress; it is judged if `alive`: the clean figure is significant."""

    clean: float
    stressed: float
    error: float
    p: float
    alive: bool

    @property
    def keeps(self) -> float:
        """Return the share of the clean figure that is left; NaN where that is not positive."""
        return self.stressed / self.clean if self.clean > 0 else math.nan


@dataclass(frozen=True)
class LabelOverlap:
    """The overlap of labels: the horizon and the Newey-West lag, in days."""

    horizon: int
    lag: int

    @property
    def least(self) -> int:
        """Return the fewest days with which a reading is judged."""
        return MIN_DAYS_IN_LAGS * self.lag

    def p_value(self, t: float, days: int) -> float:
        """Return the one-sided p of a Newey-West t.

        The number of days is rounded down to three lags times a power of two, which is conservative and lets null
        distributions be reused. Below `SMALL_T`, where no word depends on it, p is that of the normal distribution.
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
    """Compare two daily series of the same days.

    Parameters
    ----------
    clean, stressed
        Daily series ``[D]``. A day that is NaN in `clean` is dropped; NaN in `stressed` counts as 0.
    clock
        Horizon and lag of the labels, in days.

    Returns
    -------
    MeanDifference
        With the one-sided p-value of a loss; 0 or 1 where the loss is the same on every day.
    """
    present = ~np.isnan(clean)
    before, after = clean[present], np.nan_to_num(stressed[present])
    baseline, loss = newey_west_t(before, clock.lag), newey_west_t(before - after, clock.lag)
    if loss.days and math.isnan(loss.t):  # the same difference every day has no error
        return MeanDifference(
            baseline.days,
            baseline.mean,
            baseline.mean - loss.mean,
            0.0,
            0.0 if loss.mean > 0 else 1.0,
            baseline.t,
            baseline.days,
        )
    p = clock.p_value(loss.t, baseline.days)
    return MeanDifference(
        baseline.days, baseline.mean, baseline.mean - loss.mean, loss.standard_error, p, baseline.t, baseline.days
    )


def compare_stretch(series: Series, inside: Rows, clock: LabelOverlap) -> MeanDifference:
    """Compare the days of a stretch with all others, which are the clean side.

    Parameters
    ----------
    series
        Daily series ``[D]``; NaN is dropped.
    inside
        Days of the stretch ``[D]``.
    clock
        Horizon and lag of the labels, in days.

    Returns
    -------
    MeanDifference
        With the one-sided p-value of a loss at the days of the shorter side; 1 where they are too few.
    """
    stretch, others = newey_west_t(series[inside], clock.lag), newey_west_t(series[~inside], clock.lag)
    error = math.hypot(_compute_cautious_error(stretch, others), _compute_cautious_error(others, stretch))
    t = (others.mean - stretch.mean) / error if error > 0 else math.nan
    counted = min(stretch.days, others.days)
    return MeanDifference(stretch.days, others.mean, stretch.mean, error, clock.p_value(t, counted), others.t, counted)


def _compute_cautious_error(side: NeweyWest, other: NeweyWest) -> float:
    """Return the larger of a mean's own error and the error with its days and the other side's spread."""
    if side.days == 0:
        return math.nan
    return max(side.standard_error, other.daily_deviation / math.sqrt(side.days))


def judge_readings(readings: Sequence[StressReading]) -> list[StressWord]:
    """Return the word for each reading of one factor, by Holm's rule."""
    alive = sorted((reading.p, place) for place, reading in enumerate(readings) if reading.alive)
    significant: set[int] = set()
    for rank, (p, place) in enumerate(alive):
        if p > HOLM_LEVEL / (len(alive) - rank):
            break
        significant.add(place)
    return [_choose_word(reading, place in significant) for place, reading in enumerate(readings)]


def _choose_word(reading: StressReading, is_significant: bool) -> StressWord:
    if not reading.alive or math.isnan(reading.keeps):
        return "untested"
    if reading.keeps < BREAKS_BELOW_SHARE:
        return "breaks" if is_significant else "unclear"
    return "weakens" if is_significant and reading.keeps < WEAKENS_BELOW_SHARE else "holds"


@dataclass(frozen=True)
class Scenario:
    """One stress: its code, group and words; a historical one has its first and last day."""

    code: str
    group: str
    words: str
    first: str = ""
    last: str = ""


def find_scenario(code: str) -> Scenario:
    """Return the scenario of a code that is not historical."""
    for group, words in (("regime", REGIMES_IN_WORDS), ("data", PERTURBATION_WORDS), ("fill", FILL_WORDS)):
        if code in words:
            return Scenario(code, group, words[code])
    raise KeyError(code)
