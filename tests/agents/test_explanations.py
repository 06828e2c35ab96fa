"""What was data-mined is asked for a mechanism before the tests, and the offline researcher answers from its list."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from alphaloom.agents import AgentsConfig
from alphaloom.agents.schemas import Candidates, Mechanisms
from alphaloom.factors import parse
from alphaloom.router import Task

from .doubles import FIELDS, GROUPS, Lab, ask, context

Maker = Callable[..., Lab]
SURVEYS = AgentsConfig(rounds=1, hypotheses=3, candidates=3, steps=0, min_search_t=0, survey_share=1.0)


def explained(text: str, rank_ic: float) -> dict[str, Any]:
    """Return the researcher's statement about one candidate; empty without one."""
    row = {"id": parse(text, fields=FIELDS, groups=GROUPS).id, "text": text, "rank_ic": rank_ic, "t": 300 * rank_ic}
    reply = ask(context("mechanism", candidates=[row], request={"count": 1}))
    Mechanisms.model_validate(reply)
    return dict(reply["mechanisms"][0]) if reply["mechanisms"] else {}


@pytest.mark.parametrize(
    ("text", "rank_ic", "mechanism"),
    [
        ("ts_zscore(volume, 25)", 0.02, "attention"),  # unusual volume brings buyers
        ("-(ts_zscore(volume, 25))", -0.02, "attention"),  # the same quantity, written with the other sign
        ("ts_zscore(volume, 25)", -0.02, ""),  # the sign contradicts it
        ("ts_std(ts_std(returns, 9), 33)", -0.02, "unstable_risk"),
        ("ts_corr(ts_kurt(open, 40), ts_skew(amount, 15), 60)", 0.02, ""),  # like nothing that is documented
    ],
)
def test_the_mechanism_is_the_one_whose_skeleton_is_alike_and_whose_sign_agrees(
    text: str, rank_ic: float, mechanism: str
) -> None:
    statement = explained(text, rank_ic)
    assert statement.get("mechanism", "") == mechanism
    if mechanism:
        assert statement["direction"] == (1 if rank_ic > 0 else -1)
        assert "Documented by" in statement["statement"]
        assert parse(statement["refuter"], fields=FIELDS, groups=GROUPS)
        assert parse(text).fields <= set(statement["fields"])


def test_what_is_data_mined_is_explained_after_the_list_is_fixed_and_before_the_first_test(lab: Maker) -> None:
    campaign = lab(config=SURVEYS)
    drafts = [{"text": text, "rationale": "", "intent": "explore"} for text in ("ts_zscore(volume, 25)", "log(close)")]
    campaign.model.say = lambda task: json.dumps({"candidates": drafts}) if task.schema is Candidates else None
    campaign.run()
    plan = campaign.journal.read("tests", "r01/gate") or {}
    asked = [task for task in campaign.model.tasks if task.schema is Mechanisms]
    assert asked
    calls = campaign.servers.calls
    order = ["state_mechanism" if arguments.get("refuter") else name for name, arguments in calls]
    assert campaign.servers.stated, "at least one candidate is like a documented effect"
    assert {factor_id for factor_id, *_ in campaign.servers.stated} <= {*plan["combination"], *plan["factors"]}
    last_statement = max(place for place, name in enumerate(order) if name == "state_mechanism")
    assert last_statement < order.index("submit_to_gate")


def test_what_has_a_mechanism_is_not_asked_again(lab: Maker) -> None:
    campaign = lab(config=SURVEYS.model_copy(update={"survey_share": 0.0}))
    campaign.run()
    assert not [task for task in campaign.model.tasks if task.schema is Mechanisms]
    assert campaign.servers.looks


def test_a_campaign_without_surveys_tests_nothing_that_stays_without_a_mechanism(lab: Maker) -> None:
    campaign = lab(config=SURVEYS.model_copy(update={"survey_share": 0.0, "steps": 1}))
    drifted = ("log(close)", "ts_zscore(volume, 25)", "ts_kurt(returns, 40)")
    drafts = [{"text": text, "rationale": "", "intent": "data_mined"} for text in drifted]

    def say(task: Task) -> str | None:
        changing = task.schema is Candidates and json.loads(str(task.messages[-1].content))["request"]["step"] > 0
        return json.dumps({"candidates": drafts}) if changing else None

    campaign.model.say = say
    campaign.run()
    plan = campaign.journal.read("tests", "r01/gate") or {}
    listed = {*plan["combination"], *plan["factors"]}
    stated = {factor_id for factor_id, *_ in campaign.servers.stated}
    attempts = [json.loads(body) for (kind, _), body in campaign.journal.kept.items() if kind == "score"]
    mined = {attempt["id"] for attempt in attempts if attempt.get("data_mined")}
    assert mined - stated
    assert not (mined - stated) & listed
