"""Prompts grow at their end, so that a server finds their beginnings in its prefix cache."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from alphaloom.agents import AgentsConfig
from alphaloom.agents.graph import fan_out
from alphaloom.agents.nodes.eval_agent import MAX_BEST_CRITICISED, criticise_formulas
from alphaloom.agents.nodes.factor_agent import MAX_SCORED_SHOWN
from alphaloom.agents.records import Mark, Work
from alphaloom.factors.operators import OPERATORS

from .doubles import Lab
from .test_halting import decide, halted_for_review, held, waiting

__all__ = ["held"]

Maker = Callable[..., Lab]
DEEP = AgentsConfig(rounds=2, hypotheses=3, candidates=4, steps=3, repairs=1)
GOES_ON = '{"weaknesses": [], "advice": [], "keep": true}'
CUT = {"factor": '], "best": ', "eval": '], "request": '}
"""Where what a prompt of a role tells ends, and what it asks begins."""


def contexts(lab: Lab, role: str) -> list[dict[str, Any]]:
    return [json.loads(task.messages[1].content) for task in lab.model.tasks if task.role == role]


def told(lab: Lab, role: str) -> dict[str, list[str]]:
    """Return what each branch was told, one text for each time that it was asked."""
    found: dict[str, list[str]] = {}
    for task in lab.model.tasks:
        said = task.messages[1].content
        if task.role == role:
            found.setdefault(json.loads(said)["hypothesis"]["id"], []).append(said[: said.index(CUT[role])])
    return found


def breaks(lab: Lab, role: str) -> list[bool]:
    """Return for each pair of a branch's successive prompts whether the later does not begin with the earlier."""
    pairs = [pair for texts in told(lab, role).values() for pair in pairwise(texts)]
    return [not later.startswith(earlier) for earlier, later in pairs]


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Return a campaign of several steps, in which every third formula is refused at first."""
    campaign = Lab(tmp_path_factory.mktemp("deep"), DEEP)
    error = {"message": "close and volume have no common unit", "hint": "rank them first", "at": 7}

    def refuse(arguments: dict[str, Any]) -> dict[str, Any] | None:
        first = arguments["key"].endswith("a0")
        return {"stage": "types", "errors": [error]} if first and len(campaign.servers.calls) % 3 == 0 else None

    campaign.servers.refuse = refuse
    campaign.run()
    return campaign


@pytest.mark.parametrize("role", ["factor", "eval"])
def test_what_a_branch_is_told_only_grows_at_its_end(deep: Lab, role: str) -> None:
    found = breaks(deep, role)
    assert len(found) > 6
    assert not any(found)
    assert {context["task"] for context in contexts(deep, "factor")} == {"factor", "repair"}


def test_a_critique_sees_what_the_one_before_saw(deep: Lab) -> None:
    shown: dict[str, list[int]] = {}
    for context in contexts(deep, "eval"):
        shown.setdefault(context["hypothesis"]["id"], []).append(len(context["factors"]))
    assert max(map(max, shown.values())) > 3


def test_a_critique_reads_horizons_in_order_and_returns_in_basis_points(deep: Lab) -> None:
    (first, *_), *_ = (context["factors"] for context in contexts(deep, "eval"))
    assert list(first["decay"]) == ["1", "5", "10"]
    assert (first["decay"]["5"], first["decay"]["10"]) == (0.0123, None)
    assert str(first["quantile_returns_bps"]) == "[-12.3, None, 0.0]"
    assert first["weaknesses"] == ["turnover: half of the book is traded each day"]


def test_branches_of_a_round_begin_alike(deep: Lab) -> None:
    said = [task.messages[1].content for task in deep.model.tasks if task.role == "factor"]
    shared = {text[: text.index(', "tried": ')] for text in said}
    assert len(shared) <= DEEP.rounds < len(said)


def test_the_best_of_a_branch_is_told_however_much_it_tried(lab: Maker) -> None:
    campaign = lab(config=AgentsConfig(rounds=1, hypotheses=1, candidates=32, steps=4, islands=1))
    campaign.servers.evaluations = 200
    campaign.model.say = lambda task: GOES_ON if task.role == "eval" else None
    campaign.run()
    known: dict[str, float] = {}
    for context in contexts(campaign, "factor")[1:]:
        rows = [*context["branch"]["scored"], *context["branch"]["best"]]
        known |= {row["id"]: abs(row["t"]) for row in rows if "id" in row}
        assert max(known.values()) == max(abs(row["t"]) for row in rows if "id" in row)
        assert len(rows) <= MAX_SCORED_SHOWN + 6
    assert len(known) > MAX_SCORED_SHOWN
    assert sum(breaks(campaign, "factor")) < len(breaks(campaign, "factor"))


def test_what_a_person_sends_back_stands_behind_what_grows(held: Lab) -> None:
    held.config = held.config.model_copy(update={"steps": 2})
    held.servers.trials = 20  # a round for a change needs a trial that is left
    halted_for_review(held)
    (factor,) = waiting(held)
    branch = next(
        key for key, row in held.servers.hypotheses.items() if held.servers.scored[factor]["hypothesis"] == key
    )
    decide(held, factor, "ask", "slower, please", [branch])
    halted_for_review(held)
    back = [context for context in contexts(held, "factor") if context["hypothesis"]["id"] == "r02/a00"]
    assert [row["id"] for row in back[0]["branch"]["best"]] == [factor]
    assert len(back) > 1
    assert not any(breaks(held, "factor"))


def test_a_round_that_an_older_version_began_goes_on_with_what_leads(deep: Lab) -> None:
    state: Any = deep.run(resume=True) | {"quota": {"r02/h00": 4}, "step": 1, "refused": {}}
    del state["round_elite"]
    (sent,) = fan_out(deep.desk(), state, "factor")
    assert sent.arg["elite"]


def test_a_critique_after_many_steps_sees_the_best_now_alone(deep: Lab) -> None:
    desk, sizes = deep.desk(), []
    for step in range(20, 30):
        best = tuple(
            Mark(9.0, f"f{step}{place}", f"r01/h00/s{step}/a0/{place}") for place in range(MAX_BEST_CRITICISED)
        )
        asyncio.run(criticise_formulas(desk, Work("r01/h00", step, 0, 1, best)))
        sizes.append(len(contexts(deep, "eval")[-1]["factors"]))
    assert sizes == [3, 6, 9, 12, 3, 6, 9, 12, 3, 6]


def test_the_idea_agent_is_told_names_of_operators_and_no_merit(deep: Lab) -> None:
    last = [context for context in contexts(deep, "idea") if context["record"]["factors"]][-1]
    assert last["language"]["operators"] == sorted(OPERATORS)
    assert last["record"]["factors"]
    assert not any("merit" in row for row in last["record"]["factors"])
