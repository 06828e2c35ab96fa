"""The rule by which a factor breaks: exact on series that can be reckoned, and seldom wrong on noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from alphaloom.evidence.newey_west import newey_west_t
from alphaloom.evidence.stress.judgement import (
    LabelOverlap,
    StressReading,
    compare_same_days,
    compare_stretch,
    judge_readings,
)

CLOCK = LabelOverlap(5, 10)


def series(rng: np.random.Generator, days: int, mean: float, spread: float = 0.1) -> NDArray[np.float64]:
    """Return daily RankICs of overlapping five-day labels: a moving average of five shocks."""
    shocks = rng.normal(0.0, spread, days + 4)
    return np.asarray(mean + np.convolve(shocks, np.ones(5) / math.sqrt(5), "valid"))


def test_a_paired_loss_is_the_newey_west_test_of_the_difference() -> None:
    rng = np.random.default_rng(1)
    clean, stressed = series(rng, 300, 0.03), series(rng, 300, 0.01)
    clean[7] = stressed[9] = np.nan
    found = compare_same_days(clean, stressed, CLOCK)
    days = ~np.isnan(clean)
    wanted = newey_west_t(clean[days] - np.nan_to_num(stressed[days]), 10)
    assert found.days == 299
    assert found.clean == pytest.approx(clean[days].mean())
    assert found.stressed == pytest.approx(np.nan_to_num(stressed[days]).mean())
    assert found.error == pytest.approx(wanted.standard_error)


def test_a_loss_that_is_the_same_every_day_is_certain_and_no_loss_is_not() -> None:
    clean = series(np.random.default_rng(1), 100, 0.03)
    assert compare_same_days(clean, clean - 0.01, CLOCK).p == 0.0
    assert compare_same_days(clean, clean, CLOCK).p == 1.0
    assert compare_same_days(clean, clean + 0.01, CLOCK).p == 1.0


def test_a_stretch_is_compared_with_all_other_days() -> None:
    values = series(np.random.default_rng(2), 600, 0.0)
    inside = np.zeros(600, np.bool_)
    inside[100:163] = True
    comparison = compare_stretch(values - np.where(inside, 0.2, 0.0), inside, CLOCK)
    assert comparison.stressed == pytest.approx(values[inside].mean() - 0.2)
    assert comparison.clean == pytest.approx(values[~inside].mean())
    assert comparison.p < 0.01
    others = newey_west_t(values[~inside], 10)
    assert comparison.error >= math.hypot(others.standard_error, others.daily_deviation / math.sqrt(63)) * (1 - 1e-9)
    turned = compare_stretch(values - np.where(inside, 0.2, 0.0), ~inside, CLOCK)
    assert turned.error == pytest.approx(comparison.error)
    assert turned.counted == comparison.counted == 63


def test_few_days_are_never_judged() -> None:
    assert CLOCK.least == 30
    assert CLOCK.p_value(50.0, 29) == 1.0
    assert CLOCK.p_value(50.0, 30) < 1e-4
    assert CLOCK.p_value(1.5, 500) == pytest.approx(CLOCK.p_value(1.4999, 500), abs=0.03)
    assert CLOCK.p_value(1.4999, 500) > 0.05
    assert LabelOverlap(20, 40).p_value(50.0, 119) == 1.0


def test_words() -> None:
    def word(stressed: float, p: float, alive: bool = True, clean: float = 0.04) -> str:
        return judge_readings([StressReading(clean, stressed, 0.01, p, alive)])[0]

    assert word(0.01, 1e-6) == "breaks"
    assert word(0.01, 0.06) == "unclear"
    assert word(0.03, 1e-6) == "weakens"
    assert word(0.039, 1e-6) == word(0.03, 0.06) == word(0.05, 1.0) == "holds"
    assert word(0.01, 1e-6, alive=False) == word(-0.01, 1e-6, clean=-0.01) == "untested"


def test_the_more_is_judged_the_stronger_a_proof_must_be() -> None:
    doubtful = StressReading(0.04, 0.0, 0.02, 0.01, alive=True)
    whole = StressReading(0.04, 0.04, 0.02, 0.5, alive=True)
    untested = StressReading(0.04, 0.0, 0.02, 0.01, alive=False)
    assert judge_readings([doubtful, untested, untested, untested, untested, untested])[0] == "breaks"
    assert judge_readings([doubtful, whole, whole, whole, whole, whole])[0] == "unclear"
    sure = StressReading(0.04, 0.0, 0.01, 1e-9, alive=True)
    assert (
        judge_readings([sure, sure, sure, sure, doubtful, whole])[4] == "breaks"
    )  # Holm: what is sure no longer counts


def alarms(mean: float, spread_inside: float, length: int, runs: int = 400) -> float:
    """Return how often one factor of this mean breaks or weakens in any of eight stretches that change nothing.

    `spread_inside` is the spread of a stretch's days over that of the others: a wild quarter is no break.
    """
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(runs):
        readings = []
        daily = series(rng, 900, 0.0)
        for start in range(40, 840, 100):
            inside = np.zeros(900, np.bool_)
            inside[start : start + length] = True
            comparison = compare_stretch(mean + np.where(inside, spread_inside, 1.0) * daily, inside, CLOCK)
            readings.append(
                StressReading(
                    comparison.clean, comparison.stressed, comparison.error, comparison.p, comparison.t >= 2.0
                )
            )
        found += bool({"breaks", "weakens"} & set(judge_readings(readings)))
    return found / runs


@pytest.mark.parametrize("mean", [0.0, 0.03, 0.06])
@pytest.mark.parametrize(("spread", "length"), [(1.0, 63), (2.0, 63), (1.0, 252), (1.0, 830)])
def test_noise_is_seldom_called_a_break(mean: float, spread: float, length: int) -> None:
    """A worthless, a healthy and a strong factor; 400 of each, so 0.05 has a standard error of 0.011."""
    assert alarms(mean, spread, length) <= 0.05 + 2 * 0.011


def test_a_factor_that_dies_in_a_stretch_is_found_when_it_was_strong() -> None:
    rng = np.random.default_rng(6)
    inside = np.zeros(900, np.bool_)
    inside[300:500] = True
    broken = 0
    for _ in range(50):
        comparison = compare_stretch(series(rng, 900, 0.0) + np.where(inside, 0.0, 0.08), inside, CLOCK)
        quiet = [StressReading(0.08, 0.08, 0.01, 0.5, alive=True)] * 20
        broken += (
            judge_readings(
                [
                    StressReading(
                        comparison.clean, comparison.stressed, comparison.error, comparison.p, comparison.t >= 2.0
                    ),
                    *quiet,
                ]
            )[0]
            == "breaks"
        )
    assert broken >= 25
