"""The archive: the best of every niche is kept and shown, and islands keep to themselves."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from alphaloom.agents import AgentsConfig, Steer
from alphaloom.agents.memory.archive import (
    MAX_NICHES_KEPT,
    MAX_STRONGEST_KEPT,
    MIGRATION_ROUNDS,
    SearchArchive,
    name_niche,
    place_in_niches,
)
from alphaloom.agents.memory.diversity import HypothesisFilter, HypothesisIntake, compute_mechanism_quota
from alphaloom.agents.nodes import shortlist as gate
from alphaloom.agents.records import BranchHypothesis, FormulaAttempt, Mark, rank_marks

from .doubles import Lab

Maker = Callable[..., Lab]

CLAIM: dict[str, Any] = {"mechanism": "short_reversal", "direction": 1, "horizon_days": 5, "either_way": False}
STRONG, MORE = 6, 5
NICHES = "abcde"
"""Niches of the drawn marks: as many as a small archive has places for the sake of niches."""


@st.composite
def drawn(draw: st.DrawFn) -> list[Mark]:
    """Return marks of a few niches and branches, some of one formula found twice."""
    rows = draw(st.lists(st.tuples(st.integers(-90, 90), st.integers(0, 30), st.integers(0, 9)), max_size=60))
    return [
        Mark(t / 10, f"f{formula:02d}", f"r{1 + at % 5:02d}/h{at:02d}/s0/c{place}/a0", NICHES[formula % len(NICHES)])
        for place, (t, formula, at) in enumerate(rows)
    ]


def best(marks: list[Mark]) -> dict[str, Mark]:
    """Return the best mark of each niche, the slow way."""
    found: dict[str, Mark] = {}
    for mark in sorted(
        marks, key=lambda mark: (-abs(mark.t), mark.id, [int(digits) for digits in re.findall("[0-9]+", mark.key)])
    ):
        found.setdefault(mark.niche, mark)
    return found


@given(drawn(), st.integers(1, 4))
def test_the_best_of_a_niche_stays_whatever_comes_and_in_whatever_order(marks: list[Mark], islands: int) -> None:
    archive = SearchArchive(STRONG, MORE, islands)
    whole = archive.keep(marks)
    grown: list[Mark] = []
    for mark in marks:
        grown = archive.keep([*grown, mark])
        assert len(grown) <= STRONG + MORE
    assert whole == archive.keep(reversed(marks))
    assert {*best(marks).values()} <= {*whole}
    assert {*best(marks).values()} <= {*grown}
    assert whole[:STRONG] == grown[:STRONG] == rank_marks(marks, STRONG)
    assert whole == rank_marks(whole, STRONG + MORE)


@given(drawn())
def test_different_niches_are_shown_first(marks: list[Mark]) -> None:
    shown = SearchArchive().show(marks, "r01/h00", 8)
    assert shown[: len(best(marks))] == list(best(marks).values())
    assert len(shown) == min(8, len({mark.id for mark in marks}))


@given(drawn())
def test_without_niches_and_islands_it_is_the_strongest(marks: list[Mark]) -> None:
    archive = SearchArchive(STRONG, MORE, islands=1, mapped=False)
    assert archive.keep(marks) == rank_marks(marks, STRONG)
    assert archive.show(marks, "r03/h01", 5) == rank_marks(marks, 5)
    assert archive.found(marks, marks) == marks[:3]


@given(drawn(), st.integers(1, 4 * MIGRATION_ROUNDS), st.integers(0, 9))
def test_an_island_sees_its_own_until_the_migration(marks: list[Mark], number: int, index: int) -> None:
    archive, branch = SearchArchive(islands=3), f"r{number:02d}/h{index:02d}"
    seeds = [Mark(1.0, "fseed", "r00/h0000/s0/c0/a0", "own")]
    shown = archive.show([*marks, *seeds], branch, 100)
    if number % MIGRATION_ROUNDS:
        assert {archive.island(mark.branch) for mark in shown if mark.id != "fseed"} <= {archive.island(branch)}
    else:
        assert shown == archive.show([*marks, *seeds], f"r{number:02d}/h00", 100)
    assert "fseed" in {mark.id for mark in shown}


def test_every_island_has_as_many_branches_as_any_other() -> None:
    archive = SearchArchive(islands=4)
    for number in range(1, 9):
        assert sorted(archive.island(f"r{number:02d}/h{index:02d}") for index in range(8)) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert len({archive.island(f"r{number:02d}/h00") for number in range(1, 5)}) == 4


@pytest.mark.parametrize(
    ("days", "turnover", "cell"),
    [
        (5, 0.02, "short_revers/week/slow"),
        (6, 0.1, "short_revers/month/middle"),
        (22, 0.19, "short_revers/longer/fast"),
        (1, None, "short_revers/week/slow"),
    ],
)
def test_a_niche_is_mechanism_horizon_and_turnover(days: int, turnover: float | None, cell: str) -> None:
    assert name_niche(BranchHypothesis.parse(CLAIM | {"horizon_days": days}), ["close"], turnover, 5) == cell
    other = CLAIM | {"mechanism": "Short reversals", "horizon_days": days}
    assert name_niche(BranchHypothesis.parse(other), ["volume"], turnover, 5) == cell


def test_a_survey_is_told_apart_by_the_kinds_of_fields_that_are_read() -> None:
    survey = CLAIM | {"mechanism": "survey_open", "either_way": True}
    assert (
        name_niche(BranchHypothesis.parse(survey), ["volume", "close", "high"], 0.02, 5)
        == "survey_open(price+volume)/week/slow"
    )
    assert name_niche(BranchHypothesis.parse(survey), ["sentiment"], 0.02, 5) == "survey_open(sentiment)/week/slow"
    assert name_niche(BranchHypothesis.parse(CLAIM | {"mechanism": "反转"}), [], 0.02, 5) == "反转/week/slow"


def kept(lab: Lab, kind: str) -> dict[str, Any]:
    return {key: json.loads(body) for (found, key), body in lab.journal.kept.items() if found == kind}


def test_a_campaign_fills_niches_and_islands_hold(lab: Maker) -> None:
    config = AgentsConfig(rounds=4, hypotheses=3, candidates=3, steps=1, islands=3)
    campaign = lab(config=config)
    campaign.servers.evaluations = 200
    state = campaign.run()
    cells, archive = kept(campaign, "niche"), SearchArchive.of(config)
    assert {row[3] for row in state["elite"]} == {*cells}
    assert len(cells) > 6
    found: dict[str, set[str]] = {}
    for key, told in kept(campaign, "score").items():
        found.setdefault(told["id"], set()).add("/".join(key.split("/")[:2]))
    for task in campaign.model.tasks:
        body = json.loads(task.messages[1].content)
        branch = body.get("hypothesis", {}).get("id", "")
        if task.role != "factor" or branch.startswith("r04"):
            continue
        for row in body["record"]["elite"]:
            assert archive.island(branch) in {archive.island(niche) for niche in found[row["id"]]}


def test_settings_off_search_differently_and_as_before(lab: Maker) -> None:
    old = AgentsConfig(rounds=2, hypotheses=3, candidates=3, steps=1, islands=1, archive=False)
    plain = lab(config=old)
    state = plain.run()
    assert state["elite"] == [
        list(mark) for mark in rank_marks([Mark(*row) for row in state["elite"]], MAX_STRONGEST_KEPT)
    ]
    strongest: list[str] = []
    for task in plain.model.tasks:
        body = json.loads(task.messages[1].content)
        if task.role == "factor" and body["hypothesis"]["id"].startswith("r02") and body["request"]["step"] == 0:
            strongest = [row["id"] for row in body["record"]["elite"]]
    scored = [row for row in state["elite"] if row[2].startswith("r01")]
    assert strongest == [row[1] for row in scored][: len(strongest)]
    assert strongest


def test_what_leads_is_sent_although_the_archive_let_it_go(lab: Maker) -> None:
    campaign = lab()
    desk = campaign.desk()
    branch, text = "r01/h00", "rank(close)"
    desk.journal.record("hypothesis", branch, CLAIM | {"statement": "Losers rise.", "fields": ["close"]})
    desk.journal.record("recall", "r01", campaign.servers.recall_attempts(1))
    scored = campaign.servers.score_factor(text, {"id": branch, **CLAIM}, "key") | {"key": f"{branch}/s0/c0/a0"}
    scored["sheet"]["t"] = 4.0
    desk.journal.record("score", scored["key"], scored)
    (mark,) = place_in_niches(desk, branch, [FormulaAttempt.parse(scored["key"], scored)])
    campaign.servers.list_formulas = lambda which, limit=10: {"leaders": [{"id": mark.id}]}  # type: ignore[method-assign]
    assert asyncio.run(gate.spend_trials(desk, [], [], "r01/gate", first=False)) == [mark]


@pytest.mark.parametrize("second_leads", [True, False])
def test_equal_figures_make_copies_of_all_but_leaders(lab: Maker, second_leads: bool) -> None:
    campaign = lab()
    desk = campaign.desk()
    desk.journal.record("recall", "r01", campaign.servers.recall_attempts(1))
    marks = []
    for at, text in enumerate(("rank(close)", "ts_kurt(volume, 30)")):
        branch = f"r01/h{at:02d}"
        desk.journal.record("hypothesis", branch, CLAIM | {"statement": "Losers rise.", "fields": ["close"]})
        scored = campaign.servers.score_factor(text, {"id": branch, **CLAIM}, "key") | {"key": f"{branch}/s0/c0/a0"}
        scored["sheet"] |= {
            "t": 4.0,
            "by_year": {"2010": 0.03, "2011": 0.01, "2012": 0.05},
            "decay": {"1": 0.02, "5": 0.03},
        }
        desk.journal.record("score", scored["key"], scored)
        marks += place_in_niches(desk, branch, [FormulaAttempt.parse(scored["key"], scored)])
    leaders = [{"id": mark.id} for mark in marks[: 1 + second_leads]]
    campaign.servers.list_formulas = lambda which, limit=10: {"leaders": leaders}  # type: ignore[method-assign]
    sent = asyncio.run(gate.spend_trials(desk, marks, [], "r01/gate", first=False))
    assert sent == marks[: 1 + second_leads]


def test_an_archive_is_bounded() -> None:
    marks = [Mark(9.0 - at / 1e3, f"f{at}", "r01/h00/s0/c0/a0", f"cell {at % 700}") for at in range(2_000)]
    assert len(SearchArchive().keep(marks)) == MAX_STRONGEST_KEPT + MAX_NICHES_KEPT


FRESH: dict[str, Any] = {
    "mechanism": "calm",
    "statement": "Calm stocks win.",
    "direction": 1,
    "horizon_days": 5,
    "fields": ["close"],
}


def told(count: int, **changes: Any) -> list[dict[str, Any]]:
    """Return hypotheses of one mechanism that differ in horizon."""
    return [FRESH | {"horizon_days": 2**number} | changes for number in range(count)]


def test_a_mechanism_has_its_share_of_a_round() -> None:
    assert [compute_mechanism_quota(branches, 4) for branches in (1, 5, 8, 9, 64)] == [2, 2, 2, 3, 16]
    assert compute_mechanism_quota(64, 1) == 0
    pile = HypothesisIntake(HypothesisFilter(Steer(), (), 0.8), [], 5, 2)
    assert pile.take([*told(4), FRESH | {"mechanism": "loud", "statement": "Attention pays too much."}]) == 2
    assert [entry.mechanism for entry in pile.kept] == ["calm", "calm", "loud"]
    assert {row["why"] for row in pile.refused} == {
        "2 hypotheses of this round are about this mechanism already: name another"
    }


@pytest.mark.parametrize(
    ("changes", "focus", "source"),
    [
        ({"either_way": True}, (), ""),
        ({"succeeds": "f0123456789abcdef"}, (), ""),
        ({"statement": "Calm stocks win. Follow-up of f0123456789abcdef."}, (), ""),
        ({}, ("calm",), ""),
        ({}, (), "own hypotheses"),
    ],
)
def test_what_was_earned_or_asked_for_is_not_limited(
    changes: dict[str, Any], focus: tuple[str, ...], source: str
) -> None:
    pile = HypothesisIntake(HypothesisFilter(Steer(focus=focus), (), 0.8), [], 5, 2)
    assert pile.take(told(4, **changes), source) == 0
    assert len(pile.kept) == 4


def test_without_islands_nothing_is_limited() -> None:
    pile = HypothesisIntake(HypothesisFilter(Steer(), (), 0.8), [], 5, compute_mechanism_quota(5, 1))
    assert pile.take(told(4)) == 0
