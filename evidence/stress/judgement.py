"""When a factor breaks under stress: it keeps less than half, and the loss is more than noise.

A reading compares a figure under stress with the clean one. Where the stress leaves the days as they are, the two daily
series are compared day by day, and the error is the Newey-West error of the mean difference. A day without stressed values
counts 0. A historical stretch is compared with all other days, and the error joins those of both means. Each of these is the
larger of its own error and the one that its length would give with the other's spread, because few days may look calmer than
they are. Each p-value is one-sided, for a loss, from `null_distribution` at the days of the shorter side.

A reading is judged if there was something to lose: the clean figure is beyond noise, over all days and over those that are
compared (RankIC with t >= 2; a book where that holds, its return before costs has it too, and the net Sharpe is above zero),
and both sides have at least three times the lag in days. The words:

    breaks    keeps under half, and the loss is beyond noise
    weakens   keeps half to nine tenths, and the loss is beyond noise
    unclear   keeps under half, but the loss may be chance
    holds     everything else that is judged
    untested  not judged

"Beyond noise" is Holm's rule over all judged readings of a factor: a factor that loses nothing anywhere is said to break or
weaken somewhere with a probability of at most 0.05. A loss to costs is arithmetic and always beyond noise; the clean figure
that it is compared with still has its own error.
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
    "A factor breaks where it keeps under half of a figure and the loss is beyond noise (Newey-West error of the difference, "
    "Holm's rule at 0.05 over all figures), or where under half of its cells have a value. A figure is judged where the clean "
    "RankIC has a t of 2 and there are days enough; a book, where its return before costs has it too and it earns its costs."
)
LOSING_BOOK_TEXT = "Its book loses after costs without any stress, so no book was judged."
MIN_COVERAGE_KEPT = 0.5
"""Share of its cells below which a factor on spoiled data has fallen silent: it breaks, whatever the rest of them say."""

Series = NDArray[np.float64]
Rows = NDArray[np.bool_]
StressWord = Literal["breaks", "weakens", "unclear", "holds", "untested"]

HOLM_LEVEL: Final = 0.05
MIN_CLEAN_T: Final = 2.0
BREAKS_BELOW_SHARE, WEAKENS_BELOW_SHARE = 0.5, 0.9
MIN_DAYS_IN_LAGS: Final = 3
MAX_COUNTED_DAYS: Final = 500
SMALL_T: Final = 1.5

SCENARIO_GROUPS: Final = {
    "history": "historical stretches",
    "regime": "synthetic regimes",
    "data": "spoiled data",
    "fill": "fills and costs",
}
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
    """A factor under one stress; a figure that the stress does not touch is None.

    Attributes
    ----------
    days
        Days that were compared.
    rank_ic, book
        Mean daily RankIC; Sharpe ratio after costs. Both in the direction in which the factor is held.
    agreement
        Mean daily rank correlation with the clean values; None where the values are the clean ones or the market differs.
    coverage
        Cells with a value over those of the clean factor.
    """

    scenario: Scenario
    days: int
    rank_ic: StressReading | None
    book: StressReading | None
    agreement: float | None = None
    coverage: float | None = None

    @property
    def silent(self) -> bool:
        """Tell whether a factor that could be judged has lost over half of its values."""
        alive = self.rank_ic is not None and self.rank_ic.alive
        return alive and self.coverage is not None and self.coverage < MIN_COVERAGE_KEPT

    @property
    def readings(self) -> list[tuple[str, StressReading]]:
        """Return what was measured, with its key."""
        both = (("rank_ic", self.rank_ic), ("net_sharpe", self.book))
        return [(key, reading) for key, reading in both if reading is not None]


@dataclass(frozen=True)
class StressResult:
    """What all stresses did to one factor; `words` are the outcomes' by key, in order."""

    clean: Mapping[str, float]
    outcomes: Sequence[StressOutcome]
    words: Sequence[Mapping[str, StressWord]]

    @property
    def breaks(self) -> list[str]:
        """Return where it breaks, each with its figures: ``crash, -20 % in 10 days (RankIC -0.010 against +0.030)``."""
        return [_describe_break(outcome, words) for outcome, words in self._find_broken()]

    @property
    def sentence(self) -> str:
        """Return in one sentence where it breaks."""
        judged = any(word != "untested" for words in self.words for word in words.values())
        if not judged:
            return (
                "No stress was judged: without stress no figure is significant (t below 2), or there are too few days."
            )
        said = f"Breaks in: {'; '.join(self.breaks)}." if self.breaks else "Breaks nowhere that could be judged."
        return f"{said} {LOSING_BOOK_TEXT}" if self.clean["net_sharpe"] <= 0 else said

    def _find_broken(self) -> list[tuple[StressOutcome, Mapping[str, StressWord]]]:
        both = zip(self.outcomes, self.words, strict=True)
        return [(outcome, words) for outcome, words in both if outcome.silent or "breaks" in words.values()]

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        both = zip(self.outcomes, self.words, strict=True)
        return {
            "sentence": self.sentence,
            "clean": {name: round_significant(value) for name, value in self.clean.items()},
            "weaknesses": [
                {"code": "stress", "scenario": outcome.scenario.code, "value": _least_kept(outcome), "message": f"breaks in: {told}"}
                for (outcome, _), told in zip(self._find_broken(), self.breaks, strict=True)
            ],
            "scenarios": [_record(outcome, words) for outcome, words in both],
        }  # fmt: skip


