"""Halting between super-steps, ends that come from outside, and what a person says of factors that wait."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from alphaloom.agents import AgentsConfig, SearchContext, run_graph
from alphaloom.agents.nodes.review import (
    AWAITING,
    MAX_COMMENT_CHARS_SHOWN,
    MAX_REVIEWS_SHOWN,
    read_reviews,
    take_decisions,
)
from alphaloom.agents.prompt import load_prompts

from .doubles import Lab

Maker = Callable[..., Lab]
Calm = tuple[Lab, dict[str, Any]]


def go(lab: Lab, desk: SearchContext, *, resume: bool = False) -> dict[str, Any]:
    return dict(asyncio.run(run_graph(desk, lab.folder / "graph.sqlite", "run", resume)))


def contexts(lab: Lab) -> list[dict[str, Any]]:
    return [json.loads(task.messages[1].content) for task in lab.model.tasks]


def decide(lab: Lab, factor: str, decision: str, comment: str, hypotheses: list[str]) -> None:
    body = {"decision": decision, "comment": comment, "text": lab.servers.scored[factor]["text"]}
    lab.journal.record("review", factor, {**body, "members": [], "hypotheses": hypotheses})


@pytest.fixture
def held(lab: Maker) -> Lab:
    """Return a campaign of one round in which the first factor before the gate passed it, halted for a person."""
    campaign = lab(config=AgentsConfig(rounds=1, hypotheses=2, candidates=2, steps=1, min_search_t=0, set_size=0))
    judge = campaign.servers.submit_to_gate

    def submit(ids: list[str], key: str, as_set: bool = False) -> dict[str, Any]:
        answer = judge(ids, key, as_set)
        if not any(name == "budget" and "review" in str(more) for name, more in campaign.servers.calls):
            answer["verdicts"][0]["verdict"] = AWAITING
        return answer

    campaign.servers.submit_to_gate = submit  # type: ignore[method-assign]
    return campaign


def repeatedly(*answers: bool) -> Iterator[bool]:
    """Give the answers in turn, the last one for ever."""
    yield from answers
    while True:
        yield answers[-1]


def waiting(lab: Lab) -> list[str]:
    kept = [json.loads(body) for (kind, _), body in lab.journal.kept.items() if kind == "submission"]
    return [v["id"] for one in kept for v in one["verdicts"] if v["verdict"] == AWAITING]


def halted_for_review(lab: Lab) -> dict[str, Any]:
    done = lambda: any(not lab.journal.read("review", name) for name in waiting(lab))
    return go(lab, replace(lab.desk(), halted=done), resume=True)


def test_halting_after_every_step_changes_nothing(lab: Maker, calm: Calm) -> None:
    campaign, state = lab(), {"finished": False}
    for _ in range(200):
        state = go(campaign, replace(campaign.desk(), halted=repeatedly(False, True).__next__), resume=True)
        if state["finished"]:
            break
    assert state == calm[1]
    assert campaign.journal.kept == calm[0].journal.kept
    assert len(campaign.model.tasks) == len(calm[0].model.tasks)


def test_what_ends_the_search_from_outside_closes_it_at_once(lab: Maker) -> None:
    campaign = lab()
    state = go(
        campaign, replace(campaign.desk(), ended=lambda: "budget.wall_s" if len(campaign.model.tasks) > 2 else "")
    )
    assert (state["finished"], state["ended"], state["round"]) == (True, "budget.wall_s", 1)
    assert not [context for context in contexts(campaign) if context["task"] == "critique"]


@pytest.mark.parametrize("most", [1, 3, 4])
def test_no_more_hypotheses_are_proposed_than_the_budget_has(lab: Maker, most: int) -> None:
    campaign = lab()
    state = go(campaign, replace(campaign.desk(), most_hypotheses=most))
    proposed = [key for kind, key in campaign.journal.kept if kind == "hypothesis"]
    assert len(proposed) == min(most, 4)
    assert ("budget.hypotheses" in state["ended"]) is (most == 1)  # more than a round's worth is used up in the last


def test_a_run_halts_for_a_person_and_an_approval_ends_it(held: Lab) -> None:
    state = halted_for_review(held)
    (factor,) = waiting(held)
    assert state["waiting"] == [factor]
    assert halted_for_review(held) == state  # nothing was decided: it rests where it was
    decide(held, factor, "approve", "", ["r01/h00"])
    assert halted_for_review(held) | {"waiting": [factor]} == {**state, "asked": []}


def test_what_a_person_sends_back_is_worked_on_after_the_last_round_too(held: Lab) -> None:
    state = halted_for_review(held)
    (factor,) = waiting(held)
    branch = next(mark[2] for mark in state["sent"] if mark[1] == factor).rpartition("/s")[0].partition("/s")[0]
    decide(held, factor, "ask", "slower, please", [branch])
    state = halted_for_review(held)
    assert (state["finished"], state["round"]) == (True, 2)
    later = [context for context in contexts(held) if context.get("hypothesis", {}).get("id", "").startswith("r02/")]
    assert {context["hypothesis"]["id"] for context in later} == {"r02/a00"}
    assert later[0]["hypothesis"]["asked"]["comment"] == "slower, please"
    assert [row["id"] for row in later[0]["branch"]["best"]] == [factor]
    assert later[0]["record"]["reviews"][0]["decision"] == "asked for a change"
    pages = {load_prompts(role, "review").digest for role in ("factor", "eval")}
    assert pages <= {task.prompt for task in held.model.tasks}


def test_reviews_are_few_short_and_newest_first(lab: Maker) -> None:
    campaign = lab()
    desk = campaign.desk()
    for number in range(1, 5):
        names = [f"f{number}{place}" for place in range(4)]
        for name in names:
            said = {"decision": "reject", "comment": "x" * 2 * MAX_COMMENT_CHARS_SHOWN, "by": "somebody"}
            campaign.journal.record("review", name, said)
        assert take_decisions(desk, names, number + 1) == []
    told = read_reviews(desk, 9)["reviews"]
    assert [review["factor"] for review in told] == [f"f{n}{k}" for n in (4, 3, 2) for k in range(4)][
        :MAX_REVIEWS_SHOWN
    ]
    assert {len(review["comment"]) for review in told} == {MAX_COMMENT_CHARS_SHOWN}
    assert "somebody" not in json.dumps(told)
    assert [review["factor"] for review in read_reviews(desk, 2)["reviews"]] == ["f10", "f11", "f12", "f13"]
    assert read_reviews(desk, 1) == {}
