"""A campaign whose roles are `auto`, with two tiers: where its questions go is what the documents say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from alphaloom import Campaign
from alphaloom.agents.offline import answer_offline
from alphaloom.desk.facts.model_spend import sum_spend
from alphaloom.ledger import Ledger

from ..router.served import Say, chatting
from . import markets
from .conftest import Files

pytestmark = pytest.mark.integration

BRIEF = ["agents.rounds=1", "agents.hypotheses=3", "budget.evaluations=12", "budget.trials=2"]
AUTO = dict.fromkeys(("idea", "factor", "eval", "report"), "auto")
FREE: Mapping[str, Any] = {}
PRICED = {"input_cost_per_mtok": 3, "output_cost_per_mtok": 15}


def answer_uselessly(messages: Sequence[Mapping[str, Any]], seed: int) -> str:
    """Say what fits the schema and is of no use: nobody on the other side, and the one formula that is refused."""
    reply = json.loads(answer_offline(messages, seed))
    for hypothesis in reply.get("hypotheses", ()):
        hypothesis["who_is_on_the_other_side"] = "the and of"
    for candidate in reply.get("candidates", ()):
        candidate["text"] = "close"
    return json.dumps(reply)


def search_with_two(
    files: Files, place: Path, say: Say = answer_offline, price: Mapping[str, Any] = FREE, **models: Any
) -> tuple[dict[str, Counter[str]], dict[str, int], list[str]]:
    """Return the tiers of the agents' calls by intent, how many escalated and why, and the scored formulas."""
    with chatting(say) as near:
        named = {
            "small": {"model": "hosted_vllm/near", "place": "local", "api_base": near.address},
            "large": {"model": "offline/researcher", "place": "local", "tier": "frontier", **price},
        }
        settings = [f"models.{name}={json.dumps(value)}" for name, value in {"models": named, **models}.items()]
        ready = Campaign.from_yaml(files.campaign, workspace=place, overrides=[*markets.BRIEF, *BRIEF, *settings])
        run = ready.run().run
    with Ledger.open(place, clock=ready.clock) as ledger:
        bill, tiers = sum_spend(ledger, run, "", None), dict[str, Counter[str]]()
        for call in ledger.calls.of(run):
            if call.intent != "account":  # the desk's own question
                tiers.setdefault(call.intent, Counter())[call.tier] += 1
        scored = [row.text for row in ledger.evaluations.of(run)]
    return tiers, bill["escalations"], scored


def test_agents_ask_the_frontier_by_what_became_of_such_questions_but_for_an_intent_that_the_file_fixes(
    files: Files, tmp_path: Path
) -> None:
    tiers, escalations, _ = search_with_two(files, tmp_path, roles=AUTO, routing={"intents": {"critique": "local"}})
    assert {"hypotheses", "formulas", "critique"} <= tiers.keys()
    assert set(tiers.pop("critique")) == {"local"}
    assert {tier for counted in tiers.values() for tier in counted} == {"frontier"}
    assert escalations == {"by_prompt": sum(map(Counter.total, tiers.values())), "by_failure": 0, "unknown": 0}


def test_by_default_ideas_and_critiques_go_to_the_frontier_and_formulas_do_not(files: Files, tmp_path: Path) -> None:
    tiers, _, _ = search_with_two(files, tmp_path)
    assert (set(tiers["hypotheses"]), set(tiers["critique"])) == ({"frontier"}, {"frontier"})
    assert tiers["formulas"]["local"] > tiers["formulas"]["frontier"], "few replies are of no use"


def test_a_small_model_of_no_use_changes_nothing_that_a_search_scores(files: Files, tmp_path: Path) -> None:
    """Its ideas and formulas fit their schema; the campaign finds that they are of no use, and asks above."""
    tiers, escalations, scored = search_with_two(files, tmp_path / "two", answer_uselessly, PRICED, roles=AUTO)
    for intent in ("hypotheses", "formulas"):
        assert tiers[intent]["local"] == tiers[intent]["frontier"] > 0
    assert tiers["critique"]["local"] == 0, "nothing tells whether a critique is right"
    assert escalations["by_failure"] >= sum(counted["local"] for counted in tiers.values())
    assert scored == search_with_two(files, tmp_path / "one", roles=dict.fromkeys(AUTO, "frontier"))[2]
