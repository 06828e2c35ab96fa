from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.factors import FactorError, Node, bucket_windows, express, normalise_unchecked, parse, render, sample

SEEDS = st.integers(0, 2**32 - 1)

SAME = [
    ("close + high + low", "low + (close + high)"),
    ("close * volume * returns", "returns * (volume * close)"),
    ("close + close", "2 * close"),
    ("2 * close + 2 * open", "(close + open) * 2"),
    ("close / 2", "0.5 * close"),
    ("0.1 * close + 0.3 * open", "0.1 * (close + 3 * open)"),
    ("close - open", "-(open - close)"),
    ("0 - close", "-close"),
    ("-1 * close", "-close"),
    ("--close", "close"),
    ("0 - -1 * close", "close"),
    ("ts_sum(close, 20) / 20", "ts_mean(close, 20)"),
    ("ts_sum(close, 5) / ts_sum(open, 5)", "ts_mean(close, 5) / ts_mean(open, 5)"),
    ("ts_corr(close, volume, 10)", "ts_corr(volume, close, 10)"),
    ("ts_corr(close, -volume, 10)", "-ts_corr(close, volume, 10)"),
    ("max(close, open)", "max(open, close)"),
    ("max(close, max(high, open))", "max(max(open, close), high)"),
    ("-max(-close, -open)", "min(open, close)"),
    ("returns * returns", "power(returns, 2)"),
    ("returns ** 3 / volume / volume", "returns * returns * returns / volume ** 2"),
    ("power(2 * returns, 2)", "4 * returns * returns"),
    ("sqrt(volume)", "volume ** 0.5"),
    ("close / open - 1", "(close - open) / open"),
    ("close / delay(close, 5) - 1", "ts_returns(close, 5)"),
    ("delta(close, 5) / delay(close, 5)", "ts_returns(close, 5)"),
    ("close - delay(close, 5)", "delta(close, 5)"),
    ("rank(3 * ts_sum(returns, 5))", "rank(ts_mean(returns, 5))"),
    ("rank(rank(returns))", "rank(returns)"),
    ("zscore(demean(returns))", "zscore(returns)"),
    ("ts_max(-close, 5)", "-ts_min(close, 5)"),
    ("ts_argmax(-close, 5)", "ts_argmin(close, 5)"),
    ("ts_std(-2 * returns, 5)", "2 * ts_std(returns, 5)"),
    ("ts_beta(returns, 2 * volume, 9)", "0.5 * ts_beta(returns, volume, 9)"),
    ("where(close > open, volume, 0)", "where(open < close, volume, 0)"),
    ("where(~(close > open), volume, 0)", "where(open < close, 0, volume)"),
    ("~(close > open)", "close <= open"),
    ("(close > open) & (returns > 0)", "(returns > 0) and close > open"),
    ("close * log(10) / log(10)", "close"),
    ("regress_out(2 * returns, -volume, cap, cap)", "2 * regress_out(returns, cap, volume)"),
    ("rsi(close, 14)", "100 * ts_sum(max(delta(close, 1), 0), 14) / ts_sum(abs(delta(close, 1)), 14)"),
    ("sma(close, 20) * 20", "ts_sum(close, 20)"),
    ("wilder(close, 14)", "ema(close, 216, min_periods=14, span=27)"),
    ("square(2 * returns)", "4 * returns ** 2"),
    ("inverse(close)", "1 / close"),
    ("aroon(24)", "(ts_argmin(low, 25) - ts_argmax(high, 25)) * 100 / 24"),
    ("bollinger(close, 20, 3) - 0.5", "ts_zscore(close, 20, ddof=0) / 6"),
    ("between(close, low, high)", "(low <= close) & (high >= close)"),
    ("ts_demean(-close, 9)", "ts_mean(close, 9) - close"),
]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_equal_by_algebra_is_one_factor(left: str, right: str) -> None:
    assert parse(left).canonical_text == parse(right).canonical_text
    assert parse(left).id == parse(right).id


DIFFERENT = [
    ("close", "-close"),
    ("close", "2 * close"),
    ("close", "close * open / open"),
    ("close", "close + 0 * open"),
    ("close * low / open", "close / (open / low)"),
    ("ts_sum(close, 20, min_periods=5) / 20", "ts_mean(close, 20, min_periods=5)"),
    ("rank(-returns)", "-rank(returns)"),
    ("zscore(zscore(returns, ddof=0))", "zscore(returns, ddof=0)"),
    ("rank(zscore(returns))", "rank(returns)"),
    ("ts_beta(close, open, 5)", "ts_beta(open, close, 5)"),
    ("ts_mean(close, 20)", "ts_mean(close, 21)"),
]


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_what_differs_in_value_or_missing_days_stays_apart(left: str, right: str) -> None:
    assert parse(left).id != parse(right).id


