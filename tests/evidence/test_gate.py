"""The gate: every step can refuse, and says why; a look is written down before it is taken."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from alphaloom.evidence import Budget
from alphaloom.evidence.errors import EvidenceError, TrialsSpent, UnknownFactor
from alphaloom.evidence.significance import lond_level
from alphaloom.evidence.verdict import Verdict
from alphaloom.factors import parse
from alphaloom.market import Panel

from .lab import KNOWN, SMALL, Crash, Lab, clock, dying, engine, market, scorer, steps

Make = Callable[..., Lab]
JUNK = (
    "rank(ts_skew(volume, 30)) * rank(open)",
    "ts_kurt(high / low, 25)",
    "rank(ts_argmax(volume, 12)) - rank(ts_argmin(low, 15))",
    "ts_rsquare(cap / volume, 21)",
)


def failed(verdict: Verdict) -> Mapping[str, str]:
    return {reason.step: reason.message for reason in verdict.reasons if not reason.passed}


def test_a_strong_planted_factor_is_accepted(lab: Make, planted: Panel) -> None:
    run = lab(panel=planted)
    verdict = run.judged(KNOWN)
    assert verdict.word == "accepted"
    assert list(steps(verdict)) == [
        "parse", "causal", "complexity", "originality", "redundancy", "alignment", "statistics"
    ]  # fmt: skip
    assert [row.factor_id for row in run.ledger.library()] == [verdict.factor_id]
    assert verdict.selection is not None
    assert verdict.selection["p_value"] <= verdict.selection["level"] == pytest.approx(lond_level(1, 0), rel=1e-5)


def test_a_promising_factor_is_watched_and_a_poor_one_rejected(lab: Make, planted: Panel) -> None:
    strict = {"level": 1e-6}
    assert lab("a", panel=planted, **strict).judged(KNOWN).word == "watchlist"
    assert lab("b", panel=planted, **strict).judged(JUNK[0]).word == "rejected"
    assert not lab("c", panel=planted).ledger.library()


def test_too_large_a_formula_is_refused_without_a_look(lab: Make, planted: Panel) -> None:
    run = lab(panel=planted)
    name = run.scored(KNOWN)
    tight = SMALL.model_copy(update={"complexity": SMALL.complexity.model_copy(update={"max_depth": 3})})
    verdict = lab("run", panel=planted, settings=tight).evaluator.submit([name])[0]
    assert failed(verdict) == {"complexity": "6 levels, at most 3"}
    assert (verdict.word, verdict.trial, run.trials()) == ("rejected", None, [])


def test_an_accepted_factor_is_neither_new_nor_needed_for_the_next_run(lab: Make, planted: Panel) -> None:
    first = lab("first", panel=planted).judged(KNOWN)
    near, sum_like = KNOWN.replace("17", "18"), "rank(ts_mad(open / close, 23)) * 1 - " + KNOWN.split(" - ")[0]
    refused = lab("second", panel=planted).propose(near)
    assert (refused["ok"], refused["stage"]) == (False, "originality")
    assert f"nearly {first.factor_id} (the library)" in refused["errors"][0]["message"]
    loose = lab("third", panel=planted, max_similarity=1.0)
    verdict = loose.judged(sum_like)
    assert failed(verdict) == {"redundancy": f"most like {first.factor_id} of the library"}
    numbers = next(reason.numbers for reason in verdict.reasons if reason.step == "redundancy")
    assert numbers["rank_correlation"] < -0.9  # upside down, and caught
    assert len(loose.trials()) == 1


def test_a_batch_is_compared_with_itself(lab: Make) -> None:
    run = lab()
    ids = [run.scored(JUNK[0]), run.scored(JUNK[0].replace("30", "29"))]
    first, second = run.evaluator.submit(ids)
    assert steps(first)["originality"]
    assert f"with {ids[0]} (earlier in this batch)" in failed(second)["originality"]


@pytest.mark.parametrize(
    ("claim", "said"),
    [({"fields": ["close"]}, "name the fields"), ({"horizon_days": 60}, "works over 60 days")],
)
def test_a_formula_that_is_not_about_its_hypothesis_is_refused_before_it_is_scored(
    lab: Make, claim: dict[str, Any], said: str
) -> None:
    answer = lab().propose(JUNK[0].replace("open", "volume"), **claim)
    assert (answer["ok"], answer["stage"]) == (False, "alignment")
    assert said in answer["errors"][0]["message"]


def test_a_factor_against_its_hypothesis_spends_no_trial(lab: Make) -> None:
    run = lab()
    verdict = run.judged(JUNK[0], direction=-run.direction(JUNK[0]))
    assert "the search window shows the opposite" in failed(verdict)["alignment"]
    assert run.trials() == []


def test_the_look_is_in_the_ledger_before_it_is_taken(lab: Make) -> None:
    run = lab()
    name = run.scored(JUNK[0])
    with pytest.raises(Crash):
        dying(run).evaluator.submit([name])
    assert run.trials() == [None]
    again = lab().evaluator.submit([name])[0]  # after the restart
    assert again.trial == 1
    assert len(run.trials()) == 1
    assert run.trials()[0] is not None


def test_a_look_cut_short_is_finished_even_when_no_trial_is_left(lab: Make) -> None:
    budget = Budget(trials=1)
    run = lab(budget=budget)
    name = run.scored(JUNK[0])
    with pytest.raises(Crash):
        dying(run).evaluator.submit([name])
    assert run.evaluator.trials_left() == 0
    assert lab(budget=budget).evaluator.submit([name])[0].trial == 1


def test_each_look_lowers_the_level_and_the_same_factor_looks_once(lab: Make) -> None:
    run = lab()
    verdicts = [run.judged(text) for text in JUNK[:3]]
    levels = [(verdict.selection or {})["level"] for verdict in verdicts]
    assert levels == [pytest.approx(lond_level(number, 0), rel=1e-5) for number in (1, 2, 3)]
    assert levels == sorted(levels, reverse=True)
    assert run.evaluator.submit([verdicts[0].factor_id] * 2) == [verdicts[0]]
    assert lab("other").judged(JUNK[0]).trial == 1
    assert len(run.trials()) == 3


def test_a_discovery_raises_the_level_of_later_looks(lab: Make, planted: Panel) -> None:
    run = lab(panel=planted)
    assert run.judged(KNOWN).word == "accepted"
    later = run.judged(JUNK[0]).selection or {}
    assert (later["discoveries_before"], later["level"]) == (1, pytest.approx(lond_level(2, 1), rel=1e-5))


def test_looks_of_earlier_runs_and_of_elsewhere_count(lab: Make) -> None:
    lab("first").judged(JUNK[0])
    second = lab("second", prior_trials=6)
    assert second.judged(JUNK[1]).trial == 8
    assert second.evaluator.trials_spent() == 1


def test_trials_end_with_the_budget(lab: Make) -> None:
    run = lab(budget=Budget(trials=1))
    first = run.judged(JUNK[0])
    name = run.scored(JUNK[1])
    with pytest.raises(TrialsSpent, match="budget of trials is used up") as caught:
        run.evaluator.submit([first.factor_id, name])
    assert caught.value.exit_code == 4
    assert len(run.trials()) == 1
    assert [row.factor_id for row in run.ledger.verdicts("run")] == [first.factor_id]


def test_agents_are_told_no_number_of_the_selection_window(lab: Make, planted: Panel) -> None:
    run = lab(panel=planted, level=1e-6)
    for text in (KNOWN, JUNK[0]):
        told = run.judged(text).for_agents()
        assert told["verdict"] in {"watchlist", "rejected"}
        assert not re.search(r"\d", " ".join(told["reasons"]))
        assert set(told) == {"id", "verdict", "reasons"}


def test_only_what_was_scored_can_be_submitted(lab: Make) -> None:
    with pytest.raises(UnknownFactor, match="No factor 'f0123456789abcdef' was scored"):
        lab().evaluator.submit(["f0123456789abcdef"])


def test_too_few_days_prove_nothing(lab: Make) -> None:
    """A column that ends eight days into selection once stopped the campaign with a trial left open."""
    panel = market()
    fading = np.array(panel.fields["amount"])
    run = lab()
    fading[run.evaluator.windows.selection.start + 8 :] = np.nan
    run = lab("sparse", panel=replace(panel, fields={**panel.fields, "amount": fading}))
    verdict = run.judged("rank(ts_skew(amount, 4)) * rank(amount)")
    assert verdict.word == "rejected"
    assert (verdict.selection or {})["days"] < 10
    assert (verdict.selection or {})["p_value"] == 1


def test_a_set_is_the_sum_of_signed_ranks_and_one_trial(lab: Make) -> None:
    run = lab()
    texts = (JUNK[0], f"-({JUNK[1]})", JUNK[2])
    members = [run.scored(text) for text in texts]
    verdict = run.evaluator.submit_set(members)
    signs = ["-" if run.direction(text) < 0 else "+" for text in texts]
    assert set(signs) == {"-", "+"}
    whole = parse(" ".join(f"{sign} rank({text})" for sign, text in zip(signs, texts, strict=True)).removeprefix("+ "))
    assert verdict.factor_id == whole.id
    assert len(run.trials()) == 1
    assert run.evaluator.evaluations_spent() == 3  # the set's own score is free
    assert [event.body for event in run.ledger.events("run", "set")] == [members]
    assert run.evaluator.submit_set(members) == verdict


def test_the_test_is_one_sided_in_the_direction_of_the_search(lab: Make) -> None:
    run = lab()
    kept = {}
    for text in (*JUNK, *(f"-({text})" for text in JUNK)):
        name = run.scored(text)
        selection = run.evaluator.submit([name])[0].selection
        if selection is not None:  # not one that the first four made old
            kept[run.direction(text) * selection["t"] > 0] = selection["p_value"]
            assert (selection["p_value"] < 0.5) is (run.direction(text) * selection["t"] > 0)
    assert set(kept) == {True, False}


def test_a_set_is_judged_by_its_members(lab: Make) -> None:
    run = lab()
    against = run.scored(JUNK[0], direction=-run.direction(JUNK[0]))
    verdict = run.evaluator.submit_set([against, run.scored(JUNK[1])])
    assert list(failed(verdict)) == ["alignment"]
    assert run.trials() == []


@pytest.mark.parametrize("count", [1, 11])
def test_a_set_has_two_to_ten_members(lab: Make, count: int) -> None:
    run = lab()
    ids = [run.scored(f"ts_kurt(high / low, {20 + number})") for number in range(count)]
    with pytest.raises(EvidenceError, match="A set has 2 to 10 members"):
        run.evaluator.submit_set(ids * 2 if count == 1 else ids)


def test_the_same_question_has_the_same_answer_in_a_fresh_workspace(lab: Make, planted: Panel, tmp_path: Any) -> None:
    from alphaloom.ledger import Ledger

    mine = [lab(panel=planted).judged(text) for text in (JUNK[0], KNOWN)]
    engine.cache_clear()
    scorer.cache_clear()
    with Ledger.open(tmp_path / "other", clock=clock) as ledger:
        other = Lab.open(ledger, "another", planted, SMALL)
        assert [other.judged(text) for text in (JUNK[0], KNOWN)] == mine
