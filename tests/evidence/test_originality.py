"""Old formulas in new clothes are recognised; new ones are not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alphaloom.evidence import EvidenceSettings
from alphaloom.evidence.originality import Known, compare, nearest, published
from alphaloom.factors import parse, sample

LIMIT = EvidenceSettings().max_similarity

EVASIONS = {
    "every window moved by one": (
        "rank(ts_corr(ts_mean(close, 10), ts_std(volume, 20), 30)) - rank(delta(open, 5))",
        "rank(ts_corr(ts_mean(close, 11), ts_std(volume, 21), 31)) - rank(delta(open, 6))",
    ),
    "another monotone last step": (
        "rank(ts_corr(close, volume, 10) * ts_std(returns, 20))",
        "zscore(ts_corr(close, volume, 10) * ts_std(returns, 20))",
    ),
    "a sum in another order": (
        "rank(close) + rank(volume) + rank(ts_std(returns, 20))",
        "rank(ts_std(returns, 20)) + rank(close) + rank(volume)",
    ),
    "arguments of a correlation swapped": ("ts_corr(close, volume, 10)", "ts_corr(volume, close, 10)"),
    "arguments of a maximum swapped": ("max(rank(close), rank(volume))", "max(rank(volume), rank(close))"),
    "a sum over its length": ("ts_sum(volume, 20) / 20", "ts_mean(volume, 20)"),
    "minus the opposite difference": ("rank(close) - rank(open)", "-(rank(open) - rank(close))"),
    "the sign turned": ("rank(delta(close, 5)) * rank(volume)", "-1 * rank(volume) * rank(delta(close, 5))"),
    "a small one, word for word": ("rank(delta(close, 5))", "rank(delta(close, 5))"),
}


def ratio(a: str, b: str) -> float:
    return compare(parse(a), Known("known", parse(b), "print")).ratio


@pytest.mark.parametrize("evasion", EVASIONS)
def test_no_evasion_is_new(evasion: str) -> None:
    mine, known = EVASIONS[evasion]
    assert ratio(mine, known) > LIMIT


def test_an_unrelated_formula_is_new() -> None:
    fresh = parse("rank(ts_corr(delta(low, 3) / low, delta(volume, 2) / volume, 17)) - rank(ts_mad(close / open, 23))")
    assert nearest(fresh, published())[0].ratio < LIMIT / 2


def test_half_of_a_formula_is_half_like_it() -> None:
    assert ratio("delta(close, 5) / ts_std(close, 20)", "delta(close, 5)") == pytest.approx(2 * 2 / (5 + 2))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_likeness_is_symmetric_whole_with_itself_and_at_most_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = sample(rng).canonical_text, sample(rng).canonical_text
    assert ratio(a, b) == ratio(b, a)
    assert 0 <= ratio(a, b) <= 1 == ratio(a, a)


def test_the_nearest_come_first_and_say_what_is_shared() -> None:
    known = [Known(text, parse(text), "print") for text in ("volume", "ts_std(returns, 20)", "ts_std(returns, 21)")]
    found = nearest(parse("rank(ts_std(returns, 20)) * rank(volume)"), known, 3)
    assert [like.known.name for like in found] == ["ts_std(returns, 20)", "ts_std(returns, 21)", "volume"]
    assert (found[0].shared, found[0].exact, found[1].exact) == ("ts_std(returns, 20)", True, False)
    assert nearest(parse("close"), []) == []


def test_the_published_factors_parse_and_have_names_and_sources() -> None:
    rows = published()
    assert len(rows) >= 35
    assert len({row.name for row in rows}) == len({row.expression.id for row in rows}) == len(rows)
    assert all(row.where for row in rows)
