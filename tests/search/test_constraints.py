"""A person's limits on a search are kept by the server, whatever an agent says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from alphaloom.evaluation import Budget, Evaluator, recall_facts
from alphaloom.evidence import EvidenceError, Proposal
from alphaloom.ledger import Ledger
from alphaloom.search.constraints import SearchConstraints

from ..evidence.lab import SMALL, Lab, claim_of, clock, market

LIMITS = SearchConstraints(fields=("close", "returns"), avoid=("momentum",))


@pytest.fixture
def limited(tmp_path: Path) -> Any:
    from dataclasses import replace

    with Ledger.open(tmp_path, clock=clock) as ledger:
        yield replace(
            Lab.open(ledger, "run", market(), SMALL, Budget(evaluations=9, trials=1)).evaluator, mandate=LIMITS
        )


def test_a_field_that_is_not_allowed_is_never_scored(limited: Evaluator) -> None:
    text = "ts_mean(volume, 10) / ts_mean(volume, 60) * ts_mean(returns, 5)"
    answer = limited.propose(Proposal(text, claim_of(text), "k1"))
    assert (answer["ok"], answer["stage"]) == (False, "mandate")
    assert answer["errors"][0]["message"] == (
        "the field volume may not be used here (steer.fields of the campaign, or the token): allowed are close, returns"
    )
    assert limited.meter.evaluations_spent() == 0
    assert [row.stage for row in limited.ledger.attempts.of("run")] == ["mandate"]


@pytest.mark.parametrize("words", [{"mechanism": "price_momentum"}, {"statement": "Momentum, by another name."}])
def test_a_hypothesis_about_what_is_avoided_is_refused(limited: Evaluator, words: dict[str, Any]) -> None:
    text = "ts_mean(returns, 23) / ts_std(returns, 41)"
    answer = limited.propose(Proposal(text, claim_of(text, **words), "k1"))
    assert (answer["ok"], answer["stage"]) == (False, "mandate")
    assert "'momentum', which this campaign avoids" in answer["errors"][0]["message"]


def test_what_is_allowed_is_scored_and_groupings_are_no_fields(limited: Evaluator) -> None:
    text = "group_rank(ts_mean(returns, 23) / ts_std(returns, 41), sector)"
    assert limited.propose(Proposal(text, claim_of(text), "k1"))["ok"]
    assert recall_facts(limited, 5)["fields"] == ["close", "returns"]


def test_a_field_that_the_panel_lacks_is_named_before_anything_is_done() -> None:
    with pytest.raises(EvidenceError, match="no field sentiment") as caught:
        SearchConstraints(fields=("close", "sentiment")).fit(market())
    assert caught.value.field == "steer.fields"
