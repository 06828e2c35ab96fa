"""The gate's steps as a reader sees them: the tested figure beside the one that would have been proof."""

from __future__ import annotations

from typing import Any

from alphaloom.desk.report.cards import CardContext, build_card, describe_refuter
from alphaloom.desk.report.gate_steps import find_deciding_step, list_steps
from alphaloom.evaluation.closing import FactorEntry, StatedHypothesis

from . import example


def tried(selection: dict[str, Any], *, rank_ic: float = 0.03, **changed: Any) -> FactorEntry:
    """Return a factor whose trial, the second one, proved nothing."""
    entry = example.entry("f4cf444e3379f0f16", "rank(close)", rank_ic, "statistics", trial=2)
    reasons = [{"step": "statistics", "passed": False, "message": "as recorded", "numbers": {"trial": 2}}]
    figures = {"p_value": 0.19, "level": 0.00078, "discoveries_before": 1, "rank_ic": 0.031} | selection
    metrics = entry["metrics"] | {"selection": figures}
    return FactorEntry.read(entry | {"reasons": reasons, "metrics": metrics} | changed)


def told(entry: FactorEntry) -> str:
    step = find_deciding_step(entry)
    assert step is not None
    return step.message


def test_a_refuter_says_what_was_tested_and_whether_it_was_found() -> None:
    stated = {"statement": "Attention.", "direction": 1, "refuted_by": "no drift"}
    late = {"refuter": "close / open", "rank_ic": 0.0123, "t": 2.4}
    said = [
        describe_refuter(StatedHypothesis.read(stated | more))
        for more in ({}, *({"stated_after_scoring": late | change} for change in ({}, {"t": 1.9}, {"t": None})))
    ]
    assert said[0].startswith("not looked for")
    assert said[1].startswith(
        "no: beside the rival formula close / open it keeps RankIC +0.0123, t +2.4 on search days"
    )
    assert [one.partition(":")[0] for one in said[2:]] == ["yes", "yes"]
    assert describe_refuter(StatedHypothesis.read({"statement": "x"})) == ""


POWER = {"rank_ic_provable": 0.0231, "test": "labels"}
ADDED = {"added": {"rank_ic": 0.0059}, "beside": ["f1", "f2", "f3"], "power": POWER}


def test_what_it_adds_stands_beside_what_would_be_proof() -> None:
    assert told(tried(ADDED)) == (
        "p = 0.19 on selection (threshold 0.00078 for trial 2 after 1 earlier discovery). What it adds there to "
        "3 formulas tested or accepted before has a RankIC of 0.006; 0.023 or more is significant."
    )
    assert "(2 more cannot be computed here)" in told(tried(ADDED | {"not_removed": ["f4", "f5"]}))


def test_the_figure_is_in_the_direction_held() -> None:
    reversed_one = tried(ADDED | {"added": {"rank_ic": -0.0059}}, rank_ic=-0.03)
    assert "has a RankIC of 0.006; 0.023" in told(reversed_one)


def test_without_earlier_formulas_it_is_its_own_rank_ic() -> None:
    assert told(tried({"power": POWER})).endswith("Its RankIC there is 0.031; 0.023 or more is significant.")


def test_a_test_of_the_ranks_held_says_which_figure_is_asked() -> None:
    held = {"power": POWER | {"test": "held"}, "p_labels": 0.1}
    assert told(tried(held)).endswith("A RankIC of the ranks held of 0.023 or more is significant.")
    assert told(tried(held | {"p_labels": 0.19})).endswith(
        "The overlapping labels do not confirm the test of the ranks held."
    )


def test_a_trial_of_an_older_version_keeps_its_recorded_words() -> None:
    assert told(tried({"level": None})) == "as recorded"


def test_a_near_copy_says_how_near() -> None:
    numbers = {"rank_correlation": 0.8888, "most": 0.7}
    copy = {"step": "redundancy", "passed": False, "message": "most like fa8f34ef492abf4b7 of the library"}
    entry = tried({}, reasons=[copy | {"numbers": numbers}])
    assert told(entry) == "rank correlation +0.89 with fa8f34ef4, the nearest accepted or waiting; 0.70 is allowed"
    twin = copy | {"message": "its members f1 and f2 say the same", "numbers": numbers}
    assert told(tried({}, reasons=[twin])) == "its members f1 and f2 say the same"


def test_a_step_that_judged_a_part_gets_no_tick_and_names_the_other_member() -> None:
    message = "its fields are those of the hypothesis; not judged: no hypothesis for 1 of 2 members"
    step = {"step": "alignment", "passed": True, "message": message, "numbers": {"judged": 1}}
    entry = tried({}, reasons=[step], members=["f6aac4747e75ce07c", "fa8f34ef492abf4b7"])
    context = CardContext(None, {}, {"f6aac4747e75ce07c": "", "fa8f34ef492abf4b7": "Attention."})
    (shown,) = build_card(entry, None, context).reasons
    assert shown.mark == "shown"
    assert shown.message == "its fields are those of the hypothesis; not judged, as no hypothesis is stated: f6aac4747"
    (whole,) = list_steps(tried({}, reasons=[step | {"numbers": {"judged": 2}}], members=["f1", "f2"]))
    assert whole.mark == "passed"


def test_a_member_says_what_is_left_without_it() -> None:
    member = {"id": "f1", "weakest_p_value": 0.76, "rank_ic_lost_without": {"selection": -0.0018}}
    entry = tried({"rank_ic": 0.0385, "members": [member]}, members=["f1"])
    (shown,) = build_card(entry, None, CardContext(None, {"f1": "rank(low)"})).members
    assert shown.standing == "not proven alone (p 0.76); without it, on selection: RankIC 0.0403 instead of 0.0385"


def test_a_combination_beside_its_own_members_is_not_called_beside_the_library() -> None:
    added = {"rank_ic": 0.009, "t": 2.2, "kept": 0.24, "against": ["f1", "f2"], "library": 2}
    own = build_card(tried({}, members=["f1", "f2"], incremental=added), None, CardContext(None, {}))
    assert dict(own.facts)["adds to its own members, on search"].endswith("unexplained by its own members")
    other = build_card(tried({}, members=["f1", "f3"], incremental=added), None, CardContext(None, {}))
    assert dict(other.facts)["adds to the library, on search"].endswith("the library's 2 factors")
