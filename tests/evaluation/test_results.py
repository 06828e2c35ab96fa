"""What the results say of a run: sorted, counted, readable, and free of clocks, paths and run ids."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from alphaloom.campaign import ProgressMeter
from alphaloom.evaluation import Budget, ResultsBuilder
from alphaloom.evaluation.checks.power import next_power
from alphaloom.evidence.gate.trial_evidence import TrialEvidence, deflated_sharpe_of
from alphaloom.evidence.multiple_testing.online_fdr import lond_level
from alphaloom.evidence.scoring.long_short import annual_sharpe
from alphaloom.evidence.settings import CostSettings
from alphaloom.factors import parse
from alphaloom.ledger import canonical_json
from alphaloom.market import Panel

from ..evidence.lab import KNOWN, SMALL, WIDE, Crash, Lab, dying, market, read

Make = Callable[..., Lab]
JUNK = ("rank(ts_skew(volume, 30)) * rank(open)", "ts_kurt(high / low, 25)", "ts_rsquare(cap / volume, 21)")
ENTRY = {
    "id", "form", "text", "explained", "hypothesis", "reasons", "metrics", "trial", "members", "library_correlation",
    "incremental", "profile", "alignment",
}  # fmt: skip  # a table


def researched(run: Lab) -> ResultsBuilder:
    """Accept one factor, try one in vain, leave one unsent, propose one twice, and have three refused."""
    run.judged(KNOWN)
    run.judged(JUNK[0])
    run.scored(JUNK[1])
    run.scored(JUNK[0], key="again", id="again")
    run.propose("rank(volume) * rank(high)", key="k1", fields=["cap"])
    run.propose("-ts_returns(close, 5)", key="k2")
    run.propose("-ts_returns(close, 6)", key="k3")
    return ResultsBuilder(run.evaluator)


@pytest.fixture(scope="module")
def dossier(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ResultsBuilder]:
    """Return the results of one run, for the tests that only read them."""
    with read(tmp_path_factory.mktemp("dossier")) as ledger:
        yield researched(Lab.open(ledger, "run", market(1, names=120, planted=True), SMALL))


def test_entries_have_the_form_of_the_results(dossier: ResultsBuilder) -> None:
    record = dossier.record()
    lists = ("accepted", "proven", "watchlist", "rejected", "members", "untested")
    assert [len(record[name]) for name in lists] == [1, 0, 0, 1, 0, 1]
    for entry in (*record["accepted"], *record["rejected"], *record["untested"]):
        assert set(entry) == ENTRY
        assert parse(entry["text"]).id == entry["id"]
        assert set(entry["reasons"][0]) == {"step", "passed", "message", "numbers"}
        assert entry["metrics"]["search"]["window"]["name"] == "search"


def test_a_window_not_reached_is_null(dossier: ResultsBuilder) -> None:
    entries = dossier.entries()
    (unsent,), (tried,) = entries["untested"], entries["rejected"]
    assert (unsent["id"], tried["id"]) == (parse(JUNK[1]).id, parse(JUNK[0]).id)
    assert (unsent["metrics"]["selection"], unsent["trial"]) == (None, None)
    assert [reason["step"] for reason in unsent["reasons"]] == ["search"]
    assert tried["metrics"]["selection"]["window"]["name"] == "selection"
    assert (tried["trial"], tried["reasons"][-1]["step"]) == (2, "statistics")


def test_what_was_too_weak_is_not_said_to_have_been_passed_over(lab: Make, planted: Panel) -> None:
    weak, config = lab(panel=planted), {"settings": {"agents": {"min_search_t": 99.0}}}
    weak.ledger.runs.start(replace(weak.ledger.runs.find(weak.evaluator.run), id="weak", config=config))
    weak = Lab(weak.ledger, replace(weak.evaluator, run="weak"))
    weak.propose(JUNK[0])
    (entry,) = ResultsBuilder(weak.evaluator).entries()["untested"]
    t = abs(entry["metrics"]["search"]["t"])
    said = f"not tested: |t| = {t:.1f} in sample, below agents.min_search_t, 99"
    assert [reason["message"] for reason in entry["reasons"]] == [said]


def test_others_are_said_to_have_been_preferred_only_where_others_were_sent(lab: Make, planted: Panel) -> None:
    run = lab(panel=planted)
    run.propose(JUNK[0])
    run.propose(JUNK[1], direction=-run.direction(JUNK[1]))
    (first, second) = (ResultsBuilder(run.evaluator).entries()["untested"][place] for place in (0, 1))
    said = sorted(row["reasons"][0]["message"].partition(" (")[0] for row in (first, second))
    assert said == ["not tested: it shows the opposite of its hypothesis", "not tested: nothing was sent to the gate"]
    run.judged(JUNK[2])
    (entry,) = (row for row in ResultsBuilder(run.evaluator).entries()["untested"] if row["id"] == parse(JUNK[0]).id)
    assert entry["reasons"][0]["message"].startswith("not tested: other candidates were preferred (")


def test_attempts_evaluations_and_trials_are_counted(dossier: ResultsBuilder) -> None:
    record = dossier.record()
    assert record["attempts"] == {"total": 7, "refused": {"alignment": 1, "duplicate": 1, "originality": 2}}
    assert (record["evaluations"], record["trials"], record["prior_trials"], record["hypotheses"]) == (3, 2, 0, 3)


def test_looks_of_earlier_runs_and_elsewhere_are_prior(lab: Make, planted: Panel) -> None:
    researched(lab("first", panel=planted))
    record = ResultsBuilder(lab("second", panel=planted, prior_trials=4).evaluator).record()
    assert (record["trials"], record["prior_trials"], record["power"]["trials"]) == (0, 6, 6)
    assert record["power"]["p_required"] == pytest.approx(lond_level(7, 1), rel=1e-8)


def test_the_power_of_overlapping_labels_is_that_of_the_sheets(lab: Make, planted: Panel) -> None:
    dossier = researched(lab(panel=planted))
    power = dossier.power()
    assert power["p_required"] == pytest.approx(lond_level(3, 1), rel=1e-8)
    assert power["days"] == dossier.evaluator.windows.selection.days - 6
    assert power["rank_ic_likely"] > power["rank_ic_provable"] > 0
    sheets = [row.sheet for row in dossier.evaluator.scores.values()]
    error = np.median([abs(sheet["rank_ic"] / sheet["t"]) * np.sqrt(sheet["days"] / power["days"]) for sheet in sheets])
    assert power["rank_ic_provable"] == pytest.approx(power["t_required"] * error, rel=1e-6)
    assert power["rank_ic_likely"] == pytest.approx((power["t_required"] + norm.ppf(0.8)) * error, rel=1e-4)
    assert power["sentence"] == (
        f"After 2 trials, the next factor needs a measured RankIC of about {power['rank_ic_provable']:.3f} on these "
        f"{power['days']} selection days. One with a true RankIC of {power['rank_ic_likely']:.3f} would be accepted "
        "four times in five. Both are for a RankIC that scatters from day to day as most do here; a steadier one needs "
        "less."
    )


def test_the_power_of_what_is_held_is_in_the_same_unit(lab: Make, planted: Panel) -> None:
    dossier = researched(lab(panel=planted, test="held"))
    held, run = dossier.power(), dossier.evaluator
    rules = run.settings.model_copy(update={"test": "labels"})
    labels = next_power(replace(run, settings=rules, scorer=replace(run.scorer, settings=rules)), 2, 1)
    assert held["days"] == labels["days"] + 4
    assert held["t_required"] < 0.8 * labels["t_required"]
    assert 0.4 < held["rank_ic_provable"] / labels["rank_ic_provable"] < 1
    assert f"a measured RankIC of about {held['rank_ic_provable']:.3f} on" in held["sentence"]


def test_power_is_stated_beside_every_verdict_of_a_trial(dossier: ResultsBuilder) -> None:
    tried = [entry for entries in dossier.entries().values() for entry in entries if entry["trial"]]
    assert len(tried) == 2
    for entry in tried:
        power = entry["metrics"]["selection"]["power"]
        assert power["rank_ic_provable"] > 0
        assert (power["t"] >= power["t_required"]) == (dossier.verdicts[entry["id"]].verdict == "accepted")
        statistics = next(reason for reason in entry["reasons"] if reason["step"] == "statistics")
        assert f"a RankIC of {power['rank_ic_provable']:.3f} there is proof" in statistics["message"]


def test_an_empty_run_has_a_dossier(lab: Make) -> None:
    record = ResultsBuilder(lab().evaluator).record()
    assert (record["accepted"], record["rejected"], record["overfitting"]) == ([], [], None)
    assert (record["power"]["rank_ic_provable"], record["power"]["rank_ic_likely"]) == (None, None)
    assert "unknown, since no score has a t" in record["power"]["sentence"]


def test_a_set_is_an_entry_with_members(lab: Make) -> None:
    run = lab()
    members = sorted(run.scored(text) for text in JUNK)
    verdict = run.evaluator.submissions.submit_set(members)
    entry = next(
        entry for each in ResultsBuilder(run.evaluator).entries().values() for entry in each if entry["members"]
    )
    assert (entry["id"], entry["members"], entry["hypothesis"]["mechanism"]) == (verdict.factor_id, members, "set")
    assert parse(entry["text"]).id == entry["id"]
    assert ResultsBuilder(run.evaluator).record()["hypotheses"] == 3


def test_equal_work_gives_equal_bytes_whatever_the_run_is_called(
    lab: Make, planted: Panel, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from ..evidence.lab import SMALL, read

    mine = canonical_json(researched(lab("this-run", panel=planted)).record())
    with read(tmp_path_factory.mktemp("elsewhere")) as ledger:
        other = ResultsBuilder(researched(Lab.open(ledger, "other", planted, SMALL)).evaluator).record()
    assert canonical_json(other) == mine
    assert "this-run" not in mine
    assert "2026" not in mine


def test_too_good_a_single_factor_raises_the_alarm(lab: Make, planted: Panel) -> None:
    dossier = researched(lab(panel=planted, leak_rank_ic=0.02))
    assert parse(KNOWN).id in dossier.alarms()
    assert [warning.code for warning in dossier.warnings()].count("leak_alarm") == len(dossier.alarms())
    assert ResultsBuilder(lab("calm", panel=planted, leak_rank_ic=0.5).evaluator).alarms() == []


def test_too_good_a_combination_raises_the_alarm(lab: Make, planted: Panel) -> None:
    run = lab(panel=planted, leak_rank_ic=0.02)
    verdict = run.evaluator.submissions.submit_set([run.scored(text) for text in (KNOWN, JUNK[0])])
    assert ResultsBuilder(run.evaluator).alarms() == [verdict.factor_id]


def test_curves_are_daily_and_say_null(dossier: ResultsBuilder) -> None:
    curves = dossier.curves()
    record = dossier.record()
    assert parse(KNOWN).id in curves
    listed = [entry for word in ("accepted", "proven", "watchlist", "rejected") for entry in record[word]]
    assert set(curves) == {entry["id"] for entry in listed if entry["trial"] is not None}
    for name, window in (
        ("search", dossier.evaluator.windows.search),
        ("selection", dossier.evaluator.windows.selection),
    ):
        curve = curves[parse(KNOWN).id][name]
        assert (curve["dates"][0], curve["dates"][-1]) == (window.first_day, window.last_day)
        assert curve["rank_ic"][-6:] == [None] * 6
        assert len(curve["rank_ic"]) == len(curve["net"]) == window.days
        sharpe = annual_sharpe(np.array(curve["net"], dtype=float))
        assert sharpe == pytest.approx(record["accepted"][0]["metrics"][name]["net_sharpe"], rel=1e-6)
        assert list(curve["quintiles"]) == sorted({day[:7] for day in curve["dates"]})
        low, high = (sum(parts[k] for parts in curve["quintiles"].values()) for k in (0, -1))
        assert (high - low) * record["accepted"][0]["metrics"][name]["rank_ic"] > 0
    json.dumps(curves, allow_nan=False)


def test_progress_is_counted_from_the_ledger(lab: Make, planted: Panel) -> None:
    run = lab(panel=planted)
    moments = iter([10.0, 16.0, 22.0])
    meter = ProgressMeter(run.evaluator.meter, run.evaluator.reviews, 4, lambda: next(moments), 100.0)
    assert meter.read("searching", 1).remaining_s is None
    researched(run)
    for number in range(3):
        run.scored(f"ts_kurt(high / low, {30 + number})")
    seen = meter.read("searching", 2, "said", {"idea": "thinks"})
    assert (seen.phase, seen.round, seen.rounds, seen.message, seen.doing) == (
        "searching",
        2,
        4,
        "said",
        {"idea": "thinks"},
    )
    counts = seen.counts
    assert (counts.proposed, counts.readable, counts.scored, counts.sent, seen.trials) == (10, 10, 6, 2, 2)
    assert (counts.accepted, counts.watched, counts.rejected, counts.awaiting) == (1, 0, 1, 0)
    assert seen.best is not None
    assert abs(seen.best.t) == max(abs(row.sheet["t"]) for row in run.evaluator.scores.values())
    assert (seen.elapsed_s, seen.remaining_s) == (112.0, 12.0 / 6 * run.evaluator.meter.evaluations_left())


def test_data_and_windows_are_stated(dossier: ResultsBuilder) -> None:
    record = dossier.record()
    assert record["data"]["digest"] == dossier.evaluator.panel.digest != market().digest
    windows = dossier.evaluator.windows
    assert record["windows"]["sealed"] == windows.sealed.record()
    assert (record["windows"]["embargo_days"], record["windows"]["horizon_days"]) == (21, 5)


def test_the_rules_of_a_run_are_stated(lab: Make) -> None:
    stated = ResultsBuilder(lab(level=0.02, budget=Budget(evaluations=7, trials=3)).evaluator).record()["settings"]
    assert stated["budget"] == {"evaluations": 7, "trials": 3}
    assert (stated["evidence"]["level"], stated["evidence"]["max_redundancy"]) == (0.02, SMALL.max_redundancy)
    json.dumps(stated, allow_nan=False)


def test_a_look_of_another_run_is_told_as_reused(lab: Make) -> None:
    lab("first").judged(JUNK[0])
    second = lab("second")
    second.judged(JUNK[0])
    second.judged(JUNK[1])
    record = ResultsBuilder(second.evaluator).record()
    assert (record["trials"], record["looks_reused"], record["prior_trials"]) == (1, 1, 1)


def test_a_look_that_was_paid_is_neither_reused_nor_counted_twice(lab: Make) -> None:
    first = lab("first")
    name = first.scored(JUNK[0])
    with pytest.raises(Crash):
        dying(first).evaluator.submissions.submit([name])
    second = lab("second")
    second.judged(JUNK[0])
    record = ResultsBuilder(second.evaluator).record()
    assert (record["trials"], record["looks_reused"], record["prior_trials"]) == (1, 0, 0)


def test_declared_looks_stay_in_what_is_told(lab: Make) -> None:
    lab("first", prior_trials=5).judged(JUNK[0])
    record = ResultsBuilder(lab("second").evaluator).record()
    assert (record["prior_trials"], record["power"]["trials"]) == (6, 6)
    assert record["power"]["p_required"] == pytest.approx(lond_level(7, 0), rel=1e-8)


def test_windows_that_an_earlier_campaign_fixed_are_said(lab: Make) -> None:
    other = WIDE.model_copy(update={"search": 0.45})
    codes = [
        [warning["code"] for warning in ResultsBuilder(run.evaluator).record()["warnings"]].count("windows")
        for run in (lab("first"), lab("same"), lab("inherits", windows=other))
    ]
    assert codes == [0, 0, 1]


def test_on_noise_the_best_of_one_half_is_below_the_median_on_the_other_half_the_time(
    lab: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = lab(panel=market(1, nothing=True), costs=CostSettings(bps_per_side=0, borrow_bps_per_year=0))
    for number in range(20, 30):
        run.scored(f"ts_kurt(high / low, {number})")
    rng, found = np.random.default_rng(3), []
    noise = lambda self, expression: rng.standard_normal(self.panel.universe.shape).astype(np.float32)
    monkeypatch.setattr(type(run.evaluator), "values", noise)
    for _ in range(40):
        test = ResultsBuilder(run.evaluator).candidates.measure_overfitting()
        assert test is not None
        assert test.probability is not None
        found.append(test.probability)
    assert np.mean(found) == pytest.approx(0.5, abs=0.1)


def test_overfitting_is_of_single_factors_as_they_were_claimed(lab: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    run = lab()
    against = {text: -run.direction(text) for text in JUNK}
    members = [run.scored(text, direction=against[text]) for text in JUNK]
    run.evaluator.submissions.submit_set(members)
    held: list[int | None] = []
    plain = type(run.evaluator.scorer).score

    def noted(self: Any, values: Any, window: Any, sign: int | None = None) -> Any:
        held.append(sign)
        return plain(self, values, window, sign)

    monkeypatch.setattr(type(run.evaluator.scorer), "score", noted)
    test = ResultsBuilder(run.evaluator).candidates.measure_overfitting()
    assert test is not None
    assert test.candidates == 3  # the set is none of them
    assert held == [against[text] for text in sorted(JUNK, key=lambda text: parse(text).id)]


def test_fewer_than_two_factors_that_vary_have_no_overfitting(lab: Make) -> None:
    run = lab()
    run.scored(JUNK[0])
    run.scored("rank(close - close)", direction=1)
    assert len(run.evaluator.scores) == 2
    assert ResultsBuilder(run.evaluator).candidates.measure_overfitting() is None
    run.scored(JUNK[1])
    test = ResultsBuilder(run.evaluator).candidates.measure_overfitting()
    assert test is not None
    assert test.candidates == 2


def line(dossier: ResultsBuilder, rule: str) -> dict[str, Any]:
    """Return what one rule says of the run's stream."""
    return dict(next(one for one in dossier.stream.summarise().record()["rules"] if one["rule"] == rule))


