"""FactorMiner: each of its words against what it means there, both ways; what cannot be kept is refused or told."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.factors import Engine, Expression, ParseError, parse
from alphaloom.factors.dialects import find_dialect, translate, write_foreign
from alphaloom.factors.dialects.factorminer import FIRST_ROWS_NOTE
from alphaloom.factors.dialects.importer import load_rules
from alphaloom.market import Panel

from .factorminer_meaning import WORDS, Meaning
from .qlib_bars import bars, panel_of


def market(*, gaps: bool) -> Panel:
    """Draw bars with halts, days without trade and a name that stands still for 20 days."""
    columns = bars(4, 70, 6, gaps=gaps)
    return panel_of(columns | {"amount": columns["volume"] * columns["vwap"]})


FULL, GAPPED = market(gaps=False), market(gaps=True)
WARMUP = 25
STILL = [5]
"""The name that stands still."""

EXACT = (
    "$close", "$amt", "Add($close, 2)", "Sub($close, $open)", "Mul(2, $close)", "Neg($close)", "Div($close, 4)",
    "Div($close, $volume)", "Div($volume, Delay($volume, 3))", "Inv($volume)", "Abs($returns)", "Sign($returns)",
    "Log(Sub($close, $open))", "Sqrt(Sub($close, $open))", "Square($returns)", "Pow($returns, 3)", "Pow($returns, 0.5)",
    "SignedPower($returns)", "SignedPower($returns, 0.3)", "Power($returns)", "Power($returns, 0.5)",
    "Power($returns, 4)", "Exp($returns)", "Tanh($returns)", "Max($returns, 0)", "Min($close, $open)",
    "Max2($close, $open)", "Min2($close, $open)", "Clip(Mul($returns, 100))", "Clip($returns, -0.01, 0.02)",
    "Greater($close, $open)", "GreaterEqual($close, $open)", "Less($close, $open)", "LessEqual($close, $open)",
    "Equal($close, $open)", "Eq($close, $open)", "Ne($close, $open)", "Not(Greater($close, $open))", "Not($returns)",
    "And($returns, Greater($close, $open))", "Or($returns, Less($close, $open))", "Not(And($returns, $volume))",
    "Not(GreaterEqual($close, $close))", "GreaterEqual($volume, $volume)",
    "IfElse(Greater($close, Delay($close, 1)), $volume, Neg($volume))", "IfElse($returns, 1, 0)",
    "CountNaN($close)", "CountNotNaN($close, 7)", "Delta($close)", "Delta($close, 7)", "Delay($close)",
    "Delay($close, 7)", "WMA($close)", "WMA($close, 5)", "Decay($volume)", "Decay($close, 1)", "TsDecay($returns, 5)",
    "HMA($close)", "HMA($returns, 10)", "CsRank($volume)", "CsRank($close)", "CsDemean($close)", "CsQuantile($close)",
    "CsQuantile($volume, 2)",
)  # fmt: skip  # a table
"""Formulas that mean the same in every cell, gaps and first rows included."""

WINDOWED = (
    "Mean($close)", "Mean($close, 7)", "SMA($close, 7)", "Std($close, 7)", "Var($close)", "Median($close, 8)",
    "Med($close, 7)", "Sum($volume, 7)", "Sum(Greater($close, $open), 12)", "Prod(Add(1, $returns), 6)",
    "Product(Add(1, $returns))", "TsMax($high, 9)", "TsMin($low, 9)", "TsArgMax($high, 9)", "TsArgMin($low)",
    "TsRank($close, 9)", "TsRank($volume)", "Quantile($close)", "Quantile($close, 9, 0.3)", "Return($close)",
    "Return($volume, 5)", "Corr($close, $volume, 7)", "Corr($close, $volume)", "Cov($close, $volume)",
    "Beta($close, $volume, 7)",
)  # fmt: skip  # a table
"""Formulas that mean the same in every cell after the first rows, gaps included, which is noted."""

EDGES = (
    "LogReturn($close)", "LogReturn($close, 5)", "Skew($close)", "Skew($returns, 7)", "Kurt($close)",
    "Kurt($returns, 7)", "Resid($returns, $volume, 7)", "TsLinReg($close, 7)", "TsLinRegIntercept($close, 7)",
    "TsLinRegSlope($close)", "TsLinRegResid($close)", "Slope($close, 7)", "Resi($close, 7)", "Rsquare($close, 7)",
    "CsZScore($returns)", "CsScale($returns)", "Scale($returns)", "CsNeutralize($close)",
)  # fmt: skip  # a table
"""Formulas that differ at gaps, or where nothing moves, which is noted."""

ENDLESS = ("EMA($close, 2)", "EMA($close, 1)", "KAMA($close, 2)", "DEMA($close, 2)")
"""Formulas that differ at gaps and for 8 spans of first rows, which is noted."""

REFUSED = {
    "CumSum($returns)": ("dialect", "Sum(x, 60)"),
    "CumProd($returns)": ("dialect", "Prod(x, 60)"),
    "CumMax($close)": ("dialect", "TsMax(x, 60)"),
    "CumMin($close)": ("dialect", "TsMin(x, 60)"),
    "HMA($close, 20)": ("dialect", "WMA(Sub(Mul(2, WMA(x, 10)), WMA(x, 20)), 4)"),
    "Div($close, 0)": ("dialect", "It is 0 there"),
    "Skew($close, 2)": ("dialect", "the same number on every day"),
    "Delay($close, -1)": ("causal", "would read 1 day into the future"),
    "Delta($close, 0)": ("parse", "of at least 1"),
    "$close > $open": ("parse", ""),
    "$close - $open / $high": ("dialect", "Write Sub(x, y)."),
    "CsRank(-$close)": ("dialect", "Write Neg(x)."),
    "Mean($close, window=5)": ("parse", "literal number of days"),
    "Meen($close, 5)": ("parse", "Did you mean Mean?"),
    "Add(1, 2)": ("types", ""),
}

PUBLISHED = (
    "Neg(CsRank(Mul(Return($close, 5), Div($volume, Mean($volume, 20)))))",
    "IfElse(Greater($volume, Mean($volume, 20)), Neg(CsRank($returns)), Neg(CsRank(Return($close, 5))))",
    "Neg(CsRank(Div(Sub($close, HMA($close, 10)), Add(Std($close, 10), 1e-8))))",
    "Neg(CsRank(Sub(Corr($close, $volume, 10), Corr(Delay($close, 5), $volume, 10))))",
)
"""Numbers 2, 47, 87 and 19 of the 110 of FactorMiner's paper, as `factorminer/core/library_io.py` lists them."""

