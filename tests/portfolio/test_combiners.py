"""Combiners: what they may know, and what they do with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from alphaloom.evaluation import close, write_closing
from alphaloom.evidence.scoring.exposures import market_return
from alphaloom.evidence.scoring.long_short import Costs, measure_long_short
from alphaloom.evidence.scoring.scorer import Scorer
from alphaloom.evidence.settings import EvidenceSettings, complete_settings
from alphaloom.evidence.windows import Window
from alphaloom.factors import Engine, rank_rows, row_rank_correlation
from alphaloom.market import Panel, Plant, SyntheticConfig, simulate
from alphaloom.portfolio.blend import blend_ranks, blend_values
from alphaloom.portfolio.combination import bootstrap_difference, market_states
from alphaloom.portfolio.combiners import COMBINER_KINDS, CombinerKind, Ridge, build_combiner
from alphaloom.portfolio.moments import RankMoments, last_known_rows, measure_moments, standard_ranks
from alphaloom.portfolio.trading_rate import RATES, choose_trading_rate, slow_score

from ..evidence.lab import KNOWN, SMALL, Lab, market

Make = Callable[..., Lab]
Frame = NDArray[np.float64]
OTHER = "ts_kurt(high / low, 25)"
HORIZON = 2


def draw(seed: int, days: int, names: int, factors: int) -> list[Frame]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(days, names)) for _ in range(factors)]


def foretold(values: list[Frame], strengths: Frame, seed: int = 99) -> Frame:
    """Return labels: each factor times its strength of the day, `[T, K]`, in noise of deviation 1."""
    noise = np.random.default_rng(seed).normal(size=values[0].shape)
    return sum((each * strengths[:, k, None] for k, each in enumerate(values)), noise)


def moments_of(values: list[Frame], labels: Frame) -> RankMoments:
    return measure_moments([standard_ranks(value) for value in values], labels)


def likeness(score: NDArray[Any], truth: Frame, rows: slice) -> float:
    """Return the mean daily rank correlation of a score with what was expected."""
    daily = row_rank_correlation(score[rows].astype(np.float32), truth[rows].astype(np.float32))
    return float(np.nanmean(daily))


# What they may know.


@pytest.mark.parametrize("kind", COMBINER_KINDS)
@given(day=st.integers(80, 199), seed=st.integers(0, 3))
def test_labels_that_have_not_ended_change_no_weight(kind: CombinerKind, day: int, seed: int) -> None:
    values = draw(seed, 200, 20, 3)
    labels = foretold(values, np.full((200, 3), 0.2))
    states = np.random.default_rng(seed).random((2, 200))
    allowed, how = np.ones(200, np.bool_), build_combiner(kind, HORIZON)
    later = np.where(np.arange(200)[:, None] > day - HORIZON - 1, -labels, labels)
    before = how.weights(moments_of(values, labels), allowed, states)
    after = how.weights(moments_of(values, later), allowed, states)
    np.testing.assert_array_equal(before[: day + 1], after[: day + 1])
    if kind != "equal" and day < 150:
        assert (before != after).any(), "later days know the change"


@pytest.mark.parametrize("kind", COMBINER_KINDS)
def test_prices_after_a_day_change_no_weight_up_to_it(kind: CombinerKind) -> None:
    panel, day = market(3, days=420, names=40), 300
    before, after = (_weights(prices, kind) for prices in (panel, _other_prices(panel, day)))
    np.testing.assert_array_equal(before[: day + 1], after[: day + 1])
    if kind != "equal":
        assert (before != after).any()


def _weights(panel: Panel, kind: CombinerKind) -> Frame:
    ranks = [standard_ranks(values) for values in Engine(panel).evaluate([KNOWN, OTHER, "-returns"])]
    moments = measure_moments(ranks, Scorer(panel, SMALL).main_label)
    allowed, signs = np.ones(panel.days, np.bool_), np.array([1, -1, 1])
    return blend_ranks(
        ranks, moments, allowed, build_combiner(kind, 5), states=market_states(panel), signs=signs
    ).weights


def _other_prices(panel: Panel, day: int) -> Panel:
    rng = np.random.default_rng(0)
    moved = np.ones(panel.universe.shape)
    moved[day + 1 :] = np.exp(rng.normal(0, 0.2, moved[day + 1 :].shape))
    prices = ("open", "high", "low", "close", "vwap")
    fields = {name: each * moved if name in prices else each for name, each in panel.fields.items()}
    closed = fields["close"]
    fields["returns"] = np.vstack([panel.fields["returns"][:1], closed[1:] / closed[:-1] - 1.0])
    fields["returns"][: day + 1] = panel.fields["returns"][: day + 1]
    return replace(panel, fields=fields)


@pytest.mark.parametrize("kind", COMBINER_KINDS)
def test_days_that_may_not_teach_are_not_read(kind: CombinerKind) -> None:
    values = draw(1, 300, 30, 3)
    labels = foretold(values, np.full((300, 3), 0.1))
    allowed = np.arange(300) < 200
    sealed = np.where(allowed[:, None], labels, 1e6 * np.random.default_rng(1).normal(size=labels.shape))
    one, other = (blend_values(values, targets, allowed, kind=kind, horizon=HORIZON) for targets in (labels, sealed))
    np.testing.assert_array_equal(one, other)
    hidden = np.where(allowed[:, None], labels, np.nan)
    np.testing.assert_array_equal(one, blend_values(values, hidden, allowed, kind=kind, horizon=HORIZON))


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 5))
def test_a_day_is_known_once_its_label_has_ended(allowed: list[bool], horizon: int) -> None:
    found = last_known_rows(np.array(allowed), horizon)
    for day, last in enumerate(found):
        rows = [row for row in range(day - horizon) if allowed[row]]
        assert last == (rows[-1] if rows else -1)


def test_the_states_of_a_day_read_no_later_one() -> None:
    panel = market(2, days=300, names=30)
    whole, short = market_states(panel), market_states(panel.rows(0, 200))
    np.testing.assert_array_equal(whole[:, :200], short)
    assert ((whole >= 0) & (whole <= 1)).all()
    assert np.ptp(whole, axis=1).min() > 0.5


# What they do with it.


def test_ridge_is_the_regression_over_all_known_days() -> None:
    values = draw(5, 260, 25, 3)
    labels = foretold(values, np.tile([0.3, 0.1, 0.0], (260, 1)))
    allowed, day = np.arange(260) % 7 != 3, 240
    how = Ridge(HORIZON, strengths=(20.0,))
    found = how.weights(moments_of(values, labels), allowed)[day]
    rows = [row for row in range(day - HORIZON) if allowed[row]]
    design = np.concatenate([np.stack([standard_ranks(v)[row] for v in values], axis=1) / 5 for row in rows])
    target = np.concatenate([standard_ranks(labels)[row] / 5 for row in rows])
    slopes = np.linalg.solve(design.T @ design + 20.0 * np.eye(3), design.T @ target)
    np.testing.assert_allclose(found, slopes / np.abs(slopes).sum(), rtol=1e-5)


@pytest.mark.parametrize("kind", COMBINER_KINDS)
def test_the_order_of_the_factors_does_not_matter(kind: CombinerKind) -> None:
    values = draw(2, 200, 20, 4)
    labels = foretold(values, np.tile([0.3, 0.1, 0.0, 0.2], (200, 1)))
    allowed = np.ones(200, np.bool_)
    one, other = (
        blend_values(columns, labels, allowed, kind=kind, horizon=HORIZON) for columns in (values, values[::-1])
    )
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_factor_that_died_loses_its_weight() -> None:
    days = 1200
    values = draw(7, days, 60, 3)
    strengths = np.tile([0.06, 0.06, 0.06], (days, 1))
    strengths[500:, 0] = 0.0
    labels = foretold(values, strengths)
    truth = foretold(values, strengths) - foretold(values, 0 * strengths)
    allowed = np.ones(days, np.bool_)
    late = slice(800, days)
    ridge, adaptive = (blend_values(values, labels, allowed, kind=kind, horizon=1) for kind in ("ridge", "adaptive"))
    even = blend_values(values, labels, allowed, kind="equal", horizon=1)
    found = [likeness(weights, truth, late) for weights in (even, ridge, adaptive)]
    assert found[0] < found[1] - 0.02 < found[2] - 0.06, found


def test_where_nothing_is_known_weights_stay_near_equal() -> None:
    values = draw(8, 600, 40, 4)
    labels = np.random.default_rng(1).normal(size=values[0].shape)
    allowed = np.ones(600, np.bool_)
    even, adaptive = (blend_values(values, labels, allowed, kind=kind) for kind in ("equal", "adaptive"))
    assert likeness(adaptive, even.astype(np.float64), slice(100, 600)) > 0.9


@dataclass(frozen=True)
class InMonths:
    """A signal that speaks in months after a wild one only, or after a calm one only."""

    text: str
    wild: bool

    def __call__(self, panel: Panel) -> Frame:
        values = Engine(panel).evaluate([self.text])[0].astype(np.float64)
        return np.where((wild_months(panel) == self.wild)[:, None], values, np.nan)


def wild_months(panel: Panel) -> NDArray[np.bool_]:
    months = panel.dates.astype("datetime64[M]").astype(int)
    moves = pd.Series(market_return(panel)).groupby(months).std()
    after_wild = moves.shift(1) > moves.median()
    return after_wild.loc[months].to_numpy(np.bool_)


def test_a_plant_that_lives_in_wild_months_only_is_weighed_by_the_months() -> None:
    calm = "rank(ts_rank(volume, 20))"
    plants = [Plant(KNOWN, InMonths(KNOWN, wild=True), 0.05), Plant(calm, InMonths(calm, wild=False), 0.05)]
    found = simulate(SyntheticConfig(seed=11, days=1500, names=150), plants)
    panel, values = found.panel, Engine(found.panel).evaluate([KNOWN, calm])
    labels = Scorer(panel, EvidenceSettings()).main_label
    allowed, states, late = np.ones(panel.days, np.bool_), market_states(panel), slice(700, None)
    scores = {kind: blend_values(values, labels, allowed, kind=kind, states=states) for kind in COMBINER_KINDS}
    truth = np.where(panel.universe, found.expected_return, np.nan)
    told = {kind: likeness(score, truth, late) for kind, score in scores.items()}
    assert told["adaptive"] > max(told["ridge"], told["equal"]) + 0.03, told
    deaf = blend_values(values, labels, allowed, kind="adaptive")
    assert told["adaptive"] > likeness(deaf, truth, late) + 0.02, "it is the state of the market that tells"
    ranks = [standard_ranks(value) for value in values]
    weights = blend_ranks(
        ranks, measure_moments(ranks, labels), allowed, build_combiner("adaptive", 5), states=states
    ).weights
    wild = wild_months(panel)[late]
    assert weights[late][wild, 0].mean() > weights[late][~wild, 0].mean() + 0.05


# How fast.


def test_a_slowed_score_is_an_exponential_mean() -> None:
    score = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    expected = pd.DataFrame(score.astype(np.float64)).ewm(alpha=0.2, adjust=False).mean()
    np.testing.assert_allclose(slow_score(score, 0.2), expected, atol=1e-6)
    assert slow_score(score, 1.0) is score
    gap = score.copy()
    gap[20:25, 0] = np.nan
    found = slow_score(gap, 0.2)
    assert np.isnan(found[20:25, 0]).all()
    assert found[25, 0] == gap[25, 0], "what comes back starts anew"


def test_the_rate_is_the_one_that_leaves_most_after_costs(planted: Panel) -> None:
    score = Engine(planted).evaluate([KNOWN])[0]
    run = {"free": 0.0, "dear": 60.0}
    chosen, sharpes = {}, {}
    for name, price in run.items():
        costs = SMALL.costs.model_copy(update={"bps_per_side": price, "borrow_bps_per_year": 0.0})
        scorer = Scorer(planted, SMALL.model_copy(update={"costs": costs}))
        window = _whole(planted)
        chosen[name] = choose_trading_rate(score, scorer, window)
        book = (
            measure_long_short(rank_rows(slow_score(score, rate)), scorer.target(window).earned, Costs(price, 0.0), 5)
            for rate in RATES
        )
        sharpes[name] = [side.sharpe_net for side in book]
    assert all(chosen[name] == RATES[int(np.argmax(sharpes[name]))] for name in run)
    assert chosen["dear"] < chosen["free"]


def _whole(panel: Panel) -> Window:
    return Window("search", 0, panel.days, str(panel.dates[0]), str(panel.dates[-1]))


# Beside each other.


def test_the_interval_of_a_difference_is_that_of_its_mean() -> None:
    rng = np.random.default_rng(4)
    one, other = rng.normal(0.02, 0.1, 2000), rng.normal(0.0, 0.1, 2000)
    found = bootstrap_difference(one, other, 5)
    assert found.mean == pytest.approx(float((one - other).mean()))
    error = 0.1 * np.sqrt(2 / 2000)
    assert (found.high - found.low) == pytest.approx(2 * 1.96 * error, rel=0.2)
    assert found.low < found.mean < found.high
    assert not found.is_tie
    assert bootstrap_difference(one, one, 5).is_tie
    assert bootstrap_difference(one[:30], other[:30], 5).is_tie, "too few days tell nothing"


def test_dependent_days_widen_the_interval() -> None:
    shocks = np.random.default_rng(5).normal(size=3000)
    slow = pd.Series(shocks).rolling(10, min_periods=1).mean().to_numpy()
    wide, narrow = (bootstrap_difference(series / series.std(), np.zeros(3000), 5) for series in (slow, shocks))
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


# At the close of a campaign.


def test_settings_name_the_combiner(lab: Make, planted: Panel, tmp_path: Path) -> None:
    told = {}
    for kind in (*COMBINER_KINDS, "best"):
        run = lab(f"run-{kind}", panel=planted, combination=kind)
        names = [run.scored(text) for text in (KNOWN, OTHER)]
        told[kind] = write_closing(close(run.evaluator, names, open_sealed=False), run.evaluator, tmp_path)
    made = {kind: summary for kind, summary in told.items() if summary is not None}
    assert made.keys() == told.keys()
    assert [made[kind].combiner for kind in COMBINER_KINDS] == list(COMBINER_KINDS)
    assert {abs(weight or 0.0) for weight in made["equal"].weights.values()} == {0.5}
    compared = made["best"].compared
    assert compared is not None
    rows = compared.search.combiners
    assert made["best"].combiner == max(COMBINER_KINDS, key=lambda kind: rows[kind].net_sharpe or 0.0)
    assert "search" in (made["best"].chosen or "")
    assert set(compared.record()) == {"note", "trading_rate", "search", "selection"}, "never the sealed days"


def test_one_factor_is_its_own_combination(lab: Make, planted: Panel, tmp_path: Path) -> None:
    run = lab(panel=planted)
    made = write_closing(close(run.evaluator, [run.scored(KNOWN)], open_sealed=False), run.evaluator, tmp_path)
    assert made is not None
    assert made.compared is None
    assert [abs(weight or 0.0) for weight in made.weights.values()] == [1.0]


def test_a_run_of_before_there_was_a_choice_is_combined_as_it_was() -> None:
    kept = complete_settings({})
    assert (kept["combination"], kept["trading_rate"]) == ("equal", 1.0)
