"""Decay: how seldom a healthy factor is flagged or retired, and how soon a dead one."""

from __future__ import annotations

import numpy as np
import pytest

from alphaloom.evidence.settings import LibrarySettings
from alphaloom.library.decay import DecayTest, SelectionRecord, run_decay_tests, status_after

from .test_eprocess import DEVIATION, HORIZON, overlapping

RULES = LibrarySettings()
PROMISE = SelectionRecord(0.03, DEVIATION, HORIZON)


def lives(mean: float, seed: int, reps: int = 24, days: int = 1260) -> list[list[DecayTest]]:
    names = [str(day) for day in range(days)]
    return [run_decay_tests(names, one, PROMISE, RULES) for one in overlapping(seed, reps, days) + mean]


def story(life: list[DecayTest]) -> dict[str, int]:
    """Return the quarter in which each status was first taken, from live on."""
    found, status = {"live": 0}, "live"
    for quarter, age in enumerate(life, start=1):
        status, _ = status_after(status, age, RULES)
        found.setdefault(status, quarter)
        if status == "retired":
            break
    return found


def test_a_factor_that_keeps_three_quarters_of_its_promise_is_left_alone() -> None:
    told = [story(life) for life in lives(0.0225, seed=1)]
    assert sum("decaying" in one for one in told) <= 5  # 5 % of 24 is 1.2; 5 is three deviations off
    assert sum("retired" in one for one in told) <= 1


def test_a_dead_factor_is_flagged_and_one_that_turned_is_retired() -> None:
    dead = [story(life).get("decaying", 99) for life in lives(0.0, seed=2)]
    assert np.median(dead) <= 12
    turned = [story(life) for life in lives(-0.015, seed=3)]
    assert np.median([one.get("decaying", 99) for one in turned]) <= 4
    assert np.median([one.get("retired", 99) for one in turned]) <= 12


def age(**changed: float) -> DecayTest:
    healthy = {"rank_ic": 0.03, "t": 2.0, "p_value": 0.9, "bar": 0.015, "e_value": 1.0}
    return DecayTest("2020-01-02", **(healthy | changed))


@pytest.mark.parametrize(
    ("status", "changed", "after"),
    [
        ("live", {}, "live"),
        ("live", {"p_value": 0.02, "rank_ic": 0.001}, "decaying"),
        ("live", {"p_value": float("nan")}, "live"),
        ("decaying", {"p_value": 0.3, "rank_ic": 0.014}, "decaying"),
        ("decaying", {"rank_ic": 0.015}, "live"),
        ("live", {"e_value": 10.0}, "retired"),
        ("decaying", {"e_value": 9.9, "rank_ic": 0.0}, "decaying"),
    ],
)
def test_what_a_quarter_does_to_a_status(status: str, changed: dict[str, float], after: str) -> None:
    told, why = status_after(status, age(**changed), RULES)
    assert told == after
    assert bool(why) == (after != status)


def test_retirement_by_rule_can_be_switched_off() -> None:
    never = RULES.model_copy(update={"retire_e": 0.0})
    assert status_after("live", age(e_value=1e9), never) == ("live", "")


def test_half_a_year_says_nothing_by_its_t() -> None:
    first, second = run_decay_tests([str(day) for day in range(126)], overlapping(1, 1, 126)[0], PROMISE, RULES)
    assert np.isnan(first.p_value)
    assert 0 < second.p_value < 1


def test_the_last_quarter_alone_is_told_as_among_all() -> None:
    days, daily = [str(day) for day in range(300)], overlapping(2, 1, 300)[0]
    assert run_decay_tests(days, daily, PROMISE, RULES, first=3) == run_decay_tests(days, daily, PROMISE, RULES)[3:]
