from __future__ import annotations

import textwrap

import numpy as np
import pytest
from numpy.typing import NDArray

from alphaloom.factors import Engine, ParseError, parse
from alphaloom.factors.dialects import find_dialect, translate
from alphaloom.factors.dialects.importer import load_rules, read_surface
from alphaloom.market import Panel

from .alphaagent_meaning import Meaning
from .markets import small_market

WHOLE = small_market(1, days=60, names=6, gaps=0.0)
GAPS = small_market(2, days=60, names=6, gaps=0.08)
LONGEST_WINDOW = 20

EXACT = (
    "ABS($return)", "SIGN($return)", "EXP($return)", "SQRT($return)", "LOG($return)", "FLOOR($close)",
    "$close != $close ? 1 : $close", "INV($close)", "POW($return, 2)", "MAX($open, $close)",
    "MIN($open, $close, $vwap)", "$close + $open * 2 - $high / $low", "-$close * 2 + 1", "$close > $open",
    "$close < DELAY($close, 1)", "$close >= $open", "$close <= $open", "$close == $high", "$close != $open",
    "$close > $open && $volume > DELAY($volume) || $return < 0", "$close > $open ? $volume : -$return",
    "$return ? 1 : 2", "RANK($volume)", "ZSCORE($return)", "SCALE($return)", "SCALE($return, 2)",
    "$close - MEAN($close)", "DELAY($close)", "DELAY($close, 0)", "DELTA($close)", "DELTA($close, 7)",
    "TS_PCTCHANGE($close)", "TS_PCTCHANGE($close, 5)", "TS_MEAN($close, 20)", "TS_MEAN($close)", "TS_SUM($return, 5)",
    "SUMAC($return)", "TS_MIN($low, 9)", "TS_MAX($high, 9)", "TS_MEDIAN($close, 8)", "TS_RANK($close, 10)",
    "TS_STD($return)", "TS_STD($return, 1)", "TS_VAR($return, 6)", "TS_VAR($return, 6, 0)", "TS_ZSCORE($close, 12)",
    "TS_QUANTILE($close, 10, 0.3)", "TS_QUANTILE($close, 10)", "PERCENTILE($close, 0.8, 12)",
    "TS_CORR($close, $volume, 10)", "TS_CORR($close, $volume)", "TS_COVARIANCE($close, $volume, 10)",
    "COUNT($close > $open, 10)", "COUNT($close > DELAY($close))", "SUMIF($return, 10, $close > $open)",
    "FILTER($volume, $close > $open)", "EMA($close, 3)", "EMA($close, 1) - $close", "SMA($close, 7)",
    "SMA($close, 7, 2)", "SMA($close, 5, 1)", "REGBETA($close, $volume, 10)", "REGBETA($close, SEQUENCE(10), 10)",
    "REGBETA($close, SEQUENCE(5))", "REGRESI($return, $open, 10)", "REGRESI($close, SEQUENCE(12), 12)",
    "MACD($return)", "MACD($return, 5, 10)", "RSI($close)", "RSI($close, 6)", "BB_MIDDLE($close, 10)",
    "BB_UPPER($close, 10)", "BB_LOWER($close, 10)", "close - $open",
)  # fmt: skip  # a table
"""Formulas whose meaning is kept in every cell; infinite there is missing here."""
EDGES = (
    "TS_ARGMAX($high, 10)", "TS_ARGMIN($low, 10)", "HIGHDAY($high, 10)", "LOWDAY($low)", "PROD(1 + $return, 6)",
    "DECAYLINEAR($close, 8)", "WMA($close, 10)", "WMA($close)", "TS_SKEW($return, 12)", "TS_KURT($return, 12)",
    "TS_CORR($close, SEQUENCE(8), 8)", "MEAN($close)",
    "STD($close)", "MEDIAN($close)", 
)  # fmt: skip  # a table
"""Formulas that differ in the first rows or at gaps, which cannot be kept: a note says so."""


