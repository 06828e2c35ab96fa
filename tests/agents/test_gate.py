"""What is sent to the gate: few, strong, aligned, unlike each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from alphaloom.agents import AgentsConfig
from alphaloom.agents.nodes.shortlist import choose_members, choose_unlike, profiles_match
from alphaloom.agents.records import Mark, SearchSheet, rank_marks

from .doubles import Lab

A, B, C = Mark(-9.0, "fa", "r01/h00/s0/c0/a0"), Mark(8.0, "fb", "r01/h00/s1/c0/a0"), Mark(5.0, "fc", "r01/h01/s0/c0/a0")


def never(_one: Mark, _other: Mark) -> bool:
    return False


def sent(lab: Lab, name: str) -> list[dict[str, Any]]:
    return [arguments for called, arguments in lab.servers.calls if called == name]


def test_marks_are_ranked_by_strength_then_id_and_one_per_id() -> None:
    again = Mark(-9.0, "fa", "r02/h00/s0/c0/a0")
    assert rank_marks([C, again, B, A], 2) == [A, B]


def test_nothing_like_what_was_sent_is_sent() -> None:
    assert choose_unlike([A, B, C], [A], 5, never) == [B, C]
    assert choose_unlike([A, B, C], [], 5, lambda one, other: one.branch == other.branch) == [A, C]
    assert choose_unlike([A, B, C], [], 1, never) == [A]


def test_a_set_takes_one_factor_of_each_hypothesis_and_none_too_weak() -> None:
    weak = Mark(4.0, "fd", "r01/h02/s0/c0/a0")
    assert choose_members([], [A, B, C, weak], [], 10, never) == [A, C]
    assert choose_members([C, B], [A, B, C, weak], [], 10, never) == [C, B, A], (
        "what leads goes first, two of a branch too"
    )


def test_copies_show_in_their_years_whatever_their_sign() -> None:
    years = {"by_year": {"2010": 0.03, "2011": 0.01, "2012": 0.05}, "decay": {"1": 0.02, "5": 0.03, "10": 0.02}}
    mirrored = {name: {key: -1.02 * value for key, value in table.items()} for name, table in years.items()}
    other = years | {"by_year": {"2010": 0.01, "2011": 0.04, "2012": 0.02}}
    assert profiles_match(SearchSheet.parse(years), SearchSheet.parse(mirrored))
    assert not profiles_match(SearchSheet.parse(years), SearchSheet.parse(other))
    assert not profiles_match(SearchSheet(), SearchSheet())


def test_nothing_is_tested_before_the_search_ends_and_the_combination_goes_first(lab: Callable[..., Lab]) -> None:
    campaign = lab(config=AgentsConfig(rounds=2, hypotheses=3, candidates=3, steps=1, min_search_t=0.1))
    campaign.servers.strength = lambda text: 5.0
    campaign.run()
    first, *others = sent(campaign, "submit_to_gate")
    assert first["as_set"]
    assert len(first["ids"]) >= 2
    assert not any(other.get("as_set") for other in others)


def test_what_contradicts_its_hypothesis_or_is_weak_is_not_sent(lab: Callable[..., Lab]) -> None:
    campaign = lab()
    campaign.run()
    rows = campaign.servers.scored
    for arguments in sent(campaign, "submit_to_gate"):
        for name in arguments["ids"]:
            direction = campaign.servers.hypotheses[rows[name]["hypothesis"]]["direction"]
            assert rows[name]["t"] * direction >= campaign.config.min_search_t


def test_trials_left_are_never_passed(lab: Callable[..., Lab]) -> None:
    campaign = lab(config=AgentsConfig(rounds=2, hypotheses=3, candidates=4, steps=1, min_search_t=0))
    campaign.servers.trials = 4
    campaign.run()
    assert len(campaign.servers.looks) == 4


def test_no_trial_is_spent_without_a_budget_for_it(lab: Callable[..., Lab]) -> None:
    campaign = lab()
    campaign.servers.trials = 0
    campaign.run()
    assert not campaign.servers.looks
