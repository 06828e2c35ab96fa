from __future__ import annotations

import textwrap

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.factors import OPERATORS, Node, ParseError, express, parse, render, sample

SEEDS = st.integers(0, 2**32 - 1)


def refusal(text: str) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse(text)
    return caught.value


def mistake(text: str) -> ParseError | None:
    try:
        parse(text)
    except ParseError as error:
        return error
    return None


def test_a_formula_reads_like_python() -> None:
    assert parse("rank(ts_std(returns, 30)) * -1").canonical_text == "-rank(ts_std(returns, 30))"
    assert parse("-returns ** 2").id == parse("-(returns ** 2)").id
    assert parse("close - open * 2 / close * close").id == parse("close - (((open * 2) / close) * close)").id
    assert parse("close > open and not volume > delay(volume, 1) or returns > 1e-3").unit == "bool"
    assert parse("returns * -1").id == parse("-returns").id
    assert parse("ts_std(returns, window=5, ddof=0)").id == parse("ts_std(returns, 5, ddof=0)").id


def test_keywords_equal_to_their_default_leave_no_trace() -> None:
    assert parse("ts_std(returns, 5, min_periods=5, ddof=1)").root == parse("ts_std(returns, 5)").root
    assert parse("ts_std(returns, 5, min_periods=3)").id != parse("ts_std(returns, 5)").id
    assert parse("winsorize(returns, 3)").root == parse("winsorize(returns)").root


def test_a_fractional_window_is_floored_with_a_warning() -> None:
    assert parse("ts_mean(close, 5.7)").id == parse("ts_mean(close, 5)").id
    assert parse("ts_mean(close, 5.7)").warnings == ("the window 5.7 of ts_mean was floored to 5",)


def test_other_columns_and_groupings_can_be_named() -> None:
    assert parse("rank(sentiment)", fields=["sentiment"]).fields == {"sentiment"}
    assert parse("group_rank(returns, country)", groups=["country"]).fields == {"returns", "country"}
    assert refusal("rank(sentiment)").message == "unknown field 'sentiment'"


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_has_documentation_and_an_example_that_uses_it(name: str) -> None:
    operator = OPERATORS[name]
    expression = parse(operator.example)
    assert name in {node.op for node in [expression.root, *expression.root.args]}
    assert operator.signature in operator.doc
    assert "NaN" in operator.doc
    assert operator.words.count("{") >= len(operator.nodes)


CARETS = {
    "ts_meen(close, 5)": """
        unknown operator 'ts_meen'
        ts_meen(close, 5)
        ^
        Did you mean ts_mean? Write ts_mean(x, window, min_periods=window), for example ts_mean(returns, 20).""",
    "Ref(close, 5)": """
        unknown operator 'Ref'
        Ref(close, 5)
        ^
        Did you mean delay? Write delay(x, window), for example delay(close, 5).""",
    "rank(clos)": """
        unknown field 'clos'
        rank(clos)
             ^
        Did you mean close? Fields: amount, cap, close, close_raw, high, low, open, returns, volume, vwap.""",
    "ts_mean(close)": """
        ts_mean takes 2 arguments; 1 was given
        ts_mean(close)
        ^
        Write ts_mean(x, window, min_periods=window), for example ts_mean(returns, 20).""",
    "ts_mean(close, 5, 6)": """
        ts_mean takes 2 arguments; 3 were given
        ts_mean(close, 5, 6)
                          ^
        Write ts_mean(x, window, min_periods=window), for example ts_mean(returns, 20).""",
    "ts_mean(close, open)": """
        window of ts_mean must be a whole number of days
        ts_mean(close, open)
                       ^
        Write ts_mean(x, window, min_periods=window), for example ts_mean(returns, 20).""",
    "delta(close, 0)": """
        window of delta cannot be 0
        delta(close, 0)
                     ^
        It is a whole number from 1 to 10000. Write delta(x, window), for example delta(close, 5).""",
    "close + delay(close, -2)": """
        delay with -2 would read 2 days into the future
        close + delay(close, -2)
                             ^
        Windows count back: delay(close, 5).""",
    "close + volume": """
        close is in units of price and volume is in units of volume: they cannot be added
        close + volume
                ^
        Make it dimensionless first: rank(close), zscore(close), or a ratio such as close / ts_mean(close, 20).""",
    "rank(close": """
        a closing ')' is missing at the end
        rank(close
                  ^
        'rank(' at column 5 is still open.""",
    "rank(close))": """
        this ')' closes nothing
        rank(close))
                   ^
        Take it away, or open one before it.""",
    "close *": """
        the formula ends after '*', where a value is missing
        close *
               ^
        Example: close * volume""",
    "close open": """
        an operator is missing between 'close' and 'open'
        close open
              ^
        Two values need a sign between them: close * volume.""",
    "close > open ? 1 : 2": """
        '?' is not part of the language
        close > open ? 1 : 2
                     ^
        A choice is written where(condition, x, y): where(close > open, volume, 0).""",
    "low < open < high": """
        comparisons cannot be chained
        low < open < high
                   ^
        Write (low < open) & (open < high); & and | bind tighter than comparisons, as in Python.""",
    "group_rank(returns, secto)": """
        group_rank needs a grouping here, not 'secto'
        group_rank(returns, secto)
                            ^
        Did you mean sector? Groupings: industry, sector. Write group_rank(x, by, ties=average, scaled=percent), \
for example group_rank(returns, sector).""",
    "rank": """
        rank is an operator, not a field
        rank
        ^
        Write rank(x, ties=average, scaled=percent), for example rank(returns).""",
    "ts_std(close, 5, ddoff=0)": """
        ts_std has no keyword 'ddoff'
        ts_std(close, 5, ddoff=0)
                         ^
        Did you mean ddof? Write ts_std(x, window, min_periods=window, ddof=1), for example ts_std(returns, 20).""",
    "ts_std(close, 5, min_periods=6)": """
        min_periods exceeds window
        ts_std(close, 5, min_periods=6)
                                     ^
        Write ts_std(x, window, min_periods=window, ddof=1), for example ts_std(returns, 20).""",
}


