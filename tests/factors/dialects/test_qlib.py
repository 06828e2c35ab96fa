"""Qlib: each of its words against what it means there, both ways; what cannot be kept is refused or told."""

from __future__ import annotations

import textwrap

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from alphaloom.factors import Engine, Expression, ParseError, parse, sample
from alphaloom.factors.dialects import translate, write_foreign

from .qlib_bars import bars, panel_of
from .qlib_meaning import Meaning

COLUMNS = bars(3, 70, 5)
MEANING = Meaning(COLUMNS)
ENGINE = Engine(panel_of(COLUMNS), threads=1)

TOLD = {
    "Skew($close-$open, 7)": "a number",
    "Kurt($close-$open, 7)": "a number",
    "IdxMax($high, 7)": "the place of the gap",
    "IdxMin($low, 7)": "the place of the gap",
    "Corr($close, $volume, 7)": "2e-5",
    "Rsquare($close, 7)": "2e-5",
    "WMA($close, 7)": "first rows and around gaps",
    "EMA($close, 7)": "after a gap",
    "EMA($close, 0.2)": "after a gap",
    "EMA($close, 1)": "repeats the value before",
    "Log($volume)": "the logarithm of 0",
    "$close/$volume": "a division by zero",
    "Div($close, $volume)": "a division by zero",
    "Power($volume, -1)": "0 to a negative power",
}
"""Formulas that differ from Qlib at the edges, and what their note says."""

EXACT = (
    "$close", "Feature('close')", 'Feature("close")', "$close+$open", "Add($close, 2)", "$close-$open*2",
    "Sub($close, $open)",
    "$close/4", "Div($close, 4)", "Mul($close, $volume)", "Power($close, 2)", "$close**3", "Abs($close-$open)",
    "Sign($close-$open)", "Greater($close, $open)", "Less($close, 20)", "2*$close-$high-$low",
    "$close>$open", "$close>=$open", "$close<$open", "$close<=$open", "$close==$open", "$close!=$open",
    "Gt($close, $open)", "Ge($close, $open)", "Lt($close, $open)", "Le($close, $open)", "Eq($close, $open)",
    "Ne($close, $open)", "And($close>$open, $volume>8000)", "Or(Gt($close, $open), Ne($close, $low))",
    "Not($close>$open)", "($close>$open) & ($volume>8000)", "($close>$open) | ($volume>8000)",
    "If($close>$open, $high, $low)", "If(Ne($close, $open), 1, 2)", "If(And($close>$open, $volume>8000), 1, $close)",
    "If(Not($close!=$open), $high, 0)", "If(($close>$open) | ($volume>8000), 1, 2)",
    "Ref($close, 1)", "Delta($close, 7)", "Mean($close, 7)", "Sum($volume, 7)", "Std($close, 7)", "Var($close, 7)",
    "Max($high, 7)", "Min($low, 7)", "Med($close, 6)", "Mad($close, 7)", "Quantile($close, 7, 0.3)",
    "Rank($close, 7)",
    "Count($close, 7)", "Count($close>$open, 7)", "Sum($close>$open, 7)", "Mean($close>Ref($close, 1), 7)",
    "Slope($close, 7)", "Resi($close, 7)", "Cov($close, $volume, 7)", "Mean($close, 200)", "Std($close, 1)",
    "CSRank($close)", "CsRank($close)", "Rank($close)", "CSZScore($close)", "CSScale($close-$open)",
    "CSDemean($close)", "CSMean($close)", "If($volume-8000, $open, 7)", "If(Ref($close, 1), 1, 2)",
    "$close!=$close", "$close==$close",
    "Mean(Rank(Delta($close, 2), 5), 3)",
)  # fmt: skip  # a table


def compute(text: str) -> NDArray[np.float32]:
    return ENGINE.evaluate([parse(text, dialect="qlib")])[0]


def agree(text: str, excused: NDArray[np.bool_] | None = None) -> None:
    """Hold every cell to Qlib's meaning: gaps, and values to the precision of float32 after a few steps."""
    expected = MEANING(text)
    left = np.isinf(expected) if excused is None else excused | np.isinf(expected)
    expected, found = np.where(left, np.nan, expected), np.where(left, np.nan, compute(text))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=3e-6, atol=3e-6 * np.nanmax(np.abs(expected), initial=1.0))
    assert np.isfinite(found).any() or text == "Std($close, 1)"


