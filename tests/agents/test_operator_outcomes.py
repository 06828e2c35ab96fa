"""What changes did is counted from the journal, as a slow and obvious count has it, and told in the open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from alphaloom.agents.memory.operator_outcomes import (
    MUTATION_PREFIX,
    add_descent,
    count_outcomes,
    describe_operators,
    parse_operator,
    pool_rows,
)
from alphaloom.agents.offline.mutations import CHANGES, DIRECTED_CHANGES, LOCAL_CHANGES
from alphaloom.agents.records import FormulaAttempt
from alphaloom.agents.schemas import UNDIRECTED_CHANGES

from .doubles import SMALL, Lab, Servers, ask
from .test_researcher import factor_context, row

SEVERAL = SMALL.model_copy(update={"rounds": 3, "steps": 2, "candidates": 4})
Kept = dict[str, dict[str, Any]]


class Spending(Servers):
    """Servers that say how much of the budget is spent, so that what was measured is followed up, with what is weak."""

    def recall_attempts(self, limit: int, query: str = "", language: bool = False) -> dict[str, Any]:
        told = super().recall_attempts(limit, query, language)
        rows = [{**row, "weaknesses": ["turnover"]} for row in told["factors"]]
        return {**told, "factors": rows, "spent": len(self.scored) / self.evaluations}


def run(folder: Path, **changes: Any) -> Lab:
    campaign = Lab(folder, SEVERAL.model_copy(update=changes))
    campaign.servers = Spending(campaign.fuse)
    campaign.run()
    return campaign


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return run(tmp_path_factory.mktemp("several"))


def kept(campaign: Lab, kind: str) -> Kept:
    return {key: json.loads(body) for (what, key), body in campaign.journal.kept.items() if what == kind}


def slow_count(scores: Kept, upto: int) -> list[dict[str, Any]]:
    """Count cell by cell over all scores of the first rounds."""
    said = [each for key, each in sorted(scores.items()) if int(key[1:3]) <= upto and each["ok"] and "parent" in each]
    rows = []
    for operator, where in sorted({(parse_operator(attempt["intent"]), attempt["where"]) for attempt in said}):
        mine = [
            attempt for attempt in said if (parse_operator(attempt["intent"]), attempt["where"]) == (operator, where)
        ]
        gains = [abs(attempt["sheet"]["t"]) - abs(attempt["parent_t"]) for attempt in mine]
        better = sum(gain > 0 for gain in gains)
        rows.append({"operator": operator, "where": where, "tried": len(mine), "better": better, "gained": sum(gains)})
    return rows


def test_the_table_of_each_round_is_the_slow_count_of_all_scores_until_then(searched: Lab) -> None:
    tables, scores = kept(searched, "operators"), kept(searched, "score")
    assert sorted(tables) == ["r01", "r02", "r03"]
    assert sum(row["tried"] for row in tables["r03"]["rows"]) > 10
    for number, key in enumerate(sorted(tables), 1):
        wanted = slow_count(scores, number)
        assert [{**row, "gained": pytest.approx(row["gained"])} for row in wanted] == tables[key]["rows"]


def test_every_child_names_a_parent_that_was_scored_before_it_with_its_figures(searched: Lab) -> None:
    scores = kept(searched, "score")
    by_id = {score["id"]: score for score in scores.values() if score["ok"]}
    items = [item for proposal in kept(searched, "proposal").values() for item in proposal["items"]]
    changed = [item for item in items if item["intent"] in CHANGES or item["intent"].startswith(MUTATION_PREFIX)]
    assert len(changed) > 10
    for item in changed:
        parent, scored = by_id[item["parent"]], scores[item["key"]]
        assert (item["parent_t"], item["where"]) == (parent["sheet"]["t"], "turnover")
        assert {name: scored[name] for name in ("parent", "parent_t", "where")} == {
            name: item[name] for name in ("parent", "parent_t", "where")
        }
    assert all("parent" not in item for item in items if item["intent"] == "explore")


def test_agents_are_told_the_table_of_the_rounds_before_and_nothing_without_memory(
    searched: Lab, tmp_path: Path
) -> None:
    def records(campaign: Lab) -> dict[tuple[str, int], Any]:
        found = {}
        for task in campaign.model.tasks:
            body = json.loads(task.messages[1].content)
            if body["task"] in ("factor", "critique"):
                found[body["task"], int(body["hypothesis"]["id"][1:3])] = body.get("record", {}).get("operators")
        return found

    shown = records(searched)
    assert shown["factor", 1] is None
    assert (
        shown["factor", 3]
        == shown["critique", 3]
        == describe_operators(searched.desk(), 3)
        != describe_operators(searched.desk(), 2)
    )
    forgetful = run(tmp_path, memory=False)
    assert set(records(forgetful).values()) == {None}
    assert "r03" in kept(forgetful, "operators")


def test_what_a_prompt_shows_is_bounded_and_pools_over_all_weaknesses() -> None:
    scores = [
        {"ok": True, "intent": intent, "where": f"w{n}", "parent": "f", "parent_t": -1.0, "sheet": {"t": t}}
        for n in range(60)
        for intent, t in (("smooth", 2.0), ("mutate: wrap + hoist", -0.5), ("be bold!", 0.0))
    ]
    attempts = [FormulaAttempt.parse("key", score) for score in scores]
    rows = count_outcomes(attempts)
    assert pool_rows(rows) == [
        {"operator": "mutate: wrap", "where": "any", "tried": 60, "better": 0, "gained": -30.0},
        {"operator": "other", "where": "any", "tried": 60, "better": 0, "gained": -60.0},
        {"operator": "smooth", "where": "any", "tried": 60, "better": 60, "gained": 60.0},
    ]
    assert count_outcomes(attempts[90:], count_outcomes(attempts[:90])) == rows


def test_a_parent_that_was_not_shown_is_dropped() -> None:
    shown: list[dict[str, Any]] = [
        {"id": "f1", "t": None, "weaknesses": None},
        {"id": "f2", "t": -2.0, "weaknesses": ["decay", "weak"]},
    ]
    assert add_descent({"text": "x", "parent": "f3"}, shown) == {"text": "x"}
    assert add_descent({"text": "x", "parent": ""}, [{"id": ""}]) == {"text": "x"}
    assert add_descent({"parent": "f1"}, shown) == {"parent": "f1", "parent_t": 0.0, "where": "none"}
    assert add_descent({"parent": "f2"}, shown) == {"parent": "f2", "parent_t": -2.0, "where": "decay"}


def test_names_of_changes_are_those_that_are_made() -> None:
    assert tuple(change.__name__ for change, _ in LOCAL_CHANGES) == UNDIRECTED_CHANGES
    assert {parse_operator(name) for name in CHANGES} == {*CHANGES}


def intents(body: dict[str, Any]) -> set[str]:
    return {candidate["intent"] for seed in range(12) for candidate in ask(body, seed)["candidates"]}


def test_a_follow_up_without_a_critique_makes_what_cures_its_parents_weaknesses() -> None:
    cited = [row("ts_mean(returns, 20)", 4.0, weaknesses=["decay"])]
    body = factor_context([], cited=cited, request={"count": 8, "step": 0})
    assert intents(body) & {*DIRECTED_CHANGES} == {"shorten", "retime"}
    plain = factor_context([], cited=[cited[0] | {"weaknesses": []}], request={"count": 8, "step": 0})
    assert not intents(plain) & {*DIRECTED_CHANGES}


def test_without_directed_changes_none_is_made_and_no_advice_is_told(tmp_path: Path) -> None:
    campaign = run(tmp_path, directed=False)
    items = [item for proposal in kept(campaign, "proposal").values() for item in proposal["items"]]
    assert any("parent" in item for item in items)
    assert not {item["intent"] for item in items} & {*DIRECTED_CHANGES}
    bodies = [json.loads(task.messages[1].content) for task in campaign.model.tasks if task.role == "factor"]
    critiques = [body["branch"]["critique"] for body in bodies if body["branch"]["critique"]]
    assert critiques
    assert all("advice" not in critique for critique in critiques)
    advised = factor_context([row("ts_mean(returns, 20)", 4.0)], critique={"advice": [{"operator": "smooth"}]})
    assert "smooth" in intents(advised | {"request": {"count": 8, "step": 1}})
    assert "smooth" not in intents(advised | {"request": {"count": 8, "step": 1, "directed": False}})


def test_a_change_of_a_draft_keeps_what_the_draft_changed() -> None:
    body = factor_context([], request={"count": 6, "step": 0})
    draft = {"text": "ts_mean(returns, 20)", "rank_ic": 0.02, "known": 0.5, "intent": "smooth", "parent": "f1"}
    told = [
        candidate for seed in range(5) for candidate in ask(body | {"branch": {"drafts": [draft]}}, seed)["candidates"]
    ]
    changed = [candidate for candidate in told if candidate["intent"] != "explore"]
    assert changed
    assert {candidate["parent"] for candidate in changed} == {"f1"}
    assert {parse_operator(candidate["intent"]) for candidate in changed} == {"smooth"}
    fresh = {name: draft[name] for name in ("text", "rank_ic", "known")}
    assert all("parent" not in candidate for candidate in ask(body | {"branch": {"drafts": [fresh]}})["candidates"])
