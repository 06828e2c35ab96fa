"""AlphaGen: each of its words against what it means there, both ways; what cannot be kept is refused or told."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from alphaloom.factors import Engine, Expression, ParseError, parse
from alphaloom.factors.dialects import translate, write_foreign

from .alphagen_meaning import Meaning
from .qlib_bars import bars, panel_of

FULL, GAPPED = bars(4, 70, 6, gaps=False), bars(4, 70, 6)
WARMUP = 25

EXACT = (
    "$close", "close", "Feature(FeatureType.CLOSE)", "Mean($close,20d)", "Mean(Feature(FeatureType.CLOSE), 20)",
    "Mean($close,DeltaTime(20))",
    "Add($close,$open)", "Sub(30.0,$close)", "Mul(Constant(-0.5),$close)", "Div($close,Constant(4.0))",
    "Pow($close,2.0)",
    "Feature(FeatureType.CLOSE) - Feature(FeatureType.OPEN) * 2", "open_", "Sub(close, Ref(open_, 2))", "-$close",
    "Abs(Sub($close,$open))", "Sign(Sub($close,$open))", "Greater($close,$open)", "Less($close,$vwap)",
    "CSRank($close)", "CSRank($volume)", "Ref($close,3d)", "Ref($close,0d)", "Delta($close,3d)", "Sum($volume,7d)",
    "Std($close,7d)", "Var($close,7d)", "Skew($volume,7d)", "Kurt($volume,7d)", "Skew($vwap,20d)", "Kurt($vwap,20d)",
    "Max($high,7d)", "Min($low,7d)", "Med($close,7d)", "Med($close,8d)", "Mad($close,7d)", "EMA($close,7d)",
    "Cov($close,$volume,7d)", "Mean(CSRank(Delta($close,2d)),5d)", "TsMean($close,7d)", "TsMed($close,6d)",
    "TsDelta($close,3d)", "TsEMA($close,5d)",
    "Rank($close)", "GetGreater($close,$open)", "GetLess($close,$open)", "SLog1p(Sub($close,$open))",
    "TsMinMaxDiff($close,7d)", "TsMaxDiff($close,7d)", "TsMinDiff($close,7d)",
)  # fmt: skip  # a table
"""Formulas that mean the same in every cell, gaps included."""

TOLD = {
    "Rank($close,7d)": "a window with a gap has a rank",
    "TsRank($close,7d)": "a window with a gap has a rank",
    "WMA($close,7d)": "the oldest day",
    "TsWMA($close,7d)": "the oldest day",
    "Corr($close,$volume,7d)": "1e-6",
    "Div($close,$volume)": "a division by zero",
    "$close / $volume": "a division by zero",
    "Inv($volume)": "a division by zero",
    "Log($volume)": "the logarithm of 0",
    "Pow($volume,-1.0)": "0 to a negative power",
    "TsIr($close,7d)": "a division by zero",
    "TsDiv($close,7d)": "a division by zero",
    "TsPctChange($close,7d)": "a division by zero",
}
"""Formulas that differ at the edges, and what their note says."""


def agree(text: str, columns: dict[str, NDArray[np.float64]]) -> None:
    """Hold every cell after the warm-up to AlphaGen's meaning, to the precision of float32 after a few steps."""
    found = Engine(panel_of(columns), threads=1).evaluate([parse(text, dialect="alphagen")])[0][WARMUP:]
    expected = Meaning(columns)(text)[WARMUP:]
    expected = np.where(np.isfinite(expected), expected, np.nan)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=5e-6, atol=3e-6 * np.nanmax(np.abs(expected), initial=1.0))
    assert np.isfinite(found).mean() > 0.25


@pytest.mark.parametrize("text", EXACT)
def test_a_word_means_what_it_means_in_alphagen(text: str) -> None:
    agree(text, GAPPED)
    notes = [warning for warning in parse(text, dialect="alphagen").warnings if not warning.startswith("units")]
    assert notes == []


@pytest.mark.parametrize("text", TOLD)
def test_what_differs_at_the_edges_is_told(text: str) -> None:
    assert any(TOLD[text] in note for note in parse(text, dialect="alphagen").warnings)
    agree(text, {name: x[:, :-1] for name, x in FULL.items()})  # the last name stands still for a while


def test_a_side_that_hardly_moves_has_no_correlation() -> None:
    """AlphaGen gives the sum of products there, in whatever unit it comes."""
    x = np.random.default_rng(0).normal(size=(30, 3))
    close = (1 + x / 1e5).astype(np.float32).astype(np.float64)
    columns = dict.fromkeys(("open", "high", "low", "volume", "vwap"), x) | {"close": close}
    formula = parse("Corr($close,$volume,10d)", dialect="alphagen")
    assert np.abs(Meaning(columns)(formula.text))[10:].max() < 1e-3
    np.testing.assert_allclose(Engine(panel_of(columns)).evaluate([formula])[0][10:], 1, atol=1e-2)


def test_ranks_count_from_the_top() -> None:
    rising = {name: np.arange(1.0, 11)[:, None] + np.zeros(2) for name in FULL}
    values = Engine(panel_of(rising)).evaluate([parse("Rank($close,5d)", dialect="alphagen"), "ts_rank(close, 5)"])
    assert (values[0][5:] == np.float32(0.2)).all()
    assert (values[1][5:] == 1).all()


