"""A mechanism that is stated after scoring stands only if its refuter fails on search days."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from alphaloom.evaluation import state_mechanism
from alphaloom.evidence import EvidenceError
from alphaloom.evidence.archive import scored_claims
from alphaloom.market import Panel

from ..evidence.lab import KNOWN, Lab, claim_of, market

Make = Callable[..., Lab]
RIVAL = "volume"


@pytest.fixture(scope="module")
def planted() -> Panel:
    return market(planted=True)


def mined(run: Lab, text: str = KNOWN) -> str:
    return run.scored(text, either_way=True)


def state(run: Lab, name: str, refuter: str = RIVAL, text: str = KNOWN, **claim: Any) -> dict[str, Any]:
    direction = claim.pop("direction", run.direction(text))
    return state_mechanism(
        run.evaluator, name, claim_of(text, direction, mechanism="pressure", **claim).record(), refuter
    )


def test_a_mechanism_stands_where_the_rival_explains_nothing(lab: Make, planted: Panel) -> None:
    run = lab(panel=planted)
    name = mined(run)
    answer = state(run, name)
    assert (answer["stands"], answer["why"]) == (True, "")
    assert abs(answer["t"]) > 2
    claim = run.evaluator.log.proposals.claim(name)
    assert claim is not None
    assert (claim.mechanism, claim.data_mined) == ("pressure", False)
    assert scored_claims(run.ledger, run.evaluator.run)[name] == claim  # a replay reads the same
    assert state(run, name, refuter="ts_std(returns, 20)") == answer  # the first statement stands
    verdict = run.evaluator.submissions.submit([name])[0]
    (reason,) = [reason for reason in verdict.reasons if reason.step == "alignment"]
    assert reason.numbers == {"judged": 1}


@pytest.mark.parametrize(
    ("refuter", "claim", "why"),
    [
        (f"2 * ({KNOWN}) + 1", {}, "refuted: "),
        ("ts_std(returns, 20)", {}, "is left beside ts_std(returns, 20)"),  # t 2.5 alone, 1.9 beside it
        ("rank(clsoe)", {}, "the refuter cannot be read"),
        ("def factor(panel):\n    return panel['close']\n", {}, "must be a formula"),
        (RIVAL, {"fields": ["close"]}, "not named"),
        (RIVAL, {"direction": 0}, "the search window shows the opposite"),
        (RIVAL, {"either_way": True}, "a survey states no mechanism"),
    ],
)
def test_what_is_refuted_or_refused_stays_data_mined(
    lab: Make, planted: Panel, refuter: str, claim: dict[str, Any], why: str
) -> None:
    run = lab(panel=planted)
    name = mined(run)
    if "direction" in claim:
        claim = {"direction": -run.direction(KNOWN)}
    answer = state(run, name, refuter, **claim)
    assert not answer["stands"]
    assert why in answer["why"]
    kept = run.evaluator.log.proposals.claim(name)
    assert kept is not None
    assert kept.data_mined


def test_a_mechanism_is_stated_before_the_test_and_where_there_is_none(lab: Make, planted: Panel) -> None:
    run = lab(panel=planted)
    name = mined(run)
    run.evaluator.submissions.submit([name])
    with pytest.raises(EvidenceError, match="submitted to the gate"):
        state(run, name)
    stated = run.scored("ts_kurt(high / low, 25)")
    with pytest.raises(EvidenceError, match="it has one"):
        state(run, stated, text="ts_kurt(high / low, 25)")
    with pytest.raises(EvidenceError, match="was scored"):
        state(run, "f0")