def windows_moved(node: Node, by: int) -> Node:
    args = tuple(windows_moved(arg, by) for arg in node.args)
    moved = node.with_args(*args) if args else node
    return moved.with_params(window=node.window + by) if node.window else moved


def test_evasion_1_windows_moved_by_one_meet_in_their_buckets() -> None:
    text = "rank(ts_corr(ts_mean(close, 10), ts_std(volume, 20), 40)) * ts_rank(delta(returns, 5), 60)"
    moved = parse(render(windows_moved(parse(text).root, 1)))
    assert moved.id != parse(text).id
    assert bucket_windows(moved.canonical) == bucket_windows(parse(text).canonical)


def test_evasion_2_another_wrapper_leaves_the_core() -> None:
    cores = {
        parse(f"{wrapper}(ts_mean(returns, 5) / ts_std(returns, 20))").core for wrapper in ("rank", "zscore", "scale")
    }
    cores.add(parse("-2 * rank(0.5 - ts_mean(returns, 5) / ts_std(returns, 20))").core)
    assert {render(core) for core in cores} == {"ts_mean(returns, 5) / ts_std(returns, 20)"}


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("ts_mean(close, 5) + open + high", "high + ts_mean(close, 5) + open"),
        ("ts_corr(close, volume, 10)", "ts_corr(volume, close, 10)"),
        ("max(close, open)", "max(open, close)"),
        ("ts_sum(returns, 12) / 12", "ts_mean(returns, 12)"),
        ("close - open", "-(open - close)"),
    ],
)
def test_evasions_3_to_7_are_the_same_factor(left: str, right: str) -> None:
    assert parse(left).id == parse(right).id


@given(SEEDS)
def test_the_canonical_text_parses_back_to_the_same_id(seed: int) -> None:
    expression = sample(np.random.default_rng(seed), max_size=18)
    again = parse(expression.canonical_text)
    assert (again.canonical, again.id, again.core) == (expression.canonical, expression.id, expression.core)
    assert again.canonical_text == expression.canonical_text


@given(SEEDS)
def test_sign_factor_and_wrapper_change_neither_unsigned_nor_core(seed: int) -> None:
    text = sample(np.random.default_rng(seed), max_size=12).text
    assert parse(f"-({text})").unsigned == parse(text).unsigned
    assert parse(f"-3 * rank(2 * ({text}))").core == parse(text).core


@given(SEEDS, SEEDS)
def test_the_order_of_sums_products_and_symmetric_arguments_is_nothing(one: int, other: int) -> None:
    a, b = (f"rank({sample(np.random.default_rng(seed), max_size=8).text})" for seed in (one, other))
    for left, right in (("{a} + {b}", "{b} + {a}"), ("{a} * {b}", "{b} * {a}"), ("{a} - {b}", "-({b} - {a})")):
        assert parse(left.format(a=a, b=b)).id == parse(right.format(a=a, b=b)).id
    assert parse(f"ts_cov({a}, {b}, 9)").id == parse(f"ts_cov({b}, {a}, 9)").id
    assert parse(f"where({a} < {b}, 1, 2)").id == parse(f"where({b} > {a}, 1, 2)").id


@given(SEEDS)
def test_buckets_are_a_canonical_form_too(seed: int) -> None:
    expression = sample(np.random.default_rng(seed), max_size=12)
    once = bucket_windows(expression.canonical)
    assert bucket_windows(once) == once


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("max(0.5, -1, returns)", "max(0.5, returns)"),
        ("min(2, returns, 0.1 + 0.2)", "min(returns, 0.3)"),
        ("max(max(returns, 1), 3)", "max(3, returns)"),
    ],
)
def test_constants_of_an_extreme_are_one(one: str, other: str) -> None:
    assert parse(one).id == parse(other).id


def test_a_long_average_is_bucketed_by_its_span() -> None:
    assert bucket_windows(parse("macd(close, 12, 26)").canonical) == bucket_windows(
        parse("macd(close, 11, 25)").canonical
    )
    assert bucket_windows(parse("macd(close, 12, 26)").canonical) != bucket_windows(
        parse("macd(close, 12, 120)").canonical
    )


@given(SEEDS)
def test_forms_without_checks_are_those_of_the_whole_reading(seed: int) -> None:
    tree = sample(np.random.default_rng(seed), max_size=14).root
    expression = express(tree)
    assert normalise_unchecked(tree) == (expression.canonical, expression.core)


@pytest.mark.parametrize("window", [5, 10, 20])
def test_a_keyword_equal_to_its_default_is_left_out_of_the_forms(window: int) -> None:
    tree = parse(f"ts_mean(close, {window}, min_periods=5)").root.with_params(min_periods=float(window))
    assert normalise_unchecked(tree)[0] == parse(f"ts_mean(close, {window})").canonical


def test_forms_of_a_constant_that_is_no_number_are_refused() -> None:
    with pytest.raises(FactorError):
        normalise_unchecked(Node("div", (parse("close").root, Node("number", value=0.0))))
