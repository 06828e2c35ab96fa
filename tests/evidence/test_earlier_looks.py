"""What a candidate is judged beside: a formula composed of looked-at ones gains nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray
from scipy.stats import rankdata

from alphaloom.evidence.gate.closed_testing import ScoredTerms
from alphaloom.evidence.gate.earlier_looks import (
    BLOCK_DAYS,
    MIN_RANK_VARIANCE_LEFT,
    PLAN_EVENT,
    Removal,
    list_lags,
)
from alphaloom.evidence.settings import ComplexitySettings, CostSettings
from alphaloom.market import Panel

from .lab import KNOWN, Lab

Make = Callable[..., Lab]
Frame = NDArray[np.float64]
JUNK = ("rank(ts_skew(volume, 30)) * rank(open)", "ts_kurt(high / low, 25)", "ts_rsquare(cap / volume, 21)")


def slow_residual(ranks: Frame, removed: Sequence[Frame], cells: Sequence[tuple[int, int]]) -> tuple[Frame, Frame]:
    """Return target and residual on the cells of one block, by the definition."""
    among = [np.full(ranks.shape, np.nan) for _ in removed]
    for day in {day for day, _ in cells}:
        there = ~np.isnan(ranks[day])
        for frame, out in zip(removed, among, strict=True):
            out[day, there] = rankdata(frame[day, there]) / there.sum() - 0.5
    design = np.array([[out[cell] for out in among] for cell in cells])
    target = np.array([ranks[cell] for cell in cells])
    return target, target - design @ np.linalg.pinv(design) @ target


@given(seed=st.integers(0, 999), count=st.integers(1, 5), days=st.integers(40, 150))
def test_what_is_left_is_that_of_a_regression_over_each_quarter(seed: int, count: int, days: int) -> None:
    rng = np.random.default_rng(seed)
    removed = [rng.uniform(size=(days, 12)) for _ in range(count)]
    ranks = rng.uniform(-0.5, 0.5, (days, 12)) + rng.uniform(0, 1) * (removed[0] - 0.5)
    ranks[rng.uniform(size=ranks.shape) < 0.1] = np.nan
    left = Removal(removed)(ranks)
    for rows in np.array_split(np.arange(days), max(round(days / BLOCK_DAYS), 1)):
        cells = [(day, name) for day in rows for name in range(12) if not np.isnan(ranks[day, name])]
        target, expected = slow_residual(ranks, removed, cells)
        share = expected @ expected / (target @ target)
        if abs(share - MIN_RANK_VARIANCE_LEFT) < 1e-6:
            continue
        if share < MIN_RANK_VARIANCE_LEFT:
            assert np.isnan(left[rows]).all()
        else:
            np.testing.assert_allclose([left[cell] for cell in cells], expected, atol=1e-6)


def test_earlier_days_are_removed_where_they_say_something_else() -> None:
    rng = np.random.default_rng(1)
    fast, slow = rng.uniform(size=(55, 30)), np.tile(rng.uniform(size=30), (55, 1))
    assert len(list_lags(fast.astype(np.float32), 5)) == 6
    (only,) = list_lags(slow.astype(np.float32), 5)
    assert np.array_equal(only, slow[5:].astype(np.float32))
    assert np.array_equal(list_lags(fast.astype(np.float32), 5)[2], fast[3:53].astype(np.float32))


@pytest.mark.parametrize("turned", ["log(rank({}) - 0.2)", "delay({}, 1)", "rank({}) * rank({})", "-ema({}, 3)"])
def test_what_was_looked_at_comes_back_in_no_other_dress(lab: Make, planted: Panel, turned: str) -> None:
    """Names that are left out, a day's delay, and other forms of the same ranks add nothing."""
    large = ComplexitySettings(max_size=100, max_depth=30, max_constants=30)
    loose: dict[str, Any] = {"panel": planted, "level": 1e-6, "published": False, "complexity": large}
    loose |= {"max_redundancy": 1.0, "max_similarity": 1.0}
    assert lab("first", **loose).judged(KNOWN).word != "accepted"
    selection = lab("second", **loose).judged(turned.replace("{}", f"({KNOWN})")).selection or {}
    assert selection["p_value"] > 0.01


def test_a_sum_of_formulas_that_were_looked_at_is_not_accepted(lab: Make, planted: Panel) -> None:
    """It has the t of a strong factor, and all of it was learned from the looks."""
    parts = [f"rank({part})" for part in KNOWN.split(" - ")]
    strict = {"panel": planted, "level": 1e-6, "max_redundancy": 1.0, "max_similarity": 1.0}
    for number, part in enumerate(parts):
        assert lab(f"look{number}", **strict).judged(part).word != "accepted"
    verdict = lab("sum", **strict | {"level": 1e-6}).judged(KNOWN)
    selection = verdict.selection or {}
    assert selection["t"] > 4
    assert (verdict.word, len(selection["beside"])) == ("rejected", 2)
    assert selection["p_value"] > 0.01


def test_tests_of_one_recorded_list_are_not_judged_beside_each_other(lab: Make) -> None:
    run = lab()
    names = [run.scored(text) for text in JUNK]
    run.ledger.events.record("run", PLAN_EVENT, "gate", {"combination": names[:2], "factors": names[:2]})
    first, second, third = run.evaluator.submissions.submit(names)
    assert "beside" not in (first.selection or {})
    assert "beside" not in (second.selection or {})
    assert (third.selection or {})["beside"] == sorted(names[:2])
    assert (lab("other").judged("ts_argmax(volume, 12)").selection or {})["beside"] == sorted(names)


def test_what_pays_no_costs_is_proven_and_raises_no_level(lab: Make, planted: Panel) -> None:
    run = lab(panel=planted, costs=CostSettings(bps_per_side=500.0))
    verdict = run.judged(KNOWN)
    assert (verdict.word, [reason.step for reason in verdict.reasons if not reason.passed]) == (
        "proven, not tradable alone",
        ["costs"],
    )
    assert verdict.for_agents()["reasons"] == ["costs: its forecast is proven, but does not pay for trading it alone"]
    assert run.evaluator.submissions.gate.count_discoveries() == 0
    assert not run.ledger.library.rows()


@given(seed=st.integers(0, 10**6), count=st.integers(2, 4))
def test_a_member_is_proven_if_every_subset_that_holds_it_is_significant(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"m{place}" for place in range(count)]
    terms = {name: np.full((1, 1), 2.0**place, np.float32) for place, name in enumerate(names)}
    t_of = {float(total): rng.choice([1.0, 8.0], p=[0.2, 0.8]) for total in range(1, 2**count)}
    scored = ScoredTerms(terms, lambda values: 0.001 if t_of[float(values[0, 0])] == 8.0 else 0.4)
    for member in scored.prove(0.01):
        holding = [
            subset for size in range(1, count + 1) for subset in combinations(names, size) if member["id"] in subset
        ]
        totals = [sum(float(terms[name][0, 0]) for name in subset) for subset in holding]
        assert member["proven"] is all(t_of[total] == 8.0 for total in totals)


def test_a_member_says_what_the_combination_loses_without_it() -> None:
    terms = {name: np.full((1, 1), value, np.float32) for name, value in (("a", 2.0), ("b", 0.5))}
    scored = ScoredTerms(terms, lambda _: pytest.fail("no test is needed"))
    assert scored.measure_loss(lambda values: float(values[0, 0]), 2.5) == {"a": 2.0, "b": 0.5}