def judge_outcomes(clean: Mapping[str, float], outcomes: Sequence[StressOutcome]) -> StressResult:
    """Judge all readings of one factor together."""
    words = iter(judge_readings([reading for outcome in outcomes for _, reading in outcome.readings]))
    return StressResult(clean, outcomes, [{key: next(words) for key, _ in outcome.readings} for outcome in outcomes])


def _describe_break(outcome: StressOutcome, words: Mapping[str, StressWord]) -> str:
    """Say what broke, with its figures."""
    said = []
    for key, reading in outcome.readings:
        if words[key] == "breaks":
            name, digits = ("RankIC", 3) if key == "rank_ic" else ("net Sharpe", 2)
            said.append(f"{name} {reading.stressed:+.{digits}f} against {reading.clean:+.{digits}f}")
    if outcome.silent:
        said.append(f"values in {100 * (outcome.coverage or 0.0):.0f} % of its cells")
    return f"{outcome.scenario.words} ({', '.join(said)})"


def _least_kept(outcome: StressOutcome) -> float | None:
    kept = [reading.keeps for _, reading in outcome.readings if not math.isnan(reading.keeps)]
    kept += [] if outcome.coverage is None else [outcome.coverage]
    return round_significant(min(kept)) if kept else None


def _record(outcome: StressOutcome, words: Mapping[str, StressWord]) -> dict[str, Any]:
    named = outcome.scenario
    dates = {"first": named.first, "last": named.last} if named.first else {}
    likeness = {"agreement": outcome.agreement, "coverage": outcome.coverage}
    told = {name: round_significant(value) for name, value in likeness.items() if value is not None}
    figures = {key: _figures(reading, words[key]) for key, reading in outcome.readings}
    verdict = "breaks" if outcome.silent else min(words.values(), key=WORST_FIRST.index)
    first = {"code": named.code, "group": named.group, "words": named.words, **dates, "days": outcome.days}
    return {**first, "verdict": verdict, **figures, **told}


def _figures(reading: StressReading, word: StressWord) -> dict[str, Any]:
    names = ("clean", "stressed", "keeps", "error", "p")
    return {**{name: round_significant(getattr(reading, name)) for name in names}, "verdict": word}


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
    """Compare two daily series of the same days.

    Parameters
    ----------
    clean, stressed
        ``[D]`` each. A day that is NaN in `clean` is dropped; NaN in `stressed` counts as 0.
    clock
        Horizon and lag of the labels, in days.

    Returns
    -------
    MeanDifference
        Its p-value is one-sided, for a loss; 0 or 1 where the loss is the same on every day.
    """
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
    """Compare the days of a stretch with all others, which are the clean side.

    Parameters
    ----------
    series
        ``[D]``; NaN is dropped.
    inside
        ``[D]``: the days of the stretch.
    clock
        Horizon and lag of the labels, in days.

    Returns
    -------
    MeanDifference
        Its p-value is one-sided, for a loss, at the days of the shorter side; 1 where they are too few.
    """
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


@dataclass(frozen=True)
class Scenario:
    """One stress: its code, its group, what it is in words; a historical one has days."""

    code: str
    group: str
    words: str
    first: str = ""
    last: str = ""


def find_scenario(code: str) -> Scenario:
    """Return a scenario that is not historical."""
    for group, known in (("regime", REGIMES_IN_WORDS), ("data", PERTURBATION_WORDS), ("fill", FILL_WORDS)):
        if code in known:
            return Scenario(code, group, known[code])
    raise KeyError(code)
