"""A campaign whose roles are `auto`, with two tiers: where its questions go is what the documents say."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from alphaloom import Campaign
from alphaloom.agents.offline import answer_offline
from alphaloom.desk.facts.model_spend import sum_spend
from alphaloom.ledger import Ledger

from ..router.served import chatting
from . import markets
from .conftest import Files

pytestmark = pytest.mark.integration

BRIEF = ["agents.rounds=1", "agents.hypotheses=3", "budget.evaluations=12", "budget.trials=2"]
AUTO = dict.fromkeys(("idea", "factor", "eval", "report"), "auto")


def count_tiers(files: Files, place: Path, **models: Any) -> tuple[dict[str, Counter[str]], dict[str, int]]:
    """Return the tiers of the agents' calls by intent, and how many escalated by their prompt or after a failure."""
    with chatting(answer_offline) as near:
        named = {
            "small": {"model": "hosted_vllm/near", "place": "local", "api_base": near.address},
            "large": {"model": "offline/researcher", "place": "local", "tier": "frontier"},
        }
        settings = [f"models.{name}={json.dumps(value)}" for name, value in {"models": named, **models}.items()]
        ready = Campaign.from_yaml(files.campaign, workspace=place, overrides=[*markets.BRIEF, *BRIEF, *settings])
        run = ready.run().run
    with Ledger.open(place, clock=ready.clock) as ledger:
        bill, tiers = sum_spend(ledger, run, "", None), dict[str, Counter[str]]()
        for call in ledger.calls.of(run):
            if call.intent != "account":  # the desk's own question
                tiers.setdefault(call.intent, Counter())[call.tier] += 1
    return tiers, bill["escalations"]


def test_agents_ask_the_frontier_by_what_became_of_such_questions_but_for_an_intent_that_the_file_fixes(
    files: Files, tmp_path: Path
) -> None:
    tiers, escalations = count_tiers(files, tmp_path, roles=AUTO, routing={"intents": {"critique": "local"}})
    assert {"hypotheses", "formulas", "critique"} <= tiers.keys()
    assert set(tiers.pop("critique")) == {"local"}
    assert {tier for counted in tiers.values() for tier in counted} == {"frontier"}
    assert escalations == {"by_prompt": sum(map(Counter.total, tiers.values())), "by_failure": 0, "unknown": 0}


def test_by_default_ideas_and_critiques_go_to_the_frontier_and_formulas_do_not(files: Files, tmp_path: Path) -> None:
    tiers, _ = count_tiers(files, tmp_path)
    assert (set(tiers["hypotheses"]), set(tiers["critique"])) == ({"frontier"}, {"frontier"})
    assert set(tiers["formulas"]) == {"local"}
