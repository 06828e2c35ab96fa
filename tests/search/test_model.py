"""Forecasts from scores: as the slow formula says, in whatever order they were learned, and blind to later days."""

from __future__ import annotations

import numpy as np
import pytest

from alphaloom.evidence.windows import Window
from alphaloom.factors import Expression, FactorError, build_planted_market, parse
from alphaloom.factors.space.planted import PlantSettings
from alphaloom.market import Panel, SyntheticConfig
from alphaloom.search.surrogate import candidate_pool as population, model as foresight_module
from alphaloom.search.surrogate.candidate_pool import CandidatePool, Samples
from alphaloom.search.surrogate.gaussian_process import ScoredFormula
from alphaloom.search.surrogate.matching_pursuit import NOISE_VARIANCE_SHARE
from alphaloom.search.surrogate.model import FormulaForecast, SurrogateModel
from alphaloom.search.surrogate.subsample import SubsampledPanel, few_names

PANEL = build_planted_market(SyntheticConfig(seed=3, days=500, names=90), PlantSettings(count=0)).panel
FIELDS = tuple(PANEL.fields)
SEARCH = Window("search", 0, 300, "", "")
TEXTS = (
    "ts_std(returns, 20)",
    "ts_mean(volume, 10) / ts_mean(volume, 60)",
    "ts_returns(close, 20)",
    "ts_skew(returns, 40)",
    "ts_corr(close, volume, 20)",
    "high / low",
)
SCORED = {f"f{at:016x}": ScoredFormula(parse(text), 0.01 * (at - 2), 4.0 * (at - 2)) for at, text in enumerate(TEXTS)}
ASKED = [
    parse(text)
    for text in ("ts_std(returns, 25)", "ts_mad(returns, 20)", "ts_skew(returns, 40) * 2", "ts_rank(open, 30)")
]