def test_every_rule_is_asked_about_every_look(lab: Make, planted: Panel) -> None:
    dossier = researched(lab(panel=planted))
    record = dossier.record()["stream_rules"]
    assert (record["level"], record["looks"], record["declared"], record["unfinished"]) == (0.05, 2, 0, 0)
    assert [one["rule"] for one in record["rules"] if one["decides"]] == ["lond_dependent"]
    accepts = {one["rule"]: one["accepts"] for one in record["rules"]}
    assert accepts.pop("e_lond") == []  # a p-value of 1e-4 or so makes too small an e-value
    assert all(found == [parse(KNOWN).id] for found in accepts.values())
    json.dumps(record, allow_nan=False)


def test_the_line_that_decides_is_what_was_decided(lab: Make, planted: Panel) -> None:
    run = lab(panel=planted)
    run.judged(KNOWN)
    later = ResultsBuilder(lab("later", panel=planted, level=1e-12).evaluator)
    assert line(later, "lond_dependent")["found"] == 1  # as that run's own level had it
    assert line(later, "bonferroni")["found"] == 0
    assert line(later, "lond_dependent")["accepts"] == []  # it was not this run's


def test_looks_that_were_declared_count_as_looks_that_found_nothing(lab: Make, planted: Panel) -> None:
    researched(lab("first", panel=planted))
    second = ResultsBuilder(lab("second", panel=planted, prior_trials=400).evaluator)
    record = second.stream.summarise().record()
    assert (record["looks"], record["declared"]) == (402, 400)
    assert line(second, "bonferroni")["p_asked"] == pytest.approx(0.05 / 402)
    assert line(second, "lond_dependent")["p_asked"] == pytest.approx(lond_level(2, 1), rel=1e-5)  # as it was decided
    assert line(second, "lond")["p_asked"] < line(second, "lond_dependent")["p_asked"]