@pytest.mark.parametrize("text", EXACT)
def test_a_word_means_what_it_means_in_qlib(text: str) -> None:
    agree(text)
    notes = [warning for warning in parse(text, dialect="qlib").warnings if not warning.startswith("units")]
    assert notes == []


@pytest.mark.parametrize("text", TOLD)
def test_what_differs_at_the_edges_is_told(text: str) -> None:
    assert any(TOLD[text] in note for note in parse(text, dialect="qlib").warnings)
    agree(text, edges(text))


def edges(text: str) -> NDArray[np.bool_]:
    """Tell the cells that a note is about."""
    close = pd.DataFrame(COLUMNS["close"])
    gap, short = close.isna(), np.arange(len(close))[:, None] < 6
    inside = np.asarray(gap.astype(float).rolling(7, min_periods=1).max() > 0)
    empty = np.zeros(close.shape, bool)
    choices = {
        "Skew": MEANING("Std($close-$open, 7)") == 0,
        "Kurt": MEANING("Std($close-$open, 7)") == 0,
        "IdxMax": inside,
        "IdxMin": inside,
        "WMA": inside | short,
        "EMA": np.asarray(gap) if text.endswith(", 1)") else empty,
    }
    return np.asarray(choices.get(text.split("(")[0], empty))


def test_places_in_the_window_agree_where_there_is_no_gap() -> None:
    columns = bars(5, 40, 4, gaps=False)
    engine, meaning = Engine(panel_of(columns), threads=1), Meaning(columns)
    for text in ("IdxMax($high, 6)", "IdxMin($low, 9)", "(IdxMax($high, 5)-IdxMin($low, 5))/5"):
        found = engine.evaluate([parse(text, dialect="qlib")])[0]
        np.testing.assert_allclose(found, meaning(text), rtol=1e-6)


def test_a_weighted_mean_is_as_small_as_in_qlib() -> None:
    found, plain = compute("WMA($close, 7)"), ENGINE.evaluate(["decay_linear(close, 7)"])[0]
    np.testing.assert_allclose(found * 7, plain, rtol=1e-6)


REFUSED = {
    "Mean($close, 5) / Ref($close, -2)": """
        Ref with -2 would read 2 days into the future
        Mean($close, 5) / Ref($close, -2)
                                      ^
        Windows count back: they are positive.""",
    "Mask($close, 'SH600000')": """
        Mask of Qlib cannot be kept
        Mask($close, 'SH600000')
        ^
        It reads another instrument, and a formula here reads each name by itself. Add what it reads as a column.""",
    "Meen($close, 5)": """
        unknown operator 'Meen'
        Meen($close, 5)
        ^
        Did you mean Mean? Write Mean(x, d): Mean($close, 20)""",
    "$close + $vlume": """
        unknown field '$vlume'
        $close + $vlume
                 ^
        Did you mean $volume?""",
    "Corr($close, 5)": """
        Corr takes 3 arguments; 2 were given
        Corr($close, 5)
        ^
        Write Corr(x, y, d): Corr($close, $volume, 20)""",
}
STAGES = {
    "Ref($close, -1)": "causal", "Ref($close, -1e400)": "causal", "-1e400 / $close": "parse",
    "Delta($close, -5)": "causal", "P($$roe_q)": "dialect",
    "ChangeInstrument('SH000300', $close)": "dialect", "TResample($close, '1W', 'last')": "dialect",
    "Ref($close, 0)": "dialect", "Mean($close, 0)": "dialect", "Mean($close, 0.5)": "parse",
    "Mean($close, $open)": "parse",
    "close": "parse", "$$roe_q": "parse", "$open < $close < $high": "parse", "$open and $close": "parse", "": "parse",
    "Mean($close, d=5)": "parse", "1 + 2": "types",
}  # fmt: skip  # a table


def refusal(text: str) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse(text, dialect="qlib")
    return caught.value


def tried(text: str) -> Expression | ParseError:
    try:
        return parse(text, dialect="qlib")
    except ParseError as error:
        return error


@pytest.mark.parametrize("text", REFUSED)
def test_an_error_points_into_the_formula_of_qlib(text: str) -> None:
    lesson = textwrap.dedent(REFUSED[text]).strip("\n")
    assert str(refusal(text)).startswith(lesson)


@pytest.mark.parametrize("text", STAGES)
def test_a_refusal_names_its_stage(text: str) -> None:
    assert refusal(text).stage == STAGES[text]


