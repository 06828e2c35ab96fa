"""What a report says of what was asked for, and of doubts that decided nothing."""

from __future__ import annotations

import pytest

from alphaloom.desk.report.cards import collect_doubts
from alphaloom.desk.report.page import describe_request, describe_variety
from alphaloom.desk.report.report import render_report
from alphaloom.evaluation.closing import Curves, FactorEntry, Results

from .example import curves, results

FULL = {
    "steer": {"goal": "calm names.", "avoid": ["momentum"], "fields": ["close", "returns"]},
    "own": {
        "seed_library": {"factors": 3, "digest": "x"},
        "hypotheses": 1,
        "agent": "mine.py:propose",
        "prompts": {"idea": {"whose": "own"}, "eval": {"whose": "shipped"}},
    },
    "diversity": {"hypotheses": 9, "mechanisms": 4, "effective": 3.46, "niches": 7, "refused": 2, "rounds": []},
}


def test_it_is_said_in_sentences() -> None:
    assert describe_request(Results.read(FULL)) == (
        "Asked for: calm names. To be avoided: momentum. Only the fields: close, returns. "
        "Brought along: 3 formulas, 1 hypothesis, own pages for idea, the agent mine.py:propose."
    )
    assert describe_variety(Results.read(FULL).diversity).startswith(
        "9 hypotheses on 4 mechanisms (effective number: 3.5), in 7 niches of mechanism, "
        "horizon and turnover; 2 more got no branch"
    )


@pytest.mark.parametrize(
    "record", [{}, {"steer": {}, "own": {"prompts": {"idea": {"whose": "shipped"}}}, "diversity": {"hypotheses": 0}}]
)
def test_nothing_is_said_where_nothing_was_asked(record: dict[str, object]) -> None:
    results = Results.read(record)
    assert describe_request(results) == describe_variety(results.diversity) == ""


def test_doubts_and_the_last_doubting_opinion_are_told() -> None:
    opinions = [{"step": 0, "verdict": "doubts", "why": "old"}, {"step": 1, "verdict": "doubts", "why": "It is size."}]
    alignment = {"doubts": ["fields: x"], "opinions": [*opinions, {"step": 2, "verdict": "agrees", "why": "y"}]}
    entry = FactorEntry.read({"id": "f1", "alignment": alignment})
    assert collect_doubts(entry) == ["fields: x", "a model doubts that it says what its hypothesis says: It is size."]
    assert collect_doubts(FactorEntry(id="f1")) == []


def test_the_report_says_it_with_what_a_person_wrote_escaped() -> None:
    hostile = {**results(), **FULL, "steer": {"goal": "<script>alert(1)</script>"}}
    page = render_report(Results.read(hostile), Curves.read(curves()))
    assert "Asked for: &lt;script&gt;" in page
    assert "<script>" not in page
