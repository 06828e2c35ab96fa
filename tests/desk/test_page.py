"""What a report says of what was asked for, and of doubts that decided nothing."""

from __future__ import annotations

import re

import pytest

from alphaloom.desk.report.baseline import baseline_sentence, build_baseline, worth_sentence
from alphaloom.desk.report.cards import collect_doubts
from alphaloom.desk.report.page import describe_request, describe_variety
from alphaloom.desk.report.plots import Stage, narrow_funnel
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
        "9 hypotheses on 4 mechanisms (effective number: 3.5; by chance it would be 3.3, and in 5 % of draws below "
        "2.6), filling 7 cells of mechanism x horizon x turnover; 2 more got no branch"
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


FIGURES = {"rank_ic": 0.021, "t": 4.06, "net_sharpe": 0.8}
BASELINE = {
    "published": 286,
    "computable": 220,
    "living": 2,
    "by_chance": 15.2,
    "formulas": [
        {"name": "one-day reversal", "source": "Lehmann 1990", "mechanism": "reversal", **FIGURES},
        {"name": "WorldQuant alpha 7", "source": "Kakushadze 2016, no. 7", **FIGURES, "t": 2.4},
        {"name": "size", "source": "Banz 1981", "mechanism": "size", **FIGURES, "objection": "reads a level"},
    ],
    "members": [{"name": "one-day reversal", "weight": 0.6, "alike": 3}, {"name": "WorldQuant alpha 7", "weight": 0.4}],
    "combiner": "adaptive",
    "chosen": "set in the campaign file, evidence.combination",
    "search": FIGURES,
    "selection": FIGURES | {"t": 1.1},
}
ADDED = {
    "own": {"search": FIGURES, "selection": FIGURES},
    "addition": {"search": {"rank_ic": 0.012, "t": 3.42}, "selection": {"rank_ic": -0.008, "t": -1.2}},
    "addition_of": "accepted",
}


def with_baseline(**changed: object) -> Results:
    return Results.read(results() | {"baseline": BASELINE | changed})


def test_a_run_without_a_baseline_says_nothing_of_it() -> None:
    old = Results.read(results())
    assert (worth_sentence(old), baseline_sentence(old), build_baseline(old)) == ("", "", None)


def test_the_worth_of_a_campaign_is_what_it_adds_to_the_baseline() -> None:
    assert worth_sentence(with_baseline(**ADDED)) == (
        "Beside the baseline, a combination of 2 published formulas, the campaign's combination adds a RankIC of "
        "0.0120 (t 3.4) on search days and \N{MINUS SIGN}0.0080 (t \N{MINUS SIGN}1.2) on selection days."
    )
    refused = worth_sentence(with_baseline(**ADDED | {"addition_of": "rejected"}))
    assert "the campaign's combination (rejected) adds" in refused
    assert worth_sentence(with_baseline()).startswith("No combination of this campaign was tested")
    empty = {"living": 0, "members": [], "search": None, "selection": None}
    assert worth_sentence(with_baseline(**empty)) == (
        "None of the 286 published formulas, 220 of which this panel can compute, lives on the search days, so there "
        "is no baseline to compare with."
    )


def test_the_section_shows_every_window_every_mechanism_and_what_the_figures_are_not() -> None:
    page = render_report(with_baseline(**ADDED), Curves.read(curves()))
    assert page.index("Beside the baseline") < page.index("<h2>")
    section = build_baseline(with_baseline(**ADDED))
    assert section is not None
    assert [line[:2] for line in section.lines] == [
        ("search", "baseline"), ("search", "campaign"), ("search", "what it adds"),
        ("selection", "baseline"), ("selection", "campaign"), ("selection", "what it adds"),
    ]  # fmt: skip  # a table
    assert [line[0] for line in section.mechanisms] == ["reversal", "none documented"], (
        "an objection counts for nothing"
    )
    assert "They are not a test: they accept nothing" in page
    assert "are not a test, and accept nothing" in baseline_sentence(with_baseline())
    assert "so its figures there are too good" not in (build_baseline(with_baseline()) or section).note


def test_a_narrow_picture_of_the_search_keeps_every_word_of_its_notes() -> None:
    note = "222 had a mechanism (2 stated after scoring), 78 data-mined, and more than one line can hold"
    drawn = narrow_funnel("steps", [Stage("evaluations", 300, note), Stage("accepted", 1, "")])
    assert " ".join(re.findall(r'class="note"[^>]*>([^<]*)<', drawn)).split() == note.split()