def noted(text: str) -> bool:
    return any(not note.startswith("units") for note in parse(text, dialect="alphaagent").warnings)


def both(text: str, market: Panel) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    wanted = np.asarray(Meaning(market).of(read_surface(text, find_dialect("alphaagent"))), float)
    values = Engine(market).evaluate([parse(text, dialect="alphaagent")])[0].astype(float)
    return values, np.where(np.isfinite(wanted), wanted, np.nan)


@pytest.mark.parametrize("text", EXACT)
def test_a_formula_means_what_it_means_there(text: str) -> None:
    for market in (WHOLE, GAPS):
        found, wanted = both(text, market)
        there = wanted[~np.isnan(wanted)]
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=5e-6 * float(there.std() if there.size else 0))
    assert noted(text) == text.startswith("TS_PCTCHANGE")


@pytest.mark.parametrize("text", EDGES)
def test_what_differs_at_the_edges_is_noted_and_the_rest_is_equal(text: str) -> None:
    found, wanted = both(text, WHOLE)
    np.testing.assert_allclose(found[LONGEST_WINDOW:], wanted[LONGEST_WINDOW:], rtol=2e-4, atol=1e-5)
    assert noted(text)


def test_each_word_is_tested() -> None:
    words = {rule.foreign.text for rule in load_rules("alphaagent") if rule.imports and rule.foreign.kind == "call"}
    written = " ".join((*EXACT, *EDGES))
    aliases = {"ADD", "SUBTRACT", "MULTIPLY", "DIVIDE", "AND", "OR", "WHERE", "GT", "LT", "GE", "LE", "EQ", "NE"}
    assert {word for word in words - aliases if word.isupper() and f"{word}(" not in written} == set()


REFUSED = {
    "DELAY($close, -1)": ("causal", "would read 1 day into the future"),
    "PERCENTILE($close, 0.5)": ("dialect", "later ones too"),
    "TS_MAD($close, 5)": ("dialect", "median distance"),
    "SKEW($close)": ("dialect", "TS_SKEW"),
    "MAX($close)": ("dialect", "overwrites"),
    "TS_CORR($close, SEQUENCE(5), 10)": ("dialect", "as long as their window"),
    "TS_MEAN($close, $volume)": ("parse", "literal number of days"),
    "TS_MEAN(5, 3)": ("types", "is a constant"),
}


@pytest.mark.parametrize(("text", "why"), REFUSED.items())
def test_what_cannot_be_kept_is_refused_with_the_reason(text: str, why: tuple[str, str]) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text, dialect="alphaagent")
    assert caught.value.stage == why[0]
    assert why[1] in str(caught.value)


def test_all_mistakes_are_told_at_once_in_the_words_of_the_formula() -> None:
    with pytest.raises(ParseError) as caught:
        parse("TS_MEEN($clos, 5) + RANK($opne)", dialect="alphaagent")
    first, second = caught.value, caught.value.others[0]
    assert str(first) == textwrap.dedent("""\
        unknown operator 'TS_MEEN'
        TS_MEEN($clos, 5) + RANK($opne)
        ^
        Did you mean TS_MEAN? Write TS_MEAN(x, d) or TS_MEAN(x): TS_MEAN($close, 20)""")
    assert second.message == "unknown field '$opne'"
    assert second.at == 25
    assert "$open" in second.hint


def test_between_foreign_languages() -> None:
    assert translate("TS_MEAN($close, 20)", "alphaagent", "worldquant").notes
    assert translate("RANK(DELTA($close, 5))", "alphaagent", "worldquant").text == "rank(delta(close, 5))"
    assert translate("(-1 * rank(delta(close, 5.3)))", "worldquant", "alphaagent").text == "-1 * RANK(DELTA($close, 5))"
    assert translate("adv20 / volume", "worldquant", "alphaloom").text == "ts_mean(amount, 20) / volume"
