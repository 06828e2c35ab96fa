"""Changes of formulas: typed where it matters, and doing what they are called."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from alphaloom.agents.offline.mutations import (
    CHANGE_WEIGHTS,
    CHANGES,
    DIRECTED_CHANGES,
    ChangeMaterial,
    invert,
    is_plain,
)
from alphaloom.factors import OPERATORS, FactorError, Node, parse, render, sample, walk
from alphaloom.factors.space.search_space import CORE, PAIR_OPERATORS

from .doubles import FIELDS, GROUPS

MATE = parse("ts_mean(returns, 20)").root
STOCK = ChangeMaterial(FIELDS, GROUPS, (MATE,))
NAMED = sorted(CHANGES)


def windows(node: Node) -> float:
    return sum(part.window for _, part in walk(node))


@pytest.mark.parametrize("name", NAMED)
@settings(max_examples=15)
@given(seed=st.integers(0, 10_000))
def test_a_change_gives_a_formula_that_can_be_written_and_often_read(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    changed = CHANGES[name](sample(rng, fields=FIELDS).root, STOCK, rng)
    if changed is not None:
        text = render(changed)
        with suppress(FactorError):
            assert parse(text, fields=FIELDS, groups=GROUPS).text == text


def test_most_changes_of_a_typical_formula_are_valid() -> None:
    root, valid, rng = parse("rank(ts_corr(close / open, volume, 20))").root, 0, np.random.default_rng(1)
    for _ in range(200):
        changed = CHANGES[sorted(CHANGE_WEIGHTS)[int(rng.integers(len(CHANGE_WEIGHTS)))]](root, STOCK, rng)
        try:
            valid += changed is not None and bool(parse(render(changed), fields=FIELDS, groups=GROUPS))
        except FactorError:
            continue
    assert valid > 100


@given(seed=st.integers(0, 1_000))
@settings(max_examples=20)
def test_directed_changes_do_what_they_are_called(seed: int) -> None:
    root, rng = parse("ts_mean(returns, 20) / ts_std(returns, 40)").root, np.random.default_rng(seed)
    do = {name: change(root, STOCK, rng) for name, change in DIRECTED_CHANGES.items()}
    changed = {name: node for name, node in do.items() if node is not None}
    assert windows(changed["shorten"]) < windows(root) < windows(changed["lengthen"])
    assert any(part.op in ("ts_mean", "decay_linear", "ema") for _, part in walk(changed["smooth"]))
    assert changed["simplify"].size < root.size
    assert {part for _, part in walk(changed["combine"])} & {part for _, part in walk(MATE)}
    assert any(part.op.startswith(("group_", "rank")) for _, part in walk(changed["neutralise"]))


def test_turning_the_sign_twice_changes_nothing() -> None:
    once = invert(MATE, STOCK, np.random.default_rng(0))
    assert once is not None
    assert render(once) == "-ts_mean(returns, 20)"
    assert invert(once, STOCK, np.random.default_rng(0)) == MATE


@pytest.mark.parametrize(("names", "series"), [(CORE, 1), (PAIR_OPERATORS, 2)])
def test_operators_that_stand_for_each_other_take_as_many_series_and_one_window(
    names: tuple[str, ...], series: int
) -> None:
    for name in names:
        kinds = [argument.kind for argument in OPERATORS[name].positional]
        assert kinds == ["panel"] * series + ["window"]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("rank(ts_corr(close, ts_mean(volume, 20), 40))", True),
        ("-ts_std(high / low, 20) * volume", True),
        ("ts_mean(close - open, 10)", True),
        ("rank(ts_std(returns, 20)) + rank(ts_mean(volume, 20))", False),
        ("ts_std(returns, 20) * ts_mean(returns, 20)", False),
        ("ts_mean(ts_std(ts_rank(close, 20), 10), 10)", False),
        ("ts_corr(ts_mean(close / open, 20), ts_mean(high / low * volume, 20), 40)", False),
    ],
)
def test_a_plain_formula_says_one_thing(text: str, plain: bool) -> None:
    assert is_plain(parse(text).core) is plain
