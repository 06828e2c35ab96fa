"""The gate: every step can refuse, and says why; a look is written down before it is taken."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from alphaloom.evaluation import Budget
from alphaloom.evaluation.context import refuse_other_stream
from alphaloom.evaluation.submissions import MIN_SET_MEMBERS, MIN_WEIGHT, WEIGHING_EVENT
from alphaloom.evidence import EvidenceSettings
from alphaloom.evidence.errors import EvidenceError, TrialsSpent
from alphaloom.evidence.gate.acceptance_gate import MIN_RANKED_DAY_SHARE, PAID_EVENT
from alphaloom.evidence.gate.verdict import Verdict
from alphaloom.evidence.multiple_testing.online_fdr import lond_level
from alphaloom.evidence.originality.catalogue import Catalogue, find_nearest
from alphaloom.evidence.originality.published import read_published
from alphaloom.evidence.settings import RECORDED_CONTEXT, CostSettings
from alphaloom.factors import parse
from alphaloom.ledger import Look
from alphaloom.market import Panel
from alphaloom.portfolio.trading_rate import slow_score

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
        "parse", "causal", "complexity", "support", "originality", "redundancy", "published", "alignment", "statistics",
        "costs",
    ]  # fmt: skip  # a table
    assert [row.factor_id for row in run.ledger.library.rows()] == [verdict.factor_id]
    assert verdict.selection is not None
    assert verdict.selection["p_value"] <= verdict.selection["level"] == pytest.approx(lond_level(1, 0), rel=1e-5)


def test_a_promising_factor_is_watched_and_a_poor_one_rejected(lab: Make, planted: Panel) -> None:
    strict = {"level": 1e-6}
    assert lab("a", panel=planted, **strict).judged(KNOWN).word == "watchlist"
    assert lab("b", panel=planted, **strict).judged(JUNK[0]).word == "rejected"
    assert not lab("c", panel=planted).ledger.library.rows()


def test_too_large_a_formula_is_refused_without_a_look(lab: Make, planted: Panel) -> None:
    run = lab(panel=planted)
    name = run.scored(KNOWN)
    tight = SMALL.model_copy(update={"complexity": SMALL.complexity.model_copy(update={"max_depth": 3})})
    verdict = replace(run.evaluator, settings=tight).submissions.submit([name])[0]
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


def test_a_formula_that_ranks_the_names_like_a_published_one_is_told_so_and_refused(lab: Make) -> None:
    """Its tree is unlike any published one: the median of three volumes stands for the volume."""
    run = lab()
    answer = run.propose("ts_corr(ts_median(volume, 2) + delta(volume, 1) * 0.4999, close, 10)")
    (told,) = [weakness for weakness in answer["weaknesses"] if weakness["code"] == "known"]
    assert "ranks the names like " in told["message"]
    verdict = run.evaluator.submissions.submit([answer["id"]])[0]
    (reason,) = [step for step in verdict.reasons if step.step == "published"]
    assert steps(verdict)["originality"]
    assert (verdict.word, reason.passed, verdict.trial) == ("rejected", False, None)
    assert reason.message == told["message"]
    assert abs(float(reason.numbers["rank_correlation"])) > 0.9


def test_a_set_that_ranks_the_names_like_a_published_factor_is_refused_though_no_member_does(lab: Make) -> None:
    """Each member hides the total volatility behind something else; in their sum that is left over."""
    run = lab()
    hidden = {
        "ts_median(high / low, 19)": "ts_corr(delta(low, 3) / low, delta(volume, 2) / volume, 17)",
        "ts_mad(close / delay(close, 1), 23)": "ts_kurt(high / low, 25)",
        "ts_std(close / delay(close, 1), 27)": "ts_rsquare(cap / volume, 21)",
    }
    answers = [run.propose(f"rank({one}) + 1.05 * rank({other})") for one, other in hidden.items()]
    assert not any(weakness["code"] == "known" for answer in answers for weakness in answer["weaknesses"])
    verdict = run.evaluator.submissions.submit_set([answer["id"] for answer in answers])
    assert (verdict.word, verdict.trial, run.trials()) == ("rejected", None, [])
    (reason,) = [step for step in verdict.reasons if not step.passed]
    assert (reason.step, "total volatility" in reason.message) == ("published", True)


def test_values_are_compared_with_no_published_factor_where_settings_leave_them_out(lab: Make) -> None:
    run = lab(settings=SMALL.model_copy(update={"published": False}))
    answer = run.propose("ts_corr(ts_median(volume, 2) + delta(volume, 1) * 0.4999, close, 10)")
    assert "known" not in {weakness["code"] for weakness in answer["weaknesses"]}
    assert steps(run.evaluator.submissions.submit([answer["id"]])[0])["published"]


def test_a_batch_is_compared_with_itself(lab: Make) -> None:
    run = lab()
    ids = [run.scored(JUNK[0]), run.scored(JUNK[0].replace("30", "29"))]
    first, second = run.evaluator.submissions.submit(ids)
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
        dying(run).evaluator.submissions.submit([name])
    assert run.trials() == [None]
    again = lab().evaluator.submissions.submit([name])[0]  # after the restart
    assert again.trial == 1
    assert len(run.trials()) == 1
    assert run.trials()[0] is not None


def test_a_look_cut_short_is_finished_even_when_no_trial_is_left(lab: Make) -> None:
    budget = Budget(trials=1)
    run = lab(budget=budget)
    name = run.scored(JUNK[0])
    with pytest.raises(Crash):
        dying(run).evaluator.submissions.submit([name])
    assert run.evaluator.meter.trials_left() == 0
    assert lab(budget=budget).evaluator.submissions.submit([name])[0].trial == 1


def test_a_look_that_another_run_never_took_is_paid_by_the_one_that_takes_it(lab: Make) -> None:
    first = lab("first")
    name = first.scored(JUNK[0])
    with pytest.raises(Crash):
        dying(first).evaluator.submissions.submit([name])
    poor = lab("poor", budget=Budget(trials=0))
    with pytest.raises(TrialsSpent):
        poor.judged(JUNK[0])
    assert first.trials() == [None]
    second = lab("second", budget=Budget(trials=1))
    second.scored(JUNK[0])
    with pytest.raises(Crash):
        dying(second).evaluator.submissions.submit([name])
    assert second.evaluator.meter.trials_left() == 0
    again = lab("second", budget=Budget(trials=1))  # it has paid, and may look after its own restart
    assert again.evaluator.submissions.submit([name])[0].trial == 1
    assert [event.body["subject"] for event in again.ledger.events.of("second", PAID_EVENT)] == [name]
    assert (again.evaluator.meter.trials_spent(), len(again.trials())) == (1, 1)
    third = lab("third", budget=Budget(trials=0))
    assert third.judged(JUNK[0]).trial == 1  # what was taken is told for nothing
    assert third.evaluator.meter.trials_spent() == 0


def test_a_run_says_that_it_waits_for_another_one_and_takes_its_look_once_that_is_done(
    lab: Make, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = lab("first"), lab("second")
    name = first.scored(JUNK[0])
    second.scored(JUNK[0])
    kept: list[Verdict] = []
    trials = first.evaluator.submissions.gate.ledger.trials
    monkeypatch.setattr(trials, "close", lambda *_: pytest.fail("the first is not done yet"))
    with pytest.raises(pytest.fail.Exception):
        first.evaluator.submissions.submit([name])
    monkeypatch.undo()

    def other(_: float) -> None:
        kept.extend([] if kept else lab("first").evaluator.submissions.submit([name]))

    monkeypatch.setattr("alphaloom.evidence.gate.acceptance_gate.time.sleep", other)
    with first.ledger.runs.lock("first"):
        found = second.evaluator.submissions.submit([name])[0]
    assert (found.trial, found.word) == (1, kept[0].word)
    assert second.evaluator.meter.trials_spent() == 0
    assert capsys.readouterr().err == f"waiting, since run first is testing the same factor, {name}\n"


def test_nobody_waits_for_a_look_that_failed_in_a_run_that_lives(lab: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = lab("first"), lab("second")
    name = first.scored(JUNK[0])
    with pytest.raises(Crash):
        dying(first).evaluator.submissions.submit([name])
    monkeypatch.setattr("alphaloom.evidence.gate.acceptance_gate.time.sleep", lambda _: pytest.fail("it waits"))
    with first.ledger.runs.lock("first"):
        assert second.judged(JUNK[0]).trial == 1
    assert first.trials()[0] is not None


@pytest.mark.parametrize(
    "asked",
    [
        {"horizon_days": 3},
        {"returns": "raw"},
        {"level": 0.01},
        {"watch_p": 0.2},
        {"costs": CostSettings(bps_per_side=1)},
    ],
)
def test_the_same_formula_under_another_question_is_another_look(lab: Make, asked: dict[str, Any]) -> None:
    first = lab("first").judged(JUNK[0])
    other = lab("second", **asked)
    second = other.judged(JUNK[0], horizon_days=asked.get("horizon_days", 5))
    assert (first.trial, second.trial, len(other.trials())) == (1, 2, 2)
    mine = second.selection or {}
    assert mine["level"] == pytest.approx(lond_level(2, 0, asked.get("level", 0.05)), rel=1e-5)
    assert mine["horizon_days"] == asked.get("horizon_days", 5)
    same = (
        mine["rank_ic"] == (first.selection or {})["rank_ic"],
        mine["net_sharpe"] == (first.selection or {})["net_sharpe"],
    )
    assert same == ("horizon_days" not in asked and "returns" not in asked, not {"horizon_days", "costs"} & set(asked))
    assert lab("third", **asked).evaluator.meter.trials_spent() == 0
    assert lab("fourth").judged(JUNK[0]) == first


def changed_from(row: int, panel: Panel | None = None, field: str = "volume") -> Panel:
    """Return the market with other volumes, or another field, from a row on."""
    panel = panel or market()
    values = np.array(panel.fields[field])
    values[row:] *= np.linspace(1.0, 2.0, panel.names)
    return replace(panel, fields={**panel.fields, field: values})


def test_other_data_before_the_end_of_selection_make_another_look_and_later_data_none(lab: Make) -> None:
    run = lab("first")
    first = run.judged(JUNK[0])
    selection = run.evaluator.windows.selection
    later = lab("later", panel=changed_from(selection.stop))
    assert (later.judged(JUNK[0]), later.evaluator.meter.trials_spent()) == (first, 0)
    corrected = lab("corrected", panel=changed_from(selection.stop - 30)).judged(JUNK[0])
    assert (corrected.trial, len(run.trials())) == (2, 2)
    assert (corrected.selection or {})["rank_ic"] != (first.selection or {})["rank_ic"]


def test_appended_days_change_no_look(lab: Make) -> None:
    run = lab("first", panel=market().rows(0, 410))
    first = run.judged(JUNK[0])
    grown = lab("grown", panel=market())
    assert grown.evaluator.windows.selection.last_day == run.evaluator.windows.selection.last_day
    assert grown.judged(JUNK[0]) == first
    assert (len(grown.trials()), grown.evaluator.meter.trials_spent()) == (1, 0)


def test_each_look_lowers_the_level_and_the_same_factor_looks_once(lab: Make) -> None:
    run = lab()
    verdicts = [run.judged(text) for text in JUNK[:3]]
    levels = [(verdict.selection or {})["level"] for verdict in verdicts]
    assert levels == [pytest.approx(lond_level(number, 0), rel=1e-5) for number in (1, 2, 3)]
    assert levels == sorted(levels, reverse=True)
    assert run.evaluator.submissions.submit([verdicts[0].factor_id] * 2) == [verdicts[0]]
    assert lab("other").judged(JUNK[0]).trial == 1
    assert len(run.trials()) == 3


def test_a_discovery_raises_the_level_of_later_looks(lab: Make, planted: Panel) -> None:
    run = lab(panel=planted)
    assert run.judged(KNOWN).word == "accepted"
    later = run.judged(JUNK[0]).selection or {}
    assert (later["discoveries_before"], later["level"]) == (1, pytest.approx(lond_level(2, 1), rel=1e-5))


def test_discoveries_are_those_of_looks_opened_before(lab: Make) -> None:
    """A number says how much came before on shared names, so that an earlier look may bear a larger one."""
    run = lab()
    key = run.evaluator.windows.key(run.evaluator.windows.selection)
    apart, across = replace(key, names=("ZZZ",)), replace(key, names=("ZZZ", key.names[0]))
    for number in range(4):
        run.ledger.trials.open(Look("run", f"f{number}", apart))
    found = run.ledger.trials.open(Look("run", "found", across))
    run.ledger.trials.close(found.id, {"passed": True})
    verdict = run.judged(JUNK[0])
    assert (found.number, verdict.trial) == (5, 2)
    assert (verdict.selection or {})["discoveries_before"] == 1


def found(run: Lab, *texts: str) -> list[str]:
    """Score formulas and put each on record as a discovery; return their ids."""
    key = run.evaluator.windows.key(run.evaluator.windows.selection)
    names = [run.scored(text) for text in texts]
    for name in names:
        run.ledger.trials.close(run.ledger.trials.open(Look("run", name, key)).id, {"passed": True})
    return names


def before(verdict: Verdict) -> int:
    return int((verdict.selection or {})["discoveries_before"])


def test_one_effect_that_was_found_with_three_windows_raises_later_levels_once(lab: Make) -> None:
    run = lab()
    found(run, "ts_kurt(high / low, 25)", "ts_kurt(high / low, 22)", "ts_kurt(high / low, 28)")
    assert before(run.judged(JUNK[0])) == 1


def test_a_discovery_raises_no_level_for_what_ranks_the_names_alike(lab: Make) -> None:
    run = lab()
    found(run, "ts_kurt(high / low, 25)", JUNK[0])
    assert before(run.judged("ts_kurt(high / low, 22)")) == 1


def test_a_set_raises_no_level_for_its_members_and_counts_once_with_them(lab: Make) -> None:
    run = lab()
    members = [run.scored(text) for text in JUNK[:3]]
    run.ledger.events.record("run", "set", "whole", members)
    key = run.evaluator.windows.key(run.evaluator.windows.selection)
    for name in ("whole", members[1]):
        run.ledger.trials.close(run.ledger.trials.open(Look("run", name, key)).id, {"passed": True})
    assert before(run.evaluator.submissions.submit(members[:1])[0]) == 0
    assert before(run.judged(JUNK[3])) == 1


def test_ties_are_recorded_with_the_look(lab: Make) -> None:
    run = lab()
    found(run, "ts_kurt(high / low, 25)", "ts_kurt(high / low, 22)", JUNK[0])
    run.judged(JUNK[1].replace("25", "28"))
    outcome = run.trials()[-1]
    assert outcome is not None
    assert outcome["discoveries"] == [3]
    assert [(tie["later"], tie["earlier"], tie["members"]) for tie in outcome["ties"]] == [
        (2, 1, False),
        (4, 1, False),
        (4, 2, False),
    ]
    assert all(abs(tie["rank_correlation"]) > 0.7 for tie in outcome["ties"])


@pytest.mark.parametrize("changed", [{"level": 0.1}, {"watch_p": 0.01}])
def test_a_later_campaign_on_the_same_data_keeps_the_level_of_the_stream(lab: Make, changed: dict[str, float]) -> None:
    run = lab()
    refuse_other_stream(run.ledger, run.evaluator.windows, SMALL.model_copy(update=changed))  # no trial was taken yet
    run.judged(JUNK[0])
    refuse_other_stream(run.ledger, run.evaluator.windows, SMALL)
    (name,) = changed
    with pytest.raises(
        EvidenceError, check=lambda error: error.code == "other_stream", match="one stream of trials has one"
    ) as caught:
        refuse_other_stream(run.ledger, run.evaluator.windows, SMALL.model_copy(update=changed))
    assert (caught.value.field, caught.value.got, caught.value.allowed) == (f"evidence.{name}", changed[name], 0.05)


def test_a_wide_watchlist_is_refused_but_an_old_run_is_read() -> None:
    with pytest.raises(ValueError, match=r"must be at most 0\.05"):
        EvidenceSettings(watch_p=0.2)
    kept = EvidenceSettings().model_dump(mode="json") | {"watch_p": 0.2}
    assert EvidenceSettings.model_validate(kept, context={RECORDED_CONTEXT: True}).watch_p == 0.2


def test_looks_once_declared_stay_declared(lab: Make) -> None:
    assert lab("first", prior_trials=6).judged(JUNK[0]).trial == 7
    assert lab("second").judged(JUNK[1]).trial == 8


def test_looks_of_earlier_runs_and_of_elsewhere_count(lab: Make) -> None:
    lab("first").judged(JUNK[0])
    second = lab("second", prior_trials=6)
    assert second.judged(JUNK[1]).trial == 8
    assert second.evaluator.meter.trials_spent() == 1


def test_trials_end_with_the_budget(lab: Make) -> None:
    run = lab(budget=Budget(trials=1))
    first = run.judged(JUNK[0])
    name = run.scored(JUNK[1])
    with pytest.raises(TrialsSpent, match="budget of trials is used up") as caught:
        run.evaluator.submissions.submit([first.factor_id, name])
    assert caught.value.exit_code == 4
    assert len(run.trials()) == 1
    assert [row.factor_id for row in run.ledger.verdicts.of("run")] == [first.factor_id]


def test_agents_are_told_no_number_of_the_selection_window(lab: Make, planted: Panel) -> None:
    run = lab(panel=planted, level=1e-6)
    for text in (KNOWN, JUNK[0]):
        verdict = run.judged(text).for_agents()
        assert verdict["verdict"] in {"watchlist", "rejected"}
        assert not re.search(r"\d", " ".join(verdict["reasons"]))
        assert set(verdict) == {"id", "verdict", "reasons"}


def test_only_what_was_scored_can_be_submitted(lab: Make) -> None:
    with pytest.raises(
        EvidenceError,
        check=lambda error: error.code == "unknown_factor",
        match="No factor 'f0123456789abcdef' was scored",
    ):
        lab().evaluator.submissions.submit(["f0123456789abcdef"])


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


@pytest.mark.parametrize("kept", [(12, 1.0), (60, 0.4)])
def test_a_factor_of_too_few_names_or_days_is_refused(lab: Make, kept: tuple[int, float]) -> None:
    names, days = kept
    panel = market()
    thin = np.array(panel.fields["amount"])
    thin[:, names:] = np.nan
    thin[: int((1 - days) * lab().evaluator.windows.search.stop)] = np.nan
    run = lab("thin", panel=replace(panel, fields={**panel.fields, "amount": thin}))
    verdict = run.judged("rank(ts_skew(amount, 4)) * rank(amount)")
    assert "for 25% of the names" in failed(verdict)["support"]
    numbers = next(reason.numbers for reason in verdict.reasons if reason.step == "support")
    assert numbers["days"] < numbers["least"] == MIN_RANKED_DAY_SHARE
    assert (verdict.word, run.trials()) == ("rejected", [])


def test_a_combination_is_the_weighed_sum_of_signed_ranks_and_one_trial(lab: Make) -> None:
    run = lab(combination="equal", trading_rate=1.0)
    texts: Sequence[str] = (JUNK[0], f"-({JUNK[1]})", JUNK[2])
    scored = {run.scored(text): text for text in texts}
    members = sorted(scored)
    texts = [scored[name] for name in members]
    verdict = run.evaluator.submissions.submit_set(members)
    assert list(steps(verdict))[4:6] == ["originality", "fresh"]
    signs = ["-" if run.direction(text) < 0 else "+" for text in texts]
    assert set(signs) == {"-", "+"}
    whole = parse(" ".join(f"{sign} rank({text})" for sign, text in zip(signs, texts, strict=True)).removeprefix("+ "))
    assert verdict.factor_id == whole.id
    assert len(run.trials()) == 1
    assert run.evaluator.meter.evaluations_spent() == 3  # the set's own score is free
    assert [event.body for event in run.ledger.events.of("run", "set")] == [members]
    assert run.evaluator.submissions.submit_set(members[::-1]) == verdict  # in whatever order they are named


def test_a_combination_is_slowed_as_it_would_be_traded(lab: Make) -> None:
    run = lab(combination="equal", trading_rate=0.5)
    name = run.evaluator.submissions.submit_set([run.scored(text) for text in JUNK[:2]]).factor_id
    at_once = lab("undelayed", combination="equal", trading_rate=1.0)
    whole = at_once.evaluator.submissions.submit_set([at_once.scored(text) for text in JUNK[:2]]).factor_id
    score, slow = (
        each.evaluator.values(each.evaluator.read(each.evaluator.scores[key].text))
        for each, key in ((at_once, whole), (run, name))
    )
    there = ~np.isnan(score[-1]) & ~np.isnan(score).any(axis=0)
    np.testing.assert_allclose(slow[-1, there], slow_score(score, 0.5)[-1, there], rtol=1e-4, atol=1e-4)


def test_a_combination_too_large_for_a_formula_loses_its_faintest_members(lab: Make) -> None:
    run = lab()
    large = " + ".join(f"ts_std(volume, {7 + place})" for place in range(5))
    ids = [run.scored(f"rank({large}) * rank(ts_kurt(high / low, {20 + 9 * place}))") for place in range(9)]
    run.evaluator.submissions.submit_set(ids)
    (members,) = (event.body for event in run.ledger.events.of("run", "set"))
    assert MIN_SET_MEMBERS <= len(members) < len(ids)
    assert set(members) < set(ids)


def test_days_after_search_change_nothing_in_a_combination(lab: Make, planted: Panel) -> None:
    run = lab("known", panel=planted)
    other = lab("other", panel=changed_from(run.evaluator.windows.search.stop, planted, "open"))
    ids = [
        each.evaluator.submissions.submit_set([each.scored(text) for text in (KNOWN, *JUNK)]).factor_id
        for each in (run, other)
    ]
    assert ids[0] == ids[1]
    (weighing,) = (event.body for event in run.ledger.events.of("known", WEIGHING_EVENT))
    assert min(weighing["weights"].values()) >= MIN_WEIGHT
    assert sum(weighing["weights"].values()) == pytest.approx(1.0, abs=0.01)
    assert max(weighing["weights"], key=weighing["weights"].get) == parse(KNOWN).id


def test_the_test_is_one_sided_in_the_direction_of_the_search(lab: Make) -> None:
    run = lab()
    kept = {}
    for text in JUNK:
        selection = run.judged(text).selection or {}
        t = selection.get("added", selection)["t"]
        kept[run.direction(text) * t > 0] = selection["p_value"]
        assert (selection["p_value"] < 0.5) is (run.direction(text) * t > 0)
    assert set(kept) == {True, False}


def test_the_same_ranks_have_nothing_left_for_a_second_trial(lab: Make) -> None:
    run = lab(max_similarity=1.0, max_redundancy=1.0)
    run.judged(JUNK[0])
    for text in (f"-({JUNK[0]})", f"rank({JUNK[0]})", f"rank({JUNK[0]}) + 0.05 * {JUNK[1]}"):
        again = run.judged(text)
        assert (again.word, (again.selection or {})["p_value"]) == ("rejected", 1.0)
        assert "for what it adds to" in again.reasons[-1].message


def test_a_set_is_judged_by_its_members(lab: Make) -> None:
    run = lab()
    against = run.scored(JUNK[0], direction=-run.direction(JUNK[0]))
    verdict = run.evaluator.submissions.submit_set([against, run.scored(JUNK[1])])
    assert list(failed(verdict)) == ["alignment"]
    assert run.trials() == []


def test_a_set_with_a_member_that_met_selection_is_refused(lab: Make) -> None:
    """Its members could have been chosen for what they showed there."""
    seen = lab("first").judged(JUNK[0]).factor_id
    run = lab("second")
    members = [run.scored(JUNK[0]), run.scored(JUNK[1])]
    verdict = run.evaluator.submissions.submit_set(members)
    assert failed(verdict) == {"fresh": f"looked at on selection before: {seen}"}
    spent = run.evaluator.meter.trials_spent()
    assert (verdict.word, verdict.trial, spent, len(run.trials())) == ("rejected", None, 0, 1)


@pytest.mark.parametrize("place", [0, 1])
def test_each_member_of_a_set_must_not_have_met_selection(lab: Make, place: int) -> None:
    """Members are sorted by id, so that each of the two comes first once."""
    ids = sorted([lab("ids").scored(text) for text in JUNK[:2]])
    seen = next(text for text in JUNK[:2] if parse(text).id == ids[place])
    lab("first").judged(seen)
    run = lab("second")
    assert "fresh" in failed(run.evaluator.submissions.submit_set([run.scored(text) for text in JUNK[:2]]))


def test_a_formula_exactly_as_near_as_allowed_is_original(lab: Make) -> None:
    ratio = find_nearest(parse(JUNK[0]), Catalogue((read_published(),)))[0].ratio
    at = lab("at", max_similarity=ratio)
    assert steps(at.judged(JUNK[0]))["originality"]
    assert "not_new" not in {warning["code"] for warning in at.evaluator.score(JUNK[0])["warnings"]}
    beyond = lab("beyond", max_similarity=float(np.nextafter(ratio, 0)))
    assert beyond.propose(JUNK[0])["stage"] == "originality"


def test_a_set_of_factors_that_say_the_same_is_refused(lab: Make) -> None:
    run = lab()
    alike = [run.scored(JUNK[0]), run.scored(f"-({JUNK[0].replace('30', '29')})")]
    verdict = run.evaluator.submissions.submit_set(alike)
    assert list(failed(verdict)) == ["redundancy"]
    assert all(name in failed(verdict)["redundancy"] for name in alike)
    numbers = next(reason.numbers for reason in verdict.reasons if reason.step == "redundancy")
    assert abs(numbers["rank_correlation"]) > numbers["most"] == SMALL.max_redundancy
    assert run.trials() == []


def test_a_set_without_a_trial_left_leaves_no_score(lab: Make) -> None:
    run = lab(budget=Budget(trials=0))
    members = [run.scored(text) for text in JUNK[:2]]
    with pytest.raises(TrialsSpent):
        run.evaluator.submissions.submit_set(members)
    assert sorted(row.factor_id for row in run.ledger.evaluations.of("run")) == sorted(members)
    assert (run.ledger.events.of("run", "set"), run.ledger.verdicts.of("run"), run.trials()) == ([], [], [])


@pytest.mark.parametrize("count", [1, 11])
def test_a_set_has_two_to_ten_members(lab: Make, count: int) -> None:
    run = lab()
    ids = [run.scored(f"ts_kurt(high / low, {20 + number})") for number in range(count)]
    with pytest.raises(EvidenceError, match="A combination has 2 to 10 members"):
        run.evaluator.submissions.submit_set(ids * 2 if count == 1 else ids)


def test_the_same_question_has_the_same_answer_in_a_fresh_workspace(lab: Make, planted: Panel, tmp_path: Any) -> None:
    from alphaloom.ledger import Ledger

    mine = [lab(panel=planted).judged(text) for text in (JUNK[0], KNOWN)]
    engine.cache_clear()
    scorer.cache_clear()
    with Ledger.open(tmp_path / "other", clock=clock) as ledger:
        other = Lab.open(ledger, "another", planted, SMALL)
        assert [other.judged(text) for text in (JUNK[0], KNOWN)] == mine
