"""The graph: rounds, repairs, crashes, order, quotas."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from alphaloom.agents import AgentsConfig, run_graph
from alphaloom.agents.graph import divide_evaluations, merge_by_key
from alphaloom.agents.prompt import load_prompt
from alphaloom.router import BudgetEnded, ReplyRefused, Task

from .doubles import Crash, Lab

Maker = Callable[..., Lab]
Calm = tuple[Lab, dict[str, Any]]


def kinds(lab: Lab, kind: str) -> dict[str, Any]:
    return {key: json.loads(body) for (found, key), body in lab.journal.kept.items() if found == kind}


def asked(lab: Lab, task: str) -> list[dict[str, Any]]:
    contexts = [json.loads(t.messages[1].content) for t in lab.model.tasks]
    return [context for context in contexts if context["task"] == task]


def test_a_campaign_runs_its_rounds_and_ends(calm: Calm) -> None:
    campaign, state = calm
    assert state["finished"]
    assert state["round"] == 2
    assert sorted(kinds(campaign, "hypothesis")) == ["r01/h00", "r01/h01", "r02/h00", "r02/h01"]
    assert {event for event, _ in campaign.shown} == {"round", "scored", "gate"}


def test_the_state_is_plain_and_small(calm: Calm) -> None:
    state = calm[1]
    assert json.loads(json.dumps(state)) == state
    assert len(json.dumps(state)) < 10_000


def test_equal_seeds_give_equal_journals(lab: Maker, calm: Calm) -> None:
    same, other = lab(), lab(seed=8)
    assert same.run() == calm[1]
    other.run()
    assert same.journal.kept == calm[0].journal.kept
    assert other.journal.kept != calm[0].journal.kept


@pytest.mark.parametrize("order", [1, 2])
def test_the_order_in_which_branches_finish_does_not_matter(lab: Maker, order: int) -> None:
    config = AgentsConfig(rounds=2, hypotheses=4, candidates=2, steps=1, max_concurrency=4)
    still, shuffled = lab(config=config), lab(config=config)
    shuffled.model.order = order
    assert still.run() == shuffled.run()
    assert still.journal.kept == shuffled.journal.kept
    for name in ("score_factor", "submit_to_gate"):
        calls = [[a for n, a in campaign.servers.calls if n == name] for campaign in (still, shuffled)]
        assert calls[0] == calls[1]


@pytest.mark.parametrize(
    "share", [0.005, 0.02, 0.08, 0.15, 0.22, 0.3, 0.37, 0.45, 0.5, 0.6, 0.68, 0.75, 0.82, 0.9, 0.97, 0.995]
)
def test_a_crash_anywhere_repeats_no_call_and_changes_no_record(lab: Maker, calm: Calm, share: float) -> None:
    steady, state = calm
    campaign = lab()
    campaign.fuse.at = max(1, round(share * steady.fuse.count))
    with pytest.raises(Crash):
        campaign.run()
    assert campaign.run(resume=True) == state
    assert campaign.journal.kept == steady.journal.kept
    assert sorted(campaign.model.replies) == sorted(steady.model.replies)
    assert len(campaign.model.tasks) == len(steady.model.tasks)


def test_resuming_a_finished_campaign_does_nothing(lab: Maker) -> None:
    campaign = lab(config=AgentsConfig(rounds=1, hypotheses=1, candidates=1, steps=0))
    state, before = campaign.run(), campaign.fuse.count
    assert campaign.run(resume=True) == state
    assert campaign.fuse.count == before


def test_a_refused_formula_goes_back_with_the_exact_error_twice_at_most(lab: Maker) -> None:
    campaign = lab(config=AgentsConfig(rounds=1, hypotheses=1, candidates=1, steps=0, repairs=2))
    error = {"message": "close and volume have no common unit", "hint": "rank them first", "at": 7}
    campaign.servers.refuse = lambda arguments: {"stage": "types", "errors": [error]}
    campaign.run()
    repairs = asked(campaign, "repair")
    assert len(repairs) == 2
    first = json.loads(campaign.journal.kept["score", "r01/h00/s0/c0/a0"])
    assert repairs[0]["branch"]["refused"] == [{"text": first["text"], "stage": "types", "errors": [error]}]
    assert sorted(kinds(campaign, "score")) == [f"r01/h00/s0/c0/a{attempt}" for attempt in range(3)]
    assert [len(repair["branch"]["scored"]) for repair in repairs] == [1, 2]


def test_a_refusal_that_no_spelling_cures_is_not_repaired(lab: Maker) -> None:
    campaign = lab(config=AgentsConfig(rounds=1, hypotheses=1, candidates=1, steps=0))
    campaign.servers.refuse = lambda arguments: {"stage": "budget", "errors": []}
    campaign.run()
    assert asked(campaign, "repair") == []


def test_the_evaluation_budget_is_never_passed(lab: Maker) -> None:
    campaign = lab(config=AgentsConfig(rounds=5, hypotheses=3, candidates=3, steps=2))
    campaign.servers.evaluations = 31
    campaign.run()
    assert 25 <= len(campaign.servers.scored) <= 31


def test_an_ended_model_budget_closes_the_campaign_with_what_there_is(lab: Maker) -> None:
    campaign = lab()

    def say(task: Task) -> None:
        if len(campaign.model.tasks) > 6:
            raise BudgetEnded("calls: 6 of 6")

    campaign.model.say = say
    state = campaign.run()
    assert state["finished"]
    assert "calls: 6 of 6" in state["ended"]


def test_a_budget_that_ends_while_drafts_are_changed_ends_the_search_with_what_was_drafted(lab: Maker) -> None:
    campaign = lab(config=AgentsConfig(rounds=3, hypotheses=1, candidates=2, steps=0, drafts=4, redrafts=1))

    def say(task: Task) -> None:
        if json.loads(task.messages[1].content).get("branch", {}).get("drafts"):
            raise BudgetEnded("calls: 3 of 3")

    campaign.model.say = say
    state = campaign.run()
    assert (state["finished"], state["round"]) == (True, 1)
    assert "calls: 3 of 3" in state["ended"]
    assert len(campaign.servers.scored) == 2


def test_a_model_that_cannot_meet_its_schema_costs_a_branch_only(lab: Maker) -> None:
    campaign = lab(config=AgentsConfig(rounds=1, hypotheses=2, candidates=2, steps=0))

    def say(task: Task) -> None:
        if json.loads(task.messages[1].content).get("hypothesis", {}).get("id") == "r01/h00":
            raise ReplyRefused("no JSON")

    campaign.model.say = say
    assert campaign.run()["finished"]
    assert {key[:7] for key in kinds(campaign, "score")} == {"r01/h01"}
    assert "no JSON" in kinds(campaign, "proposal")["r01/h00/s0/a0"]["failed"]


def test_a_round_without_ideas_costs_that_round_only(lab: Maker) -> None:
    campaign = lab()

    def say(task: Task) -> None:
        if task.role == "idea" and json.loads(task.messages[1].content)["request"]["round"] == 1:
            raise ReplyRefused("no JSON")

    campaign.model.say = say
    state = campaign.run()
    assert state["round"] == 2
    assert {key[:3] for key in kinds(campaign, "score")} == {"r02"}


def test_every_task_names_its_prompt_by_hash(calm: Calm) -> None:
    digests = {role: load_prompt(role).digest for role in ("idea", "factor", "eval")}
    tasks = calm[0].model.tasks
    assert {task.role for task in tasks} == set(digests)
    assert all(task.prompt == digests[task.role] for task in tasks)
    assert all(task.messages[0].content == load_prompt(task.role).text for task in tasks)


def test_a_branch_is_told_of_its_critique_and_what_it_scored(calm: Calm) -> None:
    later = [context for context in asked(calm[0], "factor") if context["request"]["step"] == 1]
    assert later
    assert all(context["branch"]["scored"] and context["branch"]["critique"]["advice"] for context in later)


def test_no_evaluation_is_promised_twice() -> None:
    assert divide_evaluations(["a", "b", "c"], 8, 20) == {"a": 3, "b": 3, "c": 2}
    assert divide_evaluations(["a", "b"], 100, 20) == {"a": 20, "b": 20}
    assert divide_evaluations([], 100, 20) == {}


def test_results_are_merged_by_key_and_only_the_latest_round_is_kept() -> None:
    assert list(merge_by_key({"r01/h01": 1}, {"r01/h00": 2})) == ["r01/h00", "r01/h01"]
    assert merge_by_key({"r01/h01": 1}, {"r02/h00": 2}) == {"r02/h00": 2}
    assert merge_by_key({"r99/h01": 1}, {"r100/h00": 2}) == {"r100/h00": 2}


def test_the_idea_agent_alone_is_told_which_known_effects_live(lab: Maker) -> None:
    campaign = lab(config=AgentsConfig(rounds=1, hypotheses=2, candidates=2, steps=1))
    effects = [{"mechanism": "reversal", "name": "one-day reversal", "direction": 1, "t": 4.2}]
    search = replace(campaign.desk(), known_effects=effects)
    asyncio.run(run_graph(search, campaign.folder / "graph.sqlite", "run", False))
    told = [(task.role, json.loads(task.messages[1].content).get("known_effects")) for task in campaign.model.tasks]
    assert ("idea", effects) in told
    assert {role for role, said in told if said} == {"idea"}
