"""What a rule suspects of a formula and its words: it is told, and it decides nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from alphaloom.evaluation import Budget
from alphaloom.evaluation.closing.builder import ResultsBuilder
from alphaloom.evidence import Proposal
from alphaloom.evidence.gate.alignment import list_doubts
from alphaloom.factors import parse
from alphaloom.ledger import Ledger

from .lab import SMALL, Lab, claim_of, clock, market

CALM = "ts_mean(returns, 20) / ts_std(returns, 60)"
GOOD = {"t": 3.0, "rank_ic": 0.02, "decay": {"1": 0.01, "5": 0.02, "10": 0.02, "20": 0.02}}


def said(text: str = CALM, sheet: dict[str, Any] | None = None, description: str = "", **claim: Any) -> list[str]:
    return [
        doubt["message"]
        for doubt in list_doubts(parse(text), claim_of(text, **claim), GOOD if sheet is None else sheet, description)
    ]


def test_what_agrees_raises_no_doubt() -> None:
    assert said(description="A mean of 20 days over a spread of 60 days, held for 5 days.") == []
    assert said(sheet={}) == []
    assert said(sheet={"t": None, "rank_ic": None, "decay": {"1": None}}) == []


@pytest.mark.parametrize(("t", "told"), [(-2.0, True), (-1.9, False), (3.0, False)])
def test_a_sign_that_is_more_than_luck_is_held_against_the_direction(t: float, told: bool) -> None:
    found = said(sheet=GOOD | {"t": t, "decay": {}})
    assert [message.partition(":")[0] for message in found] == ["direction"] * told


def test_a_sign_that_turns_at_the_claimed_horizon() -> None:
    turned = GOOD | {"decay": {"1": 0.01, "5": 0.02, "20": -0.03}}
    assert said(sheet=turned, horizon_days=5) == []
    assert said(sheet=turned, horizon_days=18) == [
        "horizon: over 20 days, near the 18 that are claimed, the sign is turned"
    ]


def test_a_memory_that_is_far_longer_than_the_horizon() -> None:
    assert said("ts_mean(returns, 240)", horizon_days=5) == []
    assert "horizon: the formula looks back on" in said("ts_mean(returns, 240)", horizon_days=2)[0]


def test_a_field_that_is_spoken_of_and_not_read() -> None:
    spoken: dict[str, Any] = {
        "statement": "Heavy volume on a close near the low.",
        "fields": ["volume", "close", "low", "returns"],
    }
    assert said(**spoken) == ["fields: the hypothesis speaks of volume, the formula does not read it"]
    assert said("amount / ts_mean(amount, 20)", **spoken) == []  # the traded amount is made of volume


def test_days_of_the_description_that_are_in_no_window() -> None:
    found = said(description="The mean of 3 days, over 5 days, against a 70-day spread.")
    assert found == ["windows: the description speaks of 3 days, the formula's windows are 20, 60"]


def test_doubts_reach_the_agents_and_the_results_and_refuse_nothing(tmp_path: Path) -> None:
    with Ledger.open(tmp_path, clock=clock) as ledger:
        lab = Lab.open(ledger, "run", market(), SMALL, Budget(evaluations=9, trials=3))
        claim = claim_of(
            CALM, lab.direction(CALM), statement="Heavy volume.", fields=["volume", "returns"], id="r01/h00"
        )
        answer = lab.evaluator.propose(Proposal(CALM, claim, "k", "A mean of 3 days."))
        assert answer["ok"]
        told = [weakness["message"] for weakness in answer["weaknesses"] if weakness["code"] == "alignment"]
        assert [message.partition(":")[0] for message in told] == ["fields", "windows"]
        opinion = {"verdict": "doubts", "why": "It is about something else."}
        ledger.events.record("run", "agents.critique", "r01/h00/s0", {"keep": True, "alignment": opinion})
        verdict = lab.evaluator.submissions.submit([answer["id"]])[0]
        assert {reason.step: reason.passed for reason in verdict.reasons}["alignment"]
        (entry,) = [row for rows in ResultsBuilder(lab.evaluator).entries().values() for row in rows]
    assert entry["alignment"] == {"doubts": told[:1], "opinions": [{"step": 0, **opinion}]}