def test_a_look_that_was_cut_short_found_nothing(lab: Make) -> None:
    run = lab()
    name = run.scored(JUNK[0])
    with pytest.raises(Crash):
        dying(run).evaluator.submissions.submit([name])
    record = ResultsBuilder(run.evaluator).stream.summarise().record()
    assert (record["looks"], record["unfinished"]) == (1, 1)
    assert all(one["found"] == 0 for one in record["rules"])


def test_the_ratio_deflated_for_clusters_stands_beside_the_others(dossier: ResultsBuilder) -> None:
    entry = dossier.entries()["accepted"][0]
    ratios = entry["metrics"]["selection"]["deflated_sharpe"]
    assert set(ratios) == {"by_trials", "by_evaluations", "by_clusters"}
    clusters = dossier.record()["clusters"]
    assert (clusters["candidates"], clusters["scored"]) == (3, 3)
    look = dossier.stream.trials[0].outcome or {}
    seen = TrialEvidence.read(dossier.evaluator.ledger.objects.get(look["seen"]))
    assert ratios["by_clusters"] == deflated_sharpe_of(seen, clusters["clusters"])


def test_the_search_itself_is_tested_at_the_close(dossier: ResultsBuilder) -> None:
    record = dossier.record()
    best, crossed = record["superior"], record["cross_validation"]
    assert 0 < best["lower"] <= best["consistent"] <= best["upper"] <= 1
    assert (best["candidates"], best["scored"], best["block_days"]) == (3, 3, 10)
    assert (crossed["splits"], crossed["paths"], crossed["purge_days"]) == (15, 5, 5)
    assert len(crossed["rank_ic"]) == len(crossed["net_sharpe"]) == 5
    assert crossed["rank_ic"] == sorted(crossed["rank_ic"])
    assert crossed["rank_ic"][0] > 0.03  # the planted factor is chosen, and is worth it on every path


def test_nothing_scored_leaves_nothing_to_test(lab: Make) -> None:
    record = ResultsBuilder(lab().evaluator).record()
    assert [record[key] for key in ("overfitting", "superior", "cross_validation", "clusters")] == [None] * 4
    assert record["stream_rules"]["looks"] == 0