@pytest.fixture(autouse=True)
def small_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw forty formulas at a time instead of five hundred."""
    monkeypatch.setattr(population, "POOL_STEP_FORMULAS", 40)


def learned(names: list[str]) -> SurrogateModel:
    foresight = SurrogateModel.of(PANEL, SEARCH, FIELDS)
    for name in names:
        foresight.learn({name: SCORED[name]})
    return foresight


def foreseen(foresight: SurrogateModel, drafts: list[Expression]) -> list[FormulaForecast]:
    return foresight.choose(drafts, len(drafts))[0]


def test_a_forecast_is_that_of_a_gaussian_process_over_rank_correlations() -> None:
    foresight = learned(sorted(SCORED))
    few = few_names(PANEL.rows(0, 300), 64)
    assert few.names == 64
    ranks = [
        look.ranks.astype(np.float64)
        for look in SubsampledPanel(PANEL, SEARCH).fingerprint([*(s.expression for s in SCORED.values()), *ASKED])
    ]
    unit = np.array([rank / np.linalg.norm(rank) for rank in ranks])
    known, asked = unit[: len(SCORED)], unit[len(SCORED) :]
    covariance = known @ known.T + NOISE_VARIANCE_SHARE * np.eye(len(known))
    expected = asked @ known.T @ np.linalg.solve(covariance, [one.rank_ic for one in SCORED.values()])
    told = foreseen(foresight, ASKED)
    assert [one.rank_ic for one in told] == pytest.approx(expected.tolist(), abs=1e-9)
    assert told[0].nearest == f"f{0:016x}"
    assert told[2].known > 0.9
    assert told[3].known < told[0].known


def test_the_order_of_learning_changes_no_bit() -> None:
    forward, backward = learned(sorted(SCORED)), learned(sorted(SCORED, reverse=True))
    together = SurrogateModel.of(PANEL, SEARCH, FIELDS)
    together.learn(SCORED)
    asked = [one.choose(ASKED, 3) for one in (forward, backward, together)]
    assert asked[0] == asked[1] == asked[2]
    assert forward.leaders(5) == backward.leaders(5) == together.leaders(5)


def test_nothing_hangs_on_days_after_the_window() -> None:
    fields = {
        name: np.vstack([values[:300], values[300:] * 1.5])
        for name, values in PANEL.fields.items()
        if name != "returns"
    }
    fields["returns"] = np.vstack([PANEL.fields["returns"][:300], -PANEL.fields["returns"][300:]])
    later = Panel(PANEL.dates, PANEL.symbols, fields, PANEL.universe, PANEL.groups, PANEL.group_labels)
    other = SurrogateModel.of(later, SEARCH, FIELDS)
    other.learn(SCORED)
    assert other.choose(ASKED, 3) == learned(sorted(SCORED)).choose(ASKED, 3)


def test_drafts_are_chosen_by_promise_and_no_two_alike() -> None:
    foresight = learned(sorted(SCORED))
    drafts = [
        parse(text)
        for text in (
            "ts_std(returns, 20) * 3",
            "ts_corr(close, volume, 25)",
            "ts_corr(close, volume, 24)",
            "sign(close)",
        )
    ]
    told, chosen = foresight.choose(drafts, 4, direction=1)
    assert set(chosen) <= {1, 2}, "a copy of what was scored and a constant are not chosen"
    assert len(chosen) == 1, "two that are nearly one are chosen once"
    assert told[3].thin
    near, _ = foresight.choose(drafts, 1, direction=1, like=f"f{4:016x}")
    assert [one.rank_ic for one in near] == [one.rank_ic for one in told]


def test_every_other_choice_is_what_would_tell_most_of_all_that_could_be_written() -> None:
    drafts = [
        parse(text) for text in ("ts_skew(volume, 30)", "ts_mean(close, 20) / close", "high / low", "ts_std(low, 5)")
    ]
    thin = SubsampledPanel(PANEL, SEARCH)
    others, ranks = (
        CandidatePool(thin, FIELDS).get_reference_ranks(0),
        np.array([look.ranks for look in thin.fingerprint(drafts)]),
    )
    alike = (ranks @ others.T) / np.outer(np.linalg.norm(ranks, axis=1), np.linalg.norm(others, axis=1))
    telling = int((alike**2).mean(axis=1).argmax())
    foresight = learned([])
    _, chosen = foresight.choose(drafts, 2)
    assert chosen == [0, telling], "before any score the shortest promises most"
    assert telling != 0
    foresight.learn({"f": ScoredFormula(parse("sign(ts_skew(returns, 15))"), 0.0, 0.0)})
    assert foresight.choose(drafts, 1)[1] == [telling], "where one is chosen at a time, both orders have their turn"
    assert foresight.choose(drafts, 1, like="unknown")[1] == [0], "a follow-up does not look elsewhere"


def test_a_long_search_first_scores_what_tells_most_whatever_it_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foresight_module, "MAX_SURVEY_SCORES", 2)
    drafts = [parse(text) for text in ("ts_skew(volume, 30)", "ts_mean(close, 20) / close", "high / low")]
    short, long = (SurrogateModel.of(PANEL, SEARCH, FIELDS, budget) for budget in (499, 500))
    both = short.choose(drafts, 2)[1]
    assert [short.surveying, long.surveying] == [False, True]
    assert long.choose(drafts, 1)[1] == both[1:], "the most telling one, not the shortest"
    assert long.choose(drafts, 1, direction=1)[1] == both[:1], "what claims a direction is no survey"
    names = sorted(SCORED)
    for foresight in (short, long):
        foresight.learn({names[0]: SCORED[names[0]]})
    assert long.unexplored(1) != short.unexplored(1)
    for foresight in (short, long):
        foresight.learn({names[1]: SCORED[names[1]]})
    assert not long.surveying
    assert long.unexplored(2) == short.unexplored(2)


def test_unexplored_formulas_promise_and_tell_most_of_all_that_were_drawn() -> None:
    foresight = learned(sorted(SCORED))
    told = foresight.unexplored(6)
    assert [one.text for one in told] == [one.text for one in learned(sorted(SCORED, reverse=True)).unexplored(6)]
    sample = CandidatePool(SubsampledPanel(PANEL, SEARCH), FIELDS)
    members = sample.members[: sample.size(len(SCORED))]
    assert {one.text for one in told} <= {member.text for member in members}
    every, best = foresight.choose(members, 2)
    assert [members[place].text for place in best] == [one.text for one in told[:2]]
    looked = {each.text: one for each, one in zip(members, every, strict=True)}
    assert [one.foreseen for one in told] == [looked[one.text] for one in told]
    first = next(member for member in members if member.text == told[0].text)
    foresight.learn({first.id: ScoredFormula(first, 0.0, 0.0)})
    assert first.text not in [one.text for one in foresight.unexplored(6)]


def test_before_any_score_unexplored_formulas_are_those_that_tell_most() -> None:
    told = learned([]).unexplored(3)
    assert len(told) == 3
    assert {one.foreseen.known for one in told} == {0.0}


def test_code_has_no_forecast() -> None:
    code = parse("def factor(panel):\n    return panel['close']\n")
    with pytest.raises(FactorError, match="Python"):
        foreseen(learned([]), [code])


def test_of_no_draft_none_is_chosen() -> None:
    assert learned(sorted(SCORED)).choose([], 3, direction=1) == ([], [])


def test_runs_that_share_a_sample_foresee_what_each_would_alone() -> None:
    samples, names = Samples(), sorted(SCORED)
    first, second = (SurrogateModel.of(PANEL, SEARCH, FIELDS, samples=samples) for _ in range(2))
    first.learn({name: SCORED[name] for name in names})
    ahead = first.unexplored(6)
    second.learn({names[0]: SCORED[names[0]]})
    assert second.unexplored(6) == learned(names[:1]).unexplored(6), "that another is further changes nothing"
    assert first.unexplored(6) == ahead
    assert first._pool is second._pool
