"""A formula must say what its hypothesis says, and be no larger than it needs to be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from alphaloom.evidence import DATA_MINED_TITLE, Claim
from alphaloom.evidence.gate import Case
from alphaloom.evidence.gate.alignment import find_direction_mismatch, find_word_mismatches
from alphaloom.evidence.gate.formula_steps import check_alignment, compute_complexity_price, find_breaches
from alphaloom.evidence.settings import ComplexitySettings
from alphaloom.factors import parse

from .lab import SMALL, claim_of


@pytest.mark.parametrize(
    ("text", "fields", "kept"),
    [
        ("rank(volume)", ["volume"], True),
        ("rank(volume)", ["close"], False),
        ("rank(volume) * rank(close)", ["close"], False),  # half of the fields
        ("rank(volume) * rank(close)", ["close", "volume", "cap"], True),
        ("ts_corr(vwap, volume, 20)", ["close", "high", "low", "volume"], False),  # vwap must be named
        ("ts_corr(vwap, volume, 20)", ["vwap", "volume"], True),
        ("group_rank(close, sector)", ["close"], True),  # a grouping needs no name
        ("ts_std(returns, 20)", ["close"], True),  # returns are made of closes
        ("rank(close)", ["returns"], False),
        ("rank(close)", [], False),
    ],
)
def test_every_field_must_be_the_hypothesis_own(text: str, fields: list[str], kept: bool) -> None:
    mismatches = find_word_mismatches(parse(text), claim_of(text, fields=fields), SMALL)
    assert (mismatches == []) is kept
    assert kept or "the hypothesis is about" in mismatches[0]


def test_half_of_the_fields_sufficed_in_earlier_versions() -> None:
    half, vwap = parse("rank(volume) * rank(close)"), parse("rank(vwap)")
    for expression in (half, vwap):
        claim = claim_of("rank(close)", fields=["close"])
        assert find_word_mismatches(expression, claim, SMALL)
        assert find_word_mismatches(expression, claim, SMALL, half_suffices=True) == []


def make_case(text: str, rank_ic: float = 0.01, *members: Case, **claim: Any) -> Case:
    return Case(parse(text), claim_of(text, **claim), np.empty((0, 0), np.float32), rank_ic, members)


def test_a_survey_is_not_judged_and_another_hypothesis_is() -> None:
    survey = make_case("rank(volume)", -0.01, either_way=True, fields=["close"], horizon_days=200)
    stated = make_case("rank(volume)", fields=["volume", "cap"])
    reason = check_alignment(survey, SMALL)
    assert (reason.passed, reason.message, reason.numbers) == (True, "not judged: no hypothesis", {"judged": 0})
    reason = check_alignment(stated, SMALL)
    assert (reason.passed, reason.numbers) == (True, {"judged": 1})
    assert "leaves out cap" in reason.message
    both = check_alignment(make_case("rank(volume) + rank(cap)", 0.01, survey, stated), SMALL)
    assert both.numbers == {"judged": 1}
    assert "not judged: no hypothesis for 1 of 2 members" in both.message


@pytest.mark.parametrize(("days", "kept"), [(1, True), (5, True), (25, True), (26, False), (100, False)])
def test_the_horizon_lies_within_a_factor_of_five(days: int, kept: bool) -> None:
    mismatches = find_word_mismatches(parse("rank(volume)"), claim_of("rank(volume)", horizon_days=days), SMALL)
    assert (mismatches == []) is kept
    assert kept or mismatches[0].endswith("allowed are 1 to 25")


@pytest.mark.parametrize(
    ("rank_ic", "direction", "said"),
    [
        (0.01, 1, ""),
        (-0.01, -1, ""),
        (0.01, -1, "a lower factor means a higher return; the search window shows the opposite"),
        (-0.01, 1, "a higher factor means a higher return; the search window shows the opposite"),
        (None, 1, "no RankIC on the search window"),
    ],
)
def test_the_search_window_must_show_the_claimed_direction(rank_ic: float | None, direction: int, said: str) -> None:
    mismatch = find_direction_mismatch(rank_ic, claim_of("rank(volume)", direction))
    assert said in mismatch[0] if said else mismatch == []


def test_a_survey_has_no_mechanism_in_its_title() -> None:
    assert claim_of("rank(volume)", either_way=True).title == DATA_MINED_TITLE
    assert claim_of("rank(volume)", either_way=False).title == claim_of("rank(volume)").statement


def test_a_claim_survives_its_record() -> None:
    claim = claim_of("rank(volume)", -1, refuted_by="a year without it", fields=["volume", "close", "volume"])
    assert claim.fields == ("close", "volume")
    assert Claim.from_record(claim.record()) == claim
    assert claim.record()["refuted_by"] == "a year without it"


BOUNDS = ComplexitySettings(max_size=6, max_depth=3, max_constants=2, max_fields=2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rank(ts_corr(close, volume, 10))", []),
        ("rank(close) + rank(volume) + rank(close * volume)", ["9 nodes, at most 6", "4 levels, at most 3"]),
        ("ts_std(close, 5) / ts_std(close, 20) + 0.5", ["3 numbers, at most 2"]),
        ("open * close * volume", ["3 raw fields, at most 2"]),
    ],
)
def test_each_bound_is_said(text: str, said: list[str]) -> None:
    breaches = find_breaches(parse(text), BOUNDS)
    assert set(said) <= set(breaches)
    assert bool(breaches) == bool(said)


def test_size_costs_beyond_five_nodes() -> None:
    free, dear = parse("rank(ts_corr(close, volume, 10))"), parse("rank(close) + rank(volume) + rank(high) + rank(low)")
    assert (free.size, compute_complexity_price(free, ComplexitySettings())) == (4, 0)
    assert compute_complexity_price(dear, ComplexitySettings()) == pytest.approx(0.02 * (dear.size - 5)) != 0