@pytest.mark.parametrize("text", CARETS)
def test_an_error_teaches(text: str) -> None:
    assert str(refusal(text)) == textwrap.dedent(CARETS[text]).strip("\n")


STAGES = {
    "": "parse", "   ": "parse", "close..5": "parse", "clip(returns, 1, -1)": "parse",
    "quantile_bucket(close, 2.5)": "parse", "1e400 * close": "parse", "max(close)": "parse", "f(": "parse",
    "(((": "parse", "a=b": "parse", "close(1)": "parse", "ts_mean(close, -5)": "causal", "delta(close, -1)": "causal",
    "ts_returns(close, window=-3)": "causal", "exp(close)": "types", "1 + 2": "types", "ts_mean(3, 5)": "types",
    "close / 0": "types", "log(-1) * close": "types", "close & open": "types", "where(close, 1, 2)": "types",
    "(1 > 2) * close": "types", "close ** rank(close)": "types", "1e15 ** 16 * close": "types",
}  # fmt: skip  # a table


@pytest.mark.parametrize("text", STAGES)
def test_a_refusal_names_its_stage(text: str) -> None:
    assert refusal(text).stage == STAGES[text]


@pytest.mark.parametrize(
    "text",
    ["(" * 900 + "close" + ")" * 900, "-" * 1500 + "close", "abs(" * 400 + "close", "close" + "+close" * 300, "~" * 99],
)
def test_monsters_are_refused_cleanly(text: str) -> None:
    assert refusal(text).stage == "parse"


def test_a_constant_that_grows_out_of_range_is_refused() -> None:
    assert refusal("power(" * 55 + "returns" + ", 2)" * 55).stage == "types"


def test_a_long_sum_is_not_deep() -> None:
    assert parse("+".join(["close"] * 90)).canonical_text == "90 * close"


@given(st.text(alphabet="closeranktsm_d(),.+-*/<>=&|~ 0123456789\n", max_size=40) | st.text(max_size=12))
def test_nothing_but_a_parse_error_ever_comes_out(text: str) -> None:
    error = mistake(text)
    if error is not None:
        assert 0 <= error.at <= len(text)
        assert "^" in str(error) or not text.strip()
        assert error.record()["stage"] == error.stage


@given(SEEDS)
def test_what_is_written_reads_back(seed: int) -> None:
    expression = sample(np.random.default_rng(seed), max_size=16)
    assert parse(render(expression.root)).root == expression.root


def test_a_long_formula_is_shown_around_the_caret() -> None:
    error = refusal("close + " * 30 + "closs" + " + close" * 30)
    line, caret = error.caret().split("\n")
    assert line[caret.index("^") :].startswith("closs")
    assert len(line) <= 106


@pytest.mark.parametrize("name", ["ts_downside_std", "square", "inverse", "sma", "rsi", "ts_demean", "truncate"])
def test_a_deep_nest_of_definitions_is_read_or_refused_at_once(name: str) -> None:
    numbers = {"square": "", "inverse": "", "truncate": ", 0.1"}.get(name, ", 5")
    text = f"{name}(" * 55 + "returns" + f"{numbers})" * 55
    error = mistake(text)
    assert error is None or "written out; 200 are allowed" in str(error) or "too" in str(error)


def test_a_field_that_only_a_definition_reads_is_told_at_its_operator() -> None:
    with pytest.raises(ParseError) as caught:
        parse("rank(close) + rank(true_range())", fields=["close"])
    assert caught.value.at == 19
    assert str(caught.value).startswith("true_range reads the field high, which is not there")


def test_a_division_by_zero_is_shown_where_it_stands() -> None:
    assert refusal("close + open / 0").at == 8


def test_a_constant_too_small_to_be_written_is_refused() -> None:
    assert "out of range" in refusal("1e-400 * returns").message
    assert parse("returns + 0.0").canonical_text == "returns"


def test_a_call_with_keywords_alone_lacks_its_argument() -> None:
    assert refusal("rank(ties=first)").message == "rank takes 1 argument; 0 were given"


def test_units_are_told_beside_what_cannot_be_read() -> None:
    with pytest.raises(ParseError) as caught:
        parse("ts_sdt(close, 5) + rank(close + volume)")
    assert [error.at for error in caught.value.mistakes] == [0, 32]


@given(st.integers(0, 2**32 - 1))
def test_a_tree_is_expressed_as_its_text_is_read(seed: int) -> None:
    tree = sample(np.random.default_rng(seed), max_size=9).root
    built, read_ = express(tree), parse(render(tree))
    assert (built.id, built.core, built.lookback, built.unit, built.fields) == (
        read_.id,
        read_.core,
        read_.lookback,
        read_.unit,
        read_.fields,
    )
    assert built.text == render(tree)


def test_a_tree_that_reads_later_days_or_mixes_units_is_refused() -> None:
    close = Node("field", name="close")
    for tree, stage in (
        (Node("delay", (close,), (("window", -5.0),)), "causal"),
        (Node("add", (close, Node("field", name="volume"))), "types"),
        (Node("ts_mean", (Node("field", name="?"),), (("window", 5.0),)), "parse"),
    ):
        with pytest.raises(ParseError) as refused:
            express(tree)
        assert refused.value.stage == stage