NAMES = frozenset(
    """
Add Sub Mul Div Neg Abs Sign Log Sqrt Square Pow SignedPower Power Exp Tanh Max Min Max2 Min2 Clip Inv Mean Std Var Skew
Kurt Median Med Sum Prod Product TsMax TsMin TsArgMax TsArgMin TsRank Quantile CountNaN CountNotNaN Delta Delay Return
LogReturn Corr Cov Beta Resid WMA Decay TsDecay CumSum CumProd CumMax CumMin EMA DEMA SMA KAMA HMA CsRank CsZScore
CsDemean CsScale Scale CsNeutralize CsQuantile TsLinReg TsLinRegSlope TsLinRegIntercept TsLinRegResid Slope Rsquare Resi
IfElse Greater GreaterEqual Less LessEqual Equal Eq Ne And Or Not
""".split()  # noqa: SIM905 - names as a column
)
"""All operators of `factorminer/core/types.py`."""


def agree(text: str, panel: Panel, first: int = 0, names: slice | list[int] = slice(None)) -> None:
    """Hold every cell to FactorMiner's meaning, to the precision of float32 after a few steps."""
    found = Engine(panel, threads=1).evaluate([parse(text, dialect="factorminer")])[0][first:, names]
    wanted = Meaning(panel.fields)(text)[first:, names]
    wanted = np.where(np.isfinite(wanted), wanted, np.nan)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=3e-6 * np.nanmax(np.abs(wanted), initial=1e-3))
    assert np.isfinite(found).mean() > 0.25


def noted(text: str) -> list[str]:
    return [warning for warning in parse(text, dialect="factorminer").warnings if not warning.startswith("units")]


@pytest.mark.parametrize("text", EXACT)
def test_a_word_means_what_it_means_in_factorminer(text: str) -> None:
    agree(text, GAPPED)
    assert all(any(word in note for word in ("1e-10", "infinite", "tied")) for note in noted(text))


@pytest.mark.parametrize("text", WINDOWED)
def test_a_window_means_what_it_means_after_the_first_rows(text: str) -> None:
    agree(text, GAPPED, WARMUP)
    assert any("first rows" in note for note in noted(text))


@pytest.mark.parametrize("text", EDGES)
def test_what_differs_at_gaps_is_noted_and_the_rest_is_equal(text: str) -> None:
    agree(text, FULL, WARMUP, slice(None, -1))
    assert noted(text)


@pytest.mark.parametrize("text", ENDLESS)
def test_a_mean_without_end_fades(text: str) -> None:
    agree(text, FULL, 40)
    assert noted(text)


def test_a_side_that_does_not_move_is_known_by_its_zeros() -> None:
    still = slice(47, 60)
    for text in ("Corr($close, $volume, 7)", "Beta($volume, $close, 7)"):
        values = Engine(FULL).evaluate([parse(text, dialect="factorminer")])[0]
        assert (values[still, STILL] == 0).all()
        agree(text, FULL, WARMUP)


