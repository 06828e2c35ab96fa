from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alphaloom.factors import explain, parse, replace, sample, walk
from alphaloom.factors.node import at, field_node

SEEDS = st.integers(0, 2**32 - 1)

WORDS = {
    "rank(ts_std(returns, 20)) * -1": (
        "The cross-sectional rank of the 20-day standard deviation of returns, times -1. It is a rank and needs 21 days."
    ),
    "close / open": "The close divided by the open. It is a ratio and needs today only.",
    "ts_mean(close - open, 5)": "The 5-day mean of (the close minus the open). It is in units of price and needs 5 days.",
    "group_demean(returns, sector)": "Returns less the mean of its sector. It is a return and needs 2 days.",
    "close + high + low - 3 * open": (
        "The close plus the day's high plus the day's low minus (3 times the open). "
        "It is in units of price and needs today only."
    ),
    "volume / delay(volume, 1)": "Volume divided by (volume of 1 day ago). It is a ratio and needs 2 days.",
    "ts_rank(close, 5, ties=first, scaled=unit)": (
        "The rank of the close within its last 5 days (ties first, scaled unit). It is a rank and needs 5 days."
    ),
    "regress_out(returns, cap, volume)": "Returns less its regression on market value and volume. It is a return and needs 2 days.",
    "atr(14)": "The 14-day average true range. It is in units of price and needs 15 days.",
    "ts_std(returns, 20, ddof=0)": (
        "The 20-day standard deviation of returns (ddof 0). It is a return and needs 21 days."
    ),
}


@pytest.mark.parametrize("text", WORDS)
def test_plain_words(text: str) -> None:
    assert explain(text) == WORDS[text]


@settings(max_examples=50, deadline=None)
@given(SEEDS)
def test_every_formula_has_words(seed: int) -> None:
    words = explain(sample(np.random.default_rng(seed), max_size=14))
    assert "{" not in words
    assert words.count("(") == words.count(")")


def test_sampling_follows_from_the_seed_and_the_fields() -> None:
    def draws(fields: set[str]) -> list[str]:
        rng = np.random.default_rng(5)
        return [sample(rng, fields=fields, max_size=9).text for _ in range(20)]

    assert draws({"close", "volume"}) == draws({"volume", "close"})
    assert {name for text in draws({"close"}) for name in parse(text).fields} <= {"close", "sector", "industry"}


def test_samples_are_not_larger_than_asked_and_use_every_operator() -> None:
    rng = np.random.default_rng(0)
    drawn = [sample(rng, max_size=12) for _ in range(600)]
    assert max(expression.size for expression in drawn) <= 14
    assert len({node.op for expression in drawn for _, node in walk(expression.root)}) >= 60
    assert all(expression.lookback.hi <= 0 for expression in drawn)


def test_trees_can_be_edited_by_path() -> None:
    root = parse("rank(ts_mean(close, 5) / open)").root
    paths = {path: node for path, node in walk(root)}
    assert at(root, (0, 0)) == paths[0, 0] == parse("ts_mean(close, 5)").root
    assert replace(root, (0, 1), field_node("vwap")) == parse("rank(ts_mean(close, 5) / vwap)").root
    assert at(root, (0, 0)).with_params(window=9) == parse("ts_mean(close, 9)").root


def test_nodes_are_equal_hashable_and_survive_pickling() -> None:
    root = parse("rank(ts_mean(close, 5) / open)").root
    copy = pickle.loads(pickle.dumps(root))
    assert copy == root
    assert hash(copy) == hash(root)
