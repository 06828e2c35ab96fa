"""The one door to scores: what it refuses, what it records, and what it tells."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from alphaloom.evaluation import Budget, PanelContext, recall_facts
from alphaloom.evidence import EvidenceSettings, Proposal
from alphaloom.evidence.errors import EvidenceError
from alphaloom.evidence.settings import WindowSettings
from alphaloom.ledger import Ledger
from alphaloom.market import Panel

from ..evidence.lab import KNOWN, Lab, claim_of, market

Make = Callable[..., Lab]
ONE, TWO = "rank(ts_skew(volume, 30)) * rank(open)", "ts_kurt(high / low, 25)"


@pytest.mark.parametrize(
    ("text", "stage", "said", "at"),
    [
        ("rank(clsoe)", "parse", "unknown field 'clsoe'", 5),
        ("close + volume", "types", "", 8),
        ("delay(close, -1)", "causal", "", None),
        (" + ".join(f"rank(ts_std(returns, {n}))" for n in range(2, 14)), "complexity", "nodes, at most 30", None),
        ("-ts_returns(close, 5)", "originality", "nearly Alpha158 ROC5 (Qlib Alpha158)", None),
    ],
)
def test_every_refusal_says_where_it_ended(lab: Make, text: str, stage: str, said: str, at: int | None) -> None:
    run = lab()
    claim = claim_of("rank(close)", fields=["close", "returns", "volume"])
    answer = run.evaluator.propose(Proposal(text, claim, "k"))
    assert (answer["ok"], answer["stage"]) == (False, stage)
    assert said in answer["errors"][0]["message"]
    assert at is None or answer["errors"][0]["at"] == at
    attempt = run.ledger.attempts.of("run")[0]
    assert (attempt.stage, attempt.key, attempt.text) == (stage, "k", text)
    assert run.evaluator.meter.evaluations_spent() == 0


def test_a_score_is_told_and_recorded(lab: Make) -> None:
    run = lab()
    answer = run.propose(ONE)
    assert set(answer) == {"ok", "id", "text", "explained", "sheet", "weaknesses", "merit"}
    assert run.evaluator.read(answer["text"]).id == answer["id"]
    assert answer["sheet"]["window"]["name"] == "search"
    row = run.ledger.evaluations.get("run", answer["id"])
    assert row is not None
    assert row.sheet["t"] == answer["sheet"]["t"]
    price = 0.02 * max(run.evaluator.read(ONE).size - 5, 0)
    assert answer["merit"] == pytest.approx(abs(answer["sheet"]["t"]) - price, rel=1e-8)


def test_a_formula_in_other_words_is_scored_once(lab: Make) -> None:
    run = lab()
    first, second = run.propose(ONE, key="a"), run.propose("rank(open) * rank(ts_skew(volume, 30))", key="b")
    assert first == second
    assert run.evaluator.meter.evaluations_spent() == 1
    assert len(run.ledger.attempts.of("run")) == 2


def test_evaluations_end_with_the_budget(lab: Make) -> None:
    run = lab(budget=Budget(evaluations=1))
    assert run.propose(ONE)["ok"]
    refused = run.propose(TWO)
    assert (refused["ok"], refused["stage"]) == (False, "budget")
    assert run.propose(ONE, key="again")["ok"]  # what is known costs nothing
    assert run.evaluator.meter.evaluations_left() == 0


def test_the_budget_holds_against_many_at_once(lab: Make) -> None:
    """Tools run on threads: proposals that came together once all took the last evaluation."""
    run = lab(budget=Budget(evaluations=3))
    texts = [f"ts_kurt(high / low, {20 + number})" for number in range(12)]
    asked = [Proposal(text, claim_of(text), text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(run.evaluator.propose, asked))
    assert sum(answer["ok"] for answer in answers) == len(run.ledger.evaluations.of("run")) == 3


def test_a_hypothesis_cannot_pass_for_a_set(lab: Make) -> None:
    """The scores of sets are not counted against the budget, so their name may not be borrowed."""
    with pytest.raises(EvidenceError, match="may not be called 'set-x'"):
        lab().propose(ONE, id="set-x")


def test_a_hypothesis_keeps_its_words(lab: Make) -> None:
    run = lab()
    run.propose(ONE)
    with pytest.raises(EvidenceError, match="was told otherwise before"):
        run.propose(ONE, id=claim_of(ONE).id, statement="other words")


def test_a_key_that_is_taken_costs_nothing_and_leaves_nothing(lab: Make) -> None:
    """A score once stood without an attempt: the second formula was computed before its key was looked at."""
    run = lab()
    run.propose(ONE, key="a")
    with pytest.raises(EvidenceError, match="names an attempt at another formula"):
        run.propose(TWO, key="a")
    assert [row.text for row in run.ledger.evaluations.of("run")] == [ONE]
    assert len(run.ledger.events.of("run", "claim")) == 1


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_claims_do_not_depend_on_who_came_first(lab: Make, order: tuple[int, ...]) -> None:
    run = lab()
    direction = run.direction(ONE)
    for number in order:
        claim = claim_of(ONE, direction, id=f"h{number}")
        run.evaluator.propose(Proposal(ONE, claim, f"key-{number}"))
    assert {claim.id for claim in run.evaluator.log.proposals.claims().values()} == {"h0"}


def test_recall_tells_of_the_search_window_only(lab: Make) -> None:
    run = lab()
    for text in (ONE, TWO):
        run.judged(text)
    facts = recall_facts(run.evaluator, 1)
    best = max(run.evaluator.scores.values(), key=lambda row: row.sheet["merit"])
    assert [row["id"] for row in facts["factors"]] == [best.factor_id]
    assert facts["factors"][0]["t"] == best.sheet["t"]
    assert [row["outcome"] for row in facts["hypotheses"]] == ["rejected", "rejected"]
    selected = {
        number
        for outcome in run.trials()
        for number in (outcome or {})["selection"].values()
        if isinstance(number, float) and number != 1
    }
    assert selected
    assert not selected & set(numbers(facts))
    assert facts["fields"] == sorted(market().fields)
    assert facts["groups"] == sorted(market().groups)


def numbers(value: object) -> list[float]:
    """Return every number of a JSON value."""
    if isinstance(value, dict):
        return [found for part in value.values() for found in numbers(part)]
    if isinstance(value, list):
        return [found for part in value for found in numbers(part)]
    return [value] if isinstance(value, float) else []


def test_notes_on_the_whole_panel_are_not_told(lab: Make) -> None:
    panel = market().rows(0, 415)  # a panel of its own: notes are no part of what makes two panels equal
    early, late = panel.dates[5], panel.dates[-5]
    notes = (f"bad ticks suspected: AAA {early}", f"bad ticks suspected: BBB {late} and 3 more")
    run = lab(panel=replace(panel, notes=notes))
    told = [doubt["message"] for doubt in run.propose(ONE)["sheet"]["warnings"]]
    assert told == []
    assert {"code": "data", "message": notes[1]} in run.evaluator.score(ONE)["warnings"]


def test_a_score_by_hand_leaves_no_trace(lab: Make) -> None:
    run = lab()
    sheet = run.evaluator.score("-ts_returns(close, 5)")
    assert sheet["window"]["last"] == run.evaluator.windows.search.last_day
    assert "not_new" in [doubt["code"] for doubt in sheet["warnings"]]
    assert run.ledger.attempts.of("run") == []
    assert run.ledger.evaluations.of("run") == []


def test_a_selection_window_too_short_for_the_horizon_is_refused_at_once(ledger: Ledger) -> None:
    """It once ended the campaign at its close, when the report asked what could have been proven."""
    windows = WindowSettings(search=0.6, selection=0.2, min_search_days=40, min_selection_days=40, min_sealed_days=40)
    asked = EvidenceSettings(horizon_days=20, windows=windows)
    panel = market().rows(0, 400)
    with pytest.raises(
        EvidenceError,
        check=lambda error: error.code == "too_few_days",
        match="The selection window has 59 days; at a horizon of 20 days it proves nothing",
    ):
        PanelContext.set_up(panel, ledger, asked, "small")
    assert (
        PanelContext.set_up(panel, ledger, asked.model_copy(update={"horizon_days": 5}), "small").windows.selection.days
        == 59
    )


def test_what_other_runs_accept_meanwhile_changes_nothing(lab: Make, planted: Panel) -> None:
    run, other = lab("run", panel=planted), lab("other", panel=planted)
    for each in (run, other):
        each.evaluator.library.record_start()
    near = KNOWN.replace("17", "18")
    assert other.judged(KNOWN).word == "accepted"
    assert run.propose(near, "k")["ok"]
    assert list(run.evaluator.library.values) == []
    kept = [row.factor_id for row in run.ledger.library.rows()]
    assert [row.factor_id for row in other.evaluator.library.rows()] == kept
    assert lab("run", panel=planted).evaluator.library.rows() == []  # and nothing after a restart
    assert not lab("later", panel=planted).propose(near)["ok"]
    assert run.judged(KNOWN).word == "accepted"  # now it is the run's own, whoever brought it
    assert not run.propose(KNOWN.replace("17", "16"))["ok"]