def test_every_operator_of_factorminer_is_read_or_refused_and_tested() -> None:
    tested = " ".join((*EXACT, *WINDOWED, *EDGES, *ENDLESS))
    read = {rule.foreign.text for rule in load_rules("factorminer") if rule.imports and not rule.foreign.infix}
    refused = set(find_dialect("factorminer").refused)
    assert read | refused == NAMES
    assert {name for name in NAMES if f"{name}(" not in tested} == refused
    assert set(WORDS) == NAMES - refused


@pytest.mark.parametrize(("text", "why"), REFUSED.items())
def test_what_cannot_be_kept_is_refused_with_the_reason(text: str, why: tuple[str, str]) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text, dialect="factorminer")
    assert caught.value.stage == why[0]
    assert why[1] in str(caught.value)


@pytest.mark.parametrize("text", PUBLISHED)
def test_published_formulas_keep_their_values(text: str) -> None:
    """Where nothing stands still, for there the third divides by next to nothing."""
    agree(text, FULL, 60)


LEAVES = st.sampled_from(["$close", "$open", "$volume", "$returns", "1.5"])
WINDOWS = st.sampled_from([2, 5, 8])


def grown(below: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    names = ["Mean", "TsMax", "TsMin", "Sum", "Median", "Delay", "Delta", "WMA", "CountNaN", "TsArgMax"]
    signs = ["Add", "Sub", "Mul", "Max", "Min", "Greater", "LessEqual", "And", "Or"]
    one = st.builds("{}({}, {})".format, st.sampled_from(names), below, WINDOWS)
    two = st.builds("{}({}, {})".format, st.sampled_from(signs), below, below)
    return one | two | st.builds("{}({})".format, st.sampled_from(["Abs", "Neg", "Not", "CsDemean"]), below)


FORMULAS = st.recursive(LEAVES, grown, max_leaves=4).filter(lambda text: "$" in text)


def tried(text: str) -> Expression | ParseError:
    try:
        return parse(text, dialect="factorminer")
    except ParseError as error:
        return error


@given(FORMULAS.filter(lambda text: "CsDemean" not in text and text.count("8") < 3))
def test_nested_words_mean_what_they_mean_in_factorminer(text: str) -> None:
    known = tried(text)
    if isinstance(known, ParseError):
        assert known.stage == "types"  # a window over a constant
    else:
        agree(text, GAPPED, 35)


@given(FORMULAS)
def test_a_formula_goes_out_and_comes_back(text: str) -> None:
    known = tried(text)
    if isinstance(known, Expression):
        assert parse(write_foreign(known.root, "factorminer").text, dialect="factorminer").id == known.id


@pytest.mark.parametrize("text", [*EXACT, *WINDOWED, *EDGES, *ENDLESS, *PUBLISHED])
def test_every_word_goes_out_and_comes_back(text: str) -> None:
    known = parse(text, dialect="factorminer")
    assert parse(write_foreign(known.root, "factorminer").text, dialect="factorminer").id == known.id


OUT = {
    "ts_corr(close, volume, 7)": (
        "Div(Cov($close, $volume, 7), Mul(Sqrt(Cov($close, $close, 7)), Sqrt(Cov($volume, $volume, 7))))"
    ),
    "ts_argmax(high, 5)": "Sub(Sub(5, TsArgMax($high, 5)), 1)",
    "ts_returns(close, 3)": "Return($close, 3)",
    "fill(returns, 0)": "IfElse(Not(GreaterEqual($returns, $returns)), 0, $returns)",
    "ts_zscore(close, 5)": "Div(Sub($close, Mean($close, 5)), Std($close, 5))",
    "decay_linear(amount, 5)": "WMA($amt, 5)",
}


@pytest.mark.parametrize("text", OUT)
def test_our_formulas_are_written_for_factorminer(text: str) -> None:
    written = translate(text, "alphaloom", "factorminer").text
    assert written == OUT[text]
    found, wanted = Engine(FULL).evaluate([text])[0], Meaning(FULL.fields)(written)
    np.testing.assert_allclose(found[WARMUP:, :-1], wanted[WARMUP:, :-1], rtol=1e-5, atol=1e-6)


def test_words_that_others_share_mean_something_else() -> None:
    """Greater is a comparison here and the larger of two in AlphaGen and Qlib; Std waits for no whole window."""
    for text in ("Greater($close, $open)", "Log($close)", "Std($close, 5)", "Corr($close, $volume, 5)"):
        assert len({parse(text, dialect=name).id for name in ("factorminer", "alphagen")}) == 2
    assert noted("Std($close, 5)") == [FIRST_ROWS_NOTE]