def test_units_that_disagree_are_warnings() -> None:
    found = parse("$close + $volume", dialect="qlib")
    assert any("cannot be added" in warning for warning in found.warnings)


LEAVES = ("$close", "$open", "$high", "$vwap", "1.5")
WINDOWS = st.sampled_from([2, 3, 5, 8])


def grown(below: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Grow formulas by words that keep values finite and move little when a last digit does."""
    one = st.builds("{}({}, {})".format, st.sampled_from(["Mean", "Max", "Min", "Sum", "Med", "Ref"]), below, WINDOWS)
    two = st.builds("({} {} {})".format, below, st.sampled_from(["+", "-", "*"]), below)
    pair = st.builds("{}({}, {})".format, st.sampled_from(["Greater", "Less", "Add", "Sub"]), below, below)
    quantile = st.builds("Quantile({}, {}, 0.25)".format, below, WINDOWS)
    chosen = st.builds("If($close > $open, {}, {})".format, below, below)
    return one | two | pair | quantile | chosen | st.builds("Abs({})".format, below)


FORMULAS = st.recursive(st.sampled_from(LEAVES), grown, max_leaves=6).filter(lambda text: "$" in text)


@given(FORMULAS)
def test_nested_words_mean_what_they_mean_in_qlib(text: str) -> None:
    known = tried(text)
    if isinstance(known, ParseError):
        assert known.stage == "types"  # a window over a constant: Qlib fails on it as well
    else:
        agree(text)


@given(FORMULAS)
def test_a_formula_goes_out_and_comes_back(text: str) -> None:
    known = tried(text)
    if isinstance(known, Expression):
        back = write_foreign(known.root, "qlib").text
        assert parse(back, dialect="qlib").id == known.id


SAID = (
    "signed_power(close - open, 0.5)", "clip(close / open - 1, -0.01, 0.01)", "sqrt(high)", "ts_returns(close, 3)",
    "-close",
    "ts_zscore(close, 6)", "decay_linear(close, 6)", "ts_beta(close, open, 6)", "ts_argmax(high, 6)",
    "ts_argmin(low, 6)",
    "ts_count(holds(close > open), 6)", "where(close > open, high, low)", "max(close, open, high)",
    "ts_corr(close, volume, 6)",
    "rank(close) - zscore(open)", "exp(close / open)", "sigmoid(close / open)", "fill(close - open, 0)",
    "mean_across(close)", "ts_drawdown(close, 6)", "rsi(close, 6)", "close - open + high",
    "ema(close, 64, min_periods=1, span=8)",
)  # fmt: skip  # a table


@given(st.integers(0, 2**32 - 1))
def test_what_is_written_without_a_note_reads_back(seed: int) -> None:
    known = sample(np.random.default_rng(seed), max_size=9)
    try:
        written = write_foreign(known.root, "qlib")
    except ParseError:
        return
    back = parse(written.text, dialect="qlib")
    assert written.notes or back.id == known.id


@pytest.mark.parametrize("text", SAID)
def test_our_words_mean_the_same_in_qlib(text: str) -> None:
    found, expected = ENGINE.evaluate([text])[0], MEANING(translate(text, "alphaloom", "qlib").text)
    expected = np.where(np.isinf(expected), np.nan, expected)
    found, expected = found[10:], expected[10:]  # the first rows are told to differ
    np.testing.assert_allclose(found, np.where(np.isnan(found), np.nan, expected), rtol=1e-5, atol=1e-6)
    assert np.isfinite(found).mean() > 0.3


OUT = {
    "ts_mean(close, 20, min_periods=1)": "Mean($close, 20)",
    "ts_corr(rank(close), delta(volume, 2), 5, min_periods=1)": "Corr(CSRank($close), Delta($volume, 2), 5)",
    "where(holds(close > open) & ~holds(low > open), high, -low)": (
        "If(And($close > $open, Not($low > $open)), $high, -1 * $low)"
    ),
    "ts_zscore(close, 9, min_periods=1)": "($close - Mean($close, 9)) / Std($close, 9)",
    "decay_linear(close, 9)": "WMA($close, 9) * 9",
    "ema(close, 40, min_periods=1, span=5)": "EMA($close, 5)",
    "max(close, open, high)": "Greater(Greater($close, $open), $high)",
    "~holds(close == open)": "$close != $open",
}


@pytest.mark.parametrize("text", OUT)
def test_our_formulas_are_written_for_qlib(text: str) -> None:
    assert translate(text, "alphaloom", "qlib").text == OUT[text]


def test_what_qlib_cannot_say_is_refused_and_edges_are_told() -> None:
    for text in ("group_rank(returns, sector)", "ema(close, 20)", "rank(close, ties=min)"):
        with pytest.raises(ParseError, match="has nothing that means"):
            translate(text, "alphaloom", "qlib")
    assert any("min_periods 20" in note for note in translate("ts_mean(close, 20)", "alphaloom", "qlib").notes)
    assert any("missing value is false" in note for note in translate("close > open", "alphaloom", "qlib").notes)


PIECES = [
    "$close",
    "$open",
    "Mean(",
    "Corr(",
    "If(",
    "Ref(",
    ",",
    ")",
    "(",
    "5",
    "-1",
    "0.5",
    ">",
    "&",
    "~",
    "+",
    "/",
    "**",
    "'a'",
    " ",
]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(max_size=20))
def test_nothing_but_a_parse_error_ever_comes_out(text: str) -> None:
    error = tried(text)
    if isinstance(error, ParseError):
        assert 0 <= error.at <= len(text)
        assert "^" in str(error) or not text.strip()


ALPHABENCH = {
    "Div(Sub($close, Ref($close, 5)), Add(Ref($close, 5), 1e-12))": "delta(close, 5) / (delay(close, 5) + 1e-12)",
    "Mul(-1, Corr(Rank($open, 10), Rank($volume, 10), 10))": (
        "-ts_corr(ts_rank(open, 10, min_periods=1), ts_rank(volume, 10, min_periods=1), 10, min_periods=1)"
    ),
    "Std(Div($close, Ref($close, 1)), 20)": "ts_std(close / delay(close, 1), 20, min_periods=1)",
    "Div(Sub($close, Mean($close, 20)), Add(Std($close, 20), 1e-12))": (
        "(close - ts_mean(close, 20, min_periods=1)) / (ts_std(close, 20, min_periods=1) + 1e-12)"
    ),
    "Quantile($close, 20, 0.8)": "ts_quantile(close, 20, 0.8, min_periods=1)",
    "If(Gt($close, $open), $volume, Mul(-1, $volume))": "where(holds(open < close), volume, -volume)",
    "Rsquare($close, 20)": "ts_rsquare(close, 20, min_periods=1)",
    "Resi($close, 20)": "ts_residual(close, 20, min_periods=1)",
    "Slope($close, 10)": "ts_slope(close, 10, min_periods=1)",
    "Power(Div($close, $open), 2)": "power(close, 2) / power(open, 2)",
    "Square(Sub($close, $open))": "power(close - open, 2)",
    "Sqrt(Abs(Sub($close, $open)))": "sqrt(abs(close - open))",
    "Reciprocal(Add($volume, 1))": "1 / (volume + 1)",
    "Tanh(Delta($close, 5))": "tanh(delta(close, 5))",
    "WMA($close, 10)": "0.1 * decay_linear(close, 10)",
    "EMA($volume, 12)": "ema(volume, 96, min_periods=1, span=12)",
    "Mad($close, 10)": "ts_mad(close, 10, min_periods=1)",
    "Med($close, 10)": "ts_median(close, 10, min_periods=1)",
    "Clip(Div($close, $open), 0.9, 1.1)": "clip(close / open, 0.9, 1.1)",
    "Kurt(Div($close, Ref($close, 1)), 20)": "ts_kurt(close / delay(close, 1), 20, min_periods=1)",
    "Skew($volume, 30)": "ts_skew(volume, 30, min_periods=1)",
    "Cov($close, $volume, 20)": "ts_cov(close, volume, 20, min_periods=1)",
    "And(Gt($close, $open), Lt($low, Ref($low, 1)))": "holds(low < delay(low, 1)) & holds(open < close)",
    "Log(Add($volume, 1))": "log(volume + 1)",
    "Greater($high, $low)": "max(high, low)",
}
"""Formulas in the form that AlphaBench asks models for: Qlib's operators as calls, and a few that it registers."""


@pytest.mark.parametrize("text", ALPHABENCH)
def test_formulas_of_alphabench_are_read_as_those_of_qlib(text: str) -> None:
    assert parse(text, dialect="alphabench").canonical_text == ALPHABENCH[text]
