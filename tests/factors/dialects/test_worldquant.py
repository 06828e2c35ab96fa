from __future__ import annotations

import functools
import textwrap
from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from alphaloom.evidence.originality.published import formulas
from alphaloom.factors import Engine, Expression, ParseError, parse
from alphaloom.factors.dialects import find_dialect, translate, write_foreign
from alphaloom.factors.dialects.importer import read_surface

from .markets import small_market
from .worldquant_meaning import Meaning, Values

PUBLISHED: Mapping[int, str] = {int(number): formula for number, formula in formulas("worldquant").items()}
"""The 101 formulas of the paper, as two public copies of it agree on them."""
EMPTY = {96}
"""Alpha 96 needs a month without three days of equal rank (a correlation of a constant): there is none."""
REFUSED: Mapping[int, str] = {}
"""Those that cannot be carried over, and why: none."""
MARKET = small_market(101, days=320, names=16)
GROUPS = {"sector": "sector", "industry": "industry", "subindustry": "industry"}


@functools.cache
def imported() -> Mapping[int, Expression]:
    return {number: parse(text, dialect="worldquant") for number, text in PUBLISHED.items() if number not in REFUSED}


@functools.cache
def computed() -> Mapping[int, Values]:
    found = Engine(MARKET).evaluate(list(imported().values()))
    return {number: values.astype(float) for number, values in zip(imported(), found, strict=True)}


def test_there_are_101_formulas_and_at_most_six_are_refused() -> None:
    assert list(PUBLISHED) == list(range(1, 102))
    assert len(imported()) >= 95


def same(found: Values, wanted: Values) -> NDArray[np.bool_]:
    there = wanted[~np.isnan(wanted)]
    near = 1e-6 * float(there.std()) if there.size else 0.0
    return np.isclose(found, wanted, rtol=1e-4, atol=near, equal_nan=True)


@pytest.mark.parametrize("number", imported())
def test_a_published_formula_means_what_the_paper_says(number: int) -> None:
    """Every cell agrees, but for those few that noise in the last digit decides."""
    formula = read_surface(PUBLISHED[number], find_dialect("worldquant"))
    wanted = Meaning(MARKET, GROUPS).of(formula)
    agree = same(computed()[number], wanted)
    assert agree.mean() > 0.95
    seed = 0
    while not agree.all() and seed < 100:
        agree |= ~same(Meaning(MARKET, GROUPS, np.random.default_rng(seed)).of(formula), wanted)
        seed += 1
    assert agree.all()
    assert np.isnan(wanted).all() == (number in EMPTY)


def test_what_is_read_is_written_again() -> None:
    for expression in imported().values():
        written = write_foreign(expression.root, "worldquant")
        assert parse(written.text, dialect="worldquant").id == expression.id


def test_a_missing_subindustry_is_told() -> None:
    assert any("'industry' stands in" in warning for warning in imported()[48].warnings)
    named = parse(PUBLISHED[48], dialect="worldquant", groups=["sector", "industry", "subindustry"])
    assert "subindustry" in named.fields
    assert not any("stands in" in warning for warning in named.warnings)


def test_units_that_disagree_are_warnings() -> None:
    assert any(warning.startswith("units do not agree") for warning in imported()[7].warnings)
    with pytest.raises(ParseError, match="cannot be compared"):
        parse("ts_mean(amount, 20) < volume")


@pytest.mark.parametrize(
    ("foreign", "own"),
    {
        "max(close, 5)": "ts_max(close, 5)",
        "max(close, 5.9)": "ts_max(close, 5)",
        "max(returns, 0.5)": "max(returns, 0.5)",
        "min(close, open)": "min(close, open)",
        "max(5, returns)": "max(returns, 5)",
        "RANK(Close)": "rank(close)",
        "indneutralize(close, indclass.SECTOR)": "group_demean(close, sector)",
        "scale(returns, 2)": "scale(returns, to=2)",
        "-returns^2": "-(returns ** 2)",
        "close < open || open < vwap && returns > 1": "(close < open) | ((open < vwap) & (returns > 1))",
        "close < open ? 1 : close > vwap ? 2 : 3": "where(close < open, 1, where(close > vwap, 2, 3))",
        "close - open ? 1 : 2": "where(close - open != 0, 1, 2)",
        "adv20 / adv5": "ts_mean(amount, 20) / ts_mean(amount, 5)",
        "delay(close, 0)": "close",
    }.items(),
)
def test_words_of_the_paper(foreign: str, own: str) -> None:
    assert parse(foreign, dialect="worldquant").canonical == parse(own, dialect="alphaloom").canonical


MISTAKES = {
    "delay(close, -2)": """
        delay with -2 would read 2 days into the future
        delay(close, -2)
                     ^
        Windows count back: they are positive.""",
    "(-1 * corelation(open, volume, 10))": """
        unknown operator 'corelation'
        (-1 * corelation(open, volume, 10))
              ^
        Did you mean correlation? Write correlation(x, y, d): correlation(close, volume, 20)""",
    "ts_rank(close, open)": """
        d of ts_rank must be a literal number of days of at least 1
        ts_rank(close, open)
                       ^
        Write ts_rank(x, d): ts_rank(close, 20)""",
    "stddev(close)": """
        stddev takes 2 arguments; 1 was given
        stddev(close)
        ^
        Write stddev(x, d): stddev(close, 20)""",
    "rank(close": """
        a closing ')' is missing at the end
        rank(close
                  ^
        'rank(' at column 5 is still open. A formula of WorldQuant 101: """
    "(-1 * correlation(rank(open), rank(volume), 10))",
    "indneutralize(close, IndClass.sektor)": """
        unknown grouping 'IndClass.sektor'
        indneutralize(close, IndClass.sektor)
                             ^
        Did you mean IndClass.sector? Groupings: IndClass.industry, IndClass.sector, IndClass.subindustry.""",
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.items())
def test_a_mistake_is_shown_in_the_words_of_the_paper(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text, dialect="worldquant")
    assert str(caught.value) == textwrap.dedent(message).strip()
    assert (caught.value.stage == "causal") == ("future" in message)


def test_what_the_paper_has_no_words_for_is_refused() -> None:
    with pytest.raises(ParseError, match="nothing that means ts_skew") as caught:
        translate("rank(ts_skew(returns, 60))", "alphaloom", "worldquant")
    assert caught.value.stage == "dialect"


def test_numbers_never_become_windows() -> None:
    assert translate("max(returns, 5)", "alphaloom", "worldquant").text == "max(5, returns)"
    assert translate("max(5, 2) * returns", "alphaloom", "worldquant").text == "5 * returns"


def test_a_column_of_the_user_goes_before_a_family_of_names() -> None:
    assert parse("adv20 / volume", dialect="worldquant", fields=["adv20", "volume", "amount"]).fields == {
        "adv20",
        "volume",
    }
    assert parse("ADV20 / volume", dialect="worldquant").fields == {"amount", "volume"}


def test_what_differs_only_at_the_edges_is_noted() -> None:
    written = translate("ts_mean(close, 20, min_periods=5)", "alphaloom", "worldquant")
    assert written.text == "sum(close, 20) / 20"
    assert "min_periods 5" in written.notes[0]
