"""The plain part of the language: what is drawn of it can be read, and says only what was asked for."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.factors import OPERATORS, FactorError, express, walk
from alphaloom.factors.space.search_space import (
    ACTIVITY,
    CORE,
    DRAWN_PRICES,
    PAIR_OPERATORS,
    RAW_FIELDS,
    _StatementSampler,
    sample_plain,
)

NAMED = st.one_of(
    st.just(frozenset[str]()), st.frozensets(st.sampled_from([*CORE, *PAIR_OPERATORS, "unheard_of"]), max_size=3)
)
FIELDS = st.lists(st.sampled_from(RAW_FIELDS), min_size=1, max_size=4, unique=True)


@given(st.integers(0, 10_000), FIELDS, NAMED)
def test_only_the_fields_and_operators_that_are_named(seed: int, fields: list[str], named: frozenset[str]) -> None:
    tree = sample_plain(np.random.default_rng(seed), fields, named)
    if tree is None:
        return
    parts = [part for _, part in walk(tree)]
    assert {part.name for part in parts if part.op == "field"} <= set(fields)
    looks_back = {part.op for part in parts if part.op in OPERATORS and OPERATORS[part.op].family == "time series"}
    assert looks_back <= ((named & {*CORE, *PAIR_OPERATORS}) or {*CORE, *PAIR_OPERATORS})


def test_rare_kinds_are_drawn_as_often_as_common_ones() -> None:
    rng = np.random.default_rng(0)
    drawn = [_StatementSampler(rng, RAW_FIELDS, (*CORE, *PAIR_OPERATORS)) for _ in range(4_000)]
    fields = Counter(part.name for one in drawn for _, part in walk(one.draw()) if part.op == "field")
    whole = sum(fields.values())
    for kind in (("returns",), DRAWN_PRICES, ACTIVITY):
        assert sum(fields[name] for name in kind) == pytest.approx(whole / 3, rel=0.1)


def test_most_of_what_is_drawn_can_be_read_and_little_comes_twice() -> None:
    rng, seen, read = np.random.default_rng(0), set(), 0
    for _ in range(1_000):
        tree = sample_plain(rng, RAW_FIELDS)
        try:
            seen.add(express(tree, fields=RAW_FIELDS).id if tree is not None else "")
            read += tree is not None
        except FactorError:
            continue
    assert read > 800
    assert len(seen) > 0.9 * read