STAGES = {
    "Ref($close,-1d)": "causal", "Delta($close,-5d)": "causal", "Mean($close,0d)": "parse",
    "Mean($close,$open)": "parse",
    "$clos": "parse", "Meen($close,5d)": "parse", "$close > $open": "parse", "Mean($close)": "parse", "": "parse",
    "Add(1.0,2.0)": "types", "WMA($close,1d)": "dialect", "EMA($close,1d)": "dialect", "Constant($close)": "parse",
    "Mean(20d,$close)": "parse",
}  # fmt: skip  # a table


def tried(text: str) -> Expression | ParseError:
    try:
        return parse(text, dialect="alphagen")
    except ParseError as error:
        return error


@pytest.mark.parametrize("text", STAGES)
def test_a_refusal_names_its_stage(text: str) -> None:
    error = tried(text)
    assert isinstance(error, ParseError)
    assert error.stage == STAGES[text]


def test_an_error_points_into_the_formula_of_alphagen() -> None:
    error = tried("Add($close,Meen($open,5d))")
    assert str(error).startswith(
        "unknown operator 'Meen'\nAdd($close,Meen($open,5d))\n           ^\nDid you mean Mean?"
    )


LEAVES = ("$close", "$open", "$volume", "Constant(1.5)", "Feature(FeatureType.HIGH)")
WINDOWS = st.sampled_from(["2d", "5d", "8", "20d"])


def grown(below: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    names = ["Mean", "Max", "Min", "Sum", "Med", "Ref", "Delta", "EMA", "Mad"]
    one = st.builds("{}({},{})".format, st.sampled_from(names), below, WINDOWS)
    two = st.builds("{}({},{})".format, st.sampled_from(["Add", "Sub", "Mul", "Greater", "Less"]), below, below)
    return one | two | st.builds("Abs({})".format, below) | st.builds("CSRank({})".format, below)


FORMULAS = st.recursive(st.sampled_from(LEAVES), grown, max_leaves=5).filter(lambda text: "$" in text or "Type" in text)


@given(FORMULAS.filter(lambda text: "CSRank" not in text and text.count("20d") + text.count("8") < 2))
def test_nested_words_mean_what_they_mean_in_alphagen(text: str) -> None:
    known = tried(text)
    if isinstance(known, ParseError):
        assert known.stage == "types"  # a window over a constant, which AlphaGen refuses as well
    else:
        agree(text, FULL)


@given(FORMULAS)
def test_a_formula_goes_out_and_comes_back(text: str) -> None:
    known = tried(text)
    if isinstance(known, Expression):
        assert parse(write_foreign(known.root, "alphagen").text, dialect="alphagen").id == known.id


@pytest.mark.parametrize("text", [*EXACT, *TOLD])
def test_every_word_goes_out_and_comes_back(text: str) -> None:
    known = parse(text, dialect="alphagen")
    written = write_foreign(known.root, "alphagen")
    apart = any("apart" in note for note in written.notes)
    assert apart or parse(written.text, dialect="alphagen").id == known.id


OUT = {
    "ts_mean(close, 20) / open - close / open": "Sub(Div(Mean($close, 20), $open), Div($close, $open))",
    "close - open + high": "Add(Add($close, Mul(-1, $open)), $high)",
    "ts_rank(close, 5)": "Rank(Mul(-1, $close), 5)",
    "ts_rank(-close, 5)": "Rank($close, 5)",
    "rank(close, ties=first, scaled=zero)": "CSRank($close)",
    "ts_returns(close, 3)": "Sub(Div($close, Ref($close, 3)), 1)",
    "ema(close, 5)": "EMA($close, 5)",
    "slog1p(close / open)": "Mul(Sign(Div($close, $open)), Log(Add(1, Abs(Div($close, $open)))))",
    "exp(close / open)": "Pow(2.718281828459045, Div($close, $open))",
    "ts_median(close, 5)": "Med($close, 5)",
    "ts_median(close, 6)": "Div(Sub(Med($close, 6), Med(Mul(-1, $close), 6)), 2)",
}


@pytest.mark.parametrize("text", OUT)
def test_our_formulas_are_written_for_alphagen(text: str) -> None:
    written = translate(text, "alphaloom", "alphagen").text
    assert written == OUT[text]
    found, expected = Engine(panel_of(FULL)).evaluate([text])[0], Meaning(FULL)(written)
    np.testing.assert_allclose(found[WARMUP:], expected[WARMUP:], rtol=1e-5, atol=1e-6)


def test_what_alphagen_cannot_say_is_refused() -> None:
    for text in ("rank(close)", "close > open", "group_rank(returns, sector)", "zscore(close)"):
        with pytest.raises(ParseError, match="has nothing that means"):
            translate(text, "alphaloom", "alphagen")


def test_qlib_and_alphagen_do_not_mean_the_same() -> None:
    """The same words come out as different formulas, each with its meaning in the other language."""
    assert parse("Mean($close, 20)", dialect="qlib").id != parse("Mean($close, 20)", dialect="alphagen").id
    assert parse("Rank($close, 20)", dialect="qlib").id != parse("Rank($close, 20)", dialect="alphagen").id
    found = translate("Rank($close, 20)", "alphagen", "qlib")
    assert found.text == "Rank(-1 * $close, 20)"
    assert any("min_periods 20" in note for note in found.notes)


PIECES = [
    "$close",
    "FeatureType.",
    "Feature(",
    "Mean(",
    "Corr(",
    "Add(",
    ",",
    ")",
    "(",
    "5d",
    "-1",
    "0.5",
    "Constant(",
    "+",
    "/",
    " ",
]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(max_size=20))
def test_nothing_but_a_parse_error_ever_comes_out(text: str) -> None:
    error = tried(text)
    if isinstance(error, ParseError):
        assert 0 <= error.at <= len(text)
        assert "^" in str(error) or not text.strip()
