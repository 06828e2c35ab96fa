"""Old formulas in new clothes are recognised; new ones are not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from alphaloom.evidence import EvidenceSettings
from alphaloom.evidence.originality.catalogue import Catalogue, find_nearest
from alphaloom.evidence.originality.published import formulas, read_published
from alphaloom.factors import Node, parse, render, sample
from alphaloom.factors.similarity.compare import KnownFormula, compare_formulas
from alphaloom.factors.similarity.outline import draw_outline

LIMIT = EvidenceSettings().max_similarity
SEEDS = st.integers(0, 10_000)

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
    "windows moved over every old edge": (
        "rank(ts_corr(ts_mean(close, 7), ts_std(volume, 14), 28)) - rank(delta(open, 3))",
        "rank(ts_corr(ts_mean(close, 8), ts_std(volume, 15), 29)) - rank(delta(open, 4))",
    ),
    "windows that change the order of a sum": (
        "rank(ts_mean(returns, 9) - ts_mean(returns, 30)) * rank(volume)",
        "rank(ts_mean(returns, 10) - ts_mean(returns, 31)) * rank(volume)",
    ),
    "constant factors within": (
        "ts_max(where(returns > 0, returns, volume / ts_mean(volume, 20)), 5)",
        "ts_max(where(3 * returns > 0, 1.2 * returns, 1.1 * volume / ts_mean(volume, 20)), 5)",
    ),
    "other weights": ("0.6 * rank(close) + 0.4 * rank(volume)", "0.5 * rank(close) + 0.5 * rank(volume)"),
    "the logarithm of a product": (
        "rank(log(high * volume)) * rank(delta(close, 5))",
        "rank(log(high) + log(volume)) * rank(delta(close, 5))",
    ),
    "the change of a logarithm": ("ts_returns(close, 20)", "log(close) - delay(log(close), 20)"),
    "a product squared": ("ts_mean(returns * returns, 20)", "ts_mean(power(returns, 2), 20)"),
    "negated twice": ("-(-rank(delta(close, 5)))", "rank(delta(close, 5))"),
    "a delay split": ("rank(volume / delay(volume, 3))", "rank(volume / delay(delay(volume, 1), 2))"),
    "a delay moved within": (
        "rank(delay(ts_mean(volume, 10), 2)) - rank(returns)",
        "rank(ts_mean(delay(volume, 2), 10)) - rank(returns)",
    ),
    "a maximum as a choice": ("rank(max(open, close) - low)", "rank(where(open > close, open, close) - low)"),
    "a size as a choice": (
        "ts_mean(abs(returns), 20) / ts_mean(amount, 20)",
        "ts_mean(where(returns < 0, -returns, returns), 20) / ts_mean(amount, 20)",
    ),
    "a size as a maximum": (
        "ts_mean(abs(returns), 20) / ts_mean(amount, 20)",
        "ts_mean(max(returns, -returns), 20) / ts_mean(amount, 20)",
    ),
    "a size as a product with the sign": ("sign(returns) * abs(returns) * volume", "returns * volume"),
    "a choice of nothing": ("where(returns > 0, rank(volume), 0)", "(returns > 0) * rank(volume)"),
    "a tiny constant added": (
        "ts_std(returns, 20) / ts_mean(abs(returns), 20)",
        "ts_std(returns, 20) / (ts_mean(abs(returns), 20) + 0.0000001)",
    ),
    "a tiny term added": (
        "rank(ts_std(returns, 20)) * rank(volume)",
        "rank(ts_std(returns, 20) + 0.0000000001 * returns) * rank(volume)",
    ),
    "a rank of a rank": ("rank(rank(ts_std(returns, 20))) * rank(close)", "rank(ts_std(returns, 20)) * rank(close)"),
    "a rank of what was standardised": (
        "rank(zscore(log(ts_std(returns, 20)))) * rank(close)",
        "rank(ts_std(returns, 20)) * rank(close)",
    ),
    "neutral elements": ("rank(ts_std(returns, 20) * 1 + 0) * rank(close)", "rank(ts_std(returns, 20)) * rank(close)"),
    "a term times zero": (
        "rank(ts_std(returns, 20) + 0 * volume / volume) * rank(close)",
        "rank(ts_std(returns, 20)) * rank(close)",
    ),
    "a minimum by negation": ("-max(-rank(close), -rank(volume))", "min(rank(close), rank(volume))"),
    "the root of a variance": (
        "rank(sqrt(ts_var(returns, 20))) - rank(volume)",
        "rank(ts_std(returns, 20)) - rank(volume)",
    ),
    "a variance as a square": ("returns / ts_var(returns, 20)", "returns / power(ts_std(returns, 20), 2)"),
    "a score over time spelled out": (
        "ts_zscore(volume, 20) * rank(close)",
        "rank(close) * (volume - ts_mean(volume, 20)) / ts_std(volume, 20)",
    ),
    "a score of the day spelled out": (
        "zscore(delta(close, 5)) * rank(volume)",
        "(delta(close, 5) - mean_across(delta(close, 5))) / std_across(delta(close, 5)) * rank(volume)",
    ),
    "a correlation spelled out": (
        "ts_corr(close, volume, 10) * rank(returns)",
        "rank(returns) * ts_cov(close, volume, 10) / (ts_std(close, 10) * ts_std(volume, 10))",
    ),
    "other options": (
        "ts_mean(returns, 20) / ts_std(returns, 20)",
        "ts_mean(returns, 20, min_periods=5) / ts_std(returns, 20, ddof=0)",
    ),
    "a comparison as a difference": ("ts_mean(close > open, 20)", "ts_mean(open - close < 0, 20)"),
    "a logarithm last": ("ts_mean(amount, 20)", "log(ts_mean(amount, 20))"),
    "a signed power last": (
        "rank(ts_corr(close, volume, 10) * ts_std(returns, 20))",
        "signed_power(ts_corr(close, volume, 10) * ts_std(returns, 20), 0.7)",
    ),
    "outliers held in last": (
        "rank(ts_corr(close, volume, 10) * ts_std(returns, 20))",
        "winsorize(ts_corr(close, volume, 10) * ts_std(returns, 20), 3)",
    ),
    "the inverse of a ratio": ("close / ts_mean(close, 20)", "ts_mean(close, 20) / close"),
    "a logarithm undone": ("rank(volume) * exp(log(close) - log(open))", "close / open * rank(volume)"),
    "a product distributed": (
        "returns * (rank(close) + rank(volume))",
        "returns * rank(close) + returns * rank(volume)",
    ),
    "returns spelled out": (
        "ts_std(returns, 20) * rank(volume)",
        "ts_std(close / delay(close, 1) - 1, 20) * rank(volume)",
    ),
    "returns by logarithms": (
        "ts_std(returns, 20) * rank(volume)",
        "ts_std(log(close) - log(delay(close, 1)), 20) * rank(volume)",
    ),
    "a return as a change over what was": (
        "ts_returns(close, 5) * rank(volume)",
        "delta(close, 5) / delay(close, 5) * rank(volume)",
    ),
    "a faint rank added": (
        "rank(ts_corr(close, volume, 10)) * rank(returns)",
        "rank(ts_corr(close, volume, 10)) * rank(returns) + 0.001 * rank(ts_mad(high / low, 30))",
    ),
    "a choice that is always the same": (
        "rank(ts_std(returns, 20)) * rank(volume)",
        "where(close > 0, rank(ts_std(returns, 20)) * rank(volume), rank(open))",
    ),
    "a window of one row": ("rank(delta(close, 5))", "ts_max(ts_mean(rank(delta(close, 5)), 1), 1)"),
    "held between two numbers": (
        "clip(returns, -0.1, 0.1) * rank(volume)",
        "min(max(returns, -0.1), 0.1) * rank(volume)",
    ),
    "one less the rank of the opposite": ("rank(high - low) * rank(volume)", "rank(volume) * (1 - rank(low - high))"),
    "a standard deviation by hand": (
        "ts_std(returns, 20) * rank(volume)",
        "sqrt(ts_mean(returns * returns, 20) - ts_mean(returns, 20) * ts_mean(returns, 20)) * rank(volume)",
    ),
}

DIFFERENT = {
    "the day before": ("returns", "delay(returns, 1)"),
    "a week and a quarter": ("ts_returns(close, 5) * rank(volume)", "ts_returns(close, 60) * rank(volume)"),
    "a sum and a difference": ("rank(close) + rank(volume)", "rank(close) - rank(volume)"),
    "a square and a cube": ("ts_mean(returns ** 2, 20)", "ts_mean(returns ** 3, 20)"),
    "the first and the last fifth": ("ts_quantile(returns, 20, 0.2)", "ts_quantile(returns, 20, 0.8)"),
    "rises and falls": ("ts_mean(close > open, 20)", "ts_mean(close < open, 20)"),
    "a rank that counts": ("rank(close) + 0.1 * rank(volume)", "rank(close)"),
    "a choice that depends": ("where(returns > 0, rank(close), rank(volume))", "rank(close)"),
    "the close and the raw close": ("rank(close) * volume", "rank(close_raw) * volume"),
}


def ratio(a: str, b: str) -> float:
    return compare_formulas(parse(a), KnownFormula.of("known", parse(b), "print")).ratio


NOTHING_DONE = [
    "abs(volume)", "max(volume, 0)", "max(volume, 0 - volume)", "sign(volume) * volume", "volume / sign(close)",
    "sqrt(volume * volume)", "power(volume, 1)", "signed_power(volume, 1)", "power(power(volume, 2), 0.5)",
    "exp(log(volume))", "volume * (close > 0)", "volume * abs(sign(close))", "volume * rank(close) / rank(close)",
    "where(high >= low, volume, 0 - volume)", "where(close == close, volume, 0 - volume)",
    "where(volume < 0, 0 - volume, volume)", "where(close > open, volume, volume)",
    "where((high >= low) & (rank(close) >= 0), volume, 0 - volume)",
]  # fmt: skip  # a table
"""Ways to write the volume again."""
ORDER_KEPT = {
    "rank(delta(close, 5))": ("-0.333 * rank(delta(close, 5))", "power(rank(delta(close, 5)), 2)",
                              "1 / rank(delta(close, 5))", "max(rank(delta(abs(close), 5)), 0)",
                              "rank(rank(delta(close, 5))) + 0.5"),
    "(high - low) / close": ("abs(low - high) / close", "max(high - low, low - high) / close",
                             "high / close - low / close", "(high - low) * (high - low) / (close * close)",
                             "where(high > low, high - low, low - high) / close"),
    "ts_std(returns, 20)": ("ts_var(returns, 20)", "sign(ts_std(returns, 20)) * ts_std(returns, 20)",
                            "ts_std(abs(close) / abs(delay(close, 1)) - 1, 20)"),
}  # fmt: skip  # a table
"""Formulas, and others that order the names of a day alike, or in reverse."""


@pytest.mark.parametrize("volume", NOTHING_DONE)
def test_a_step_that_does_nothing_makes_no_new_formula(volume: str) -> None:
    like = find_nearest(
        parse(f"ts_corr({volume}, close, 10)"), Catalogue.of([("known", parse("ts_corr(close, volume, 10)"), "x")])
    )
    assert like[0].ratio == 1.0


@pytest.mark.parametrize(
    ("known", "again"), [(known, other) for known, others in ORDER_KEPT.items() for other in others]
)
def test_what_orders_alike_by_its_signs_is_no_new_formula(known: str, again: str) -> None:
    assert find_nearest(parse(again), Catalogue.of([("known", parse(known), "x")]))[0].ratio == 1.0


@pytest.mark.parametrize(
    "other",
    ["abs(returns)", "max(returns, 0)", "where(close > open, volume, 0 - volume)", "power(returns, 2)",
     "sign(returns) * volume", "where(ts_argmax(close, 5) > 0, volume, 0 - volume)", "volume * (returns > 0)",
     "1 / returns"],
)  # fmt: skip  # a table
def test_a_step_that_does_something_is_kept(other: str) -> None:
    bare = "returns" if other.startswith(("abs", "max", "power", "1")) else "volume"
    like = find_nearest(
        parse(f"ts_corr({other}, close, 10)"), Catalogue.of([("k", parse(f"ts_corr({bare}, close, 10)"), "x")])
    )
    assert not like or like[0].ratio < 1.0


@pytest.mark.parametrize("evasion", EVASIONS)
def test_no_evasion_is_new(evasion: str) -> None:
    mine, known = EVASIONS[evasion]
    assert ratio(mine, known) == 1.0
    assert ratio(known, mine) == 1.0


@pytest.mark.parametrize("pair", DIFFERENT)
def test_what_means_something_else_is_not_the_same(pair: str) -> None:
    assert ratio(*DIFFERENT[pair]) < 1.0


def moved(node: Node, rows: int = 1) -> Node:
    """Return a tree with every window of two rows or more moved."""
    params = tuple((name, each + rows if name == "window" and each >= 2 else each) for name, each in node.params)
    return Node(node.op, tuple(moved(arg, rows) for arg in node.args), params, node.value, node.name)


@given(SEEDS)
def test_there_is_no_edge_that_a_window_can_be_moved_over(seed: int) -> None:
    known = sample(np.random.default_rng(seed), max_size=14)
    assert ratio(render(moved(known.root)), known.text) == 1.0


@pytest.mark.parametrize("window", [2, 3, 4, 5, 7, 10, 15, 20, 40, 63, 126, 252, 399])
def test_the_next_window_is_near_and_twice_as_long_is_not(window: int) -> None:
    known = f"ts_corr(rank(close), rank(volume), {window})"
    assert ratio(f"ts_corr(rank(close), rank(volume), {window + 1})", known) == 1.0
    assert ratio(f"ts_corr(rank(close), rank(volume), {2 * window})", known) < LIMIT


def test_an_unrelated_formula_is_new() -> None:
    fresh = parse("rank(ts_corr(delta(low, 3) / low, delta(volume, 2) / volume, 17)) - rank(ts_mad(close / open, 23))")
    assert find_nearest(fresh, Catalogue((read_published(),)))[0].ratio < LIMIT / 2


def test_half_of_a_formula_is_half_like_it() -> None:
    assert ratio("delta(close, 5) / ts_std(close, 20)", "delta(close, 5)") == pytest.approx(2 * 2 / (5 + 2))


@given(SEEDS)
@example(454)  # log(sign(amount)): a constant in disguise, which has no subtree that reads a field
def test_likeness_is_symmetric_whole_with_itself_and_at_most_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = sample(rng), sample(rng)
    a, b = first.canonical_text, second.canonical_text
    assert ratio(a, b) == ratio(b, a)
    assert 0 <= ratio(a, b) <= 1
    assert ratio(a, a) == float(draw_outline(first.core).names_a_field)


def test_the_nearest_come_first_and_say_what_is_shared() -> None:
    texts = ("volume", "ts_std(returns, 20)", "ts_std(returns, 21)", "cap")
    known = [KnownFormula.of(text, parse(text), "print") for text in texts]
    nearest = find_nearest(parse("rank(ts_std(returns, 20)) * rank(volume)"), known, 4)
    assert [like.known.name for like in nearest] == ["ts_std(returns, 20)", "ts_std(returns, 21)", "volume"]
    assert (nearest[0].shared, nearest[0].exact, nearest[1].exact) == ("ts_std(returns, 20)", True, False)
    assert (nearest[1].theirs, nearest[2].theirs) == ((21.0,), ())
    assert find_nearest(parse("close"), []) == []


@pytest.mark.parametrize("number", ["1", "41", "57"])
def test_a_formula_of_the_paper_is_known_by_its_number(number: str) -> None:
    nearest = find_nearest(parse(formulas("worldquant")[number], dialect="worldquant"), Catalogue((read_published(),)))
    assert (nearest[0].ratio, nearest[0].known.where) == (1.0, f"Kakushadze 2016, no. {number}")


def test_the_published_factors_are_all_there_with_names_and_sources() -> None:
    rows = list(read_published())
    assert (len(formulas("worldquant")), len(formulas("alpha158"))) == (101, 158)
    assert len(rows) >= 101 + 158 + 25
    assert len({row.name for row in rows}) == len(rows)
    assert all(row.where for row in rows)
