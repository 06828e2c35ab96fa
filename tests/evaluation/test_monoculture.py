"""Agreement beside its null: what is alike by chance is not called alike, and copies are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from alphaloom.evaluation.checks import (
    compare_mechanisms,
    count_directions,
    measure_authors,
    measure_mechanisms,
    measure_series,
    read_monoculture,
)
from alphaloom.ledger import Ledger, ModelCall, Run

WORDS = [f"mechanism {letter}" for letter in "abcdefgh"]


def follow(random: np.random.Generator, count: int, days: int = 250) -> np.ndarray:
    """Return unrelated series that remember five days, as overlapping labels do."""
    noise = random.normal(size=(count, days + 4))
    return np.array([np.convolve(row, np.ones(5), "valid") for row in noise])


def test_directions_have_the_values_of_the_formulas() -> None:
    random = np.random.default_rng(0)
    base = random.normal(size=(3, 40_000))
    assert count_directions(base) == pytest.approx((3.0, 3.0), abs=1e-2)
    two = np.array([base[0], base[0], base[1]])
    assert count_directions(two) == pytest.approx((1.89, 1.80), abs=1e-2)


@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
@settings(max_examples=10)
def test_order_and_scale_of_series_do_not_matter(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    series = follow(random, count)
    effective, ratio = count_directions(series)
    assert 1.0 - 1e-9 <= ratio <= effective <= count + 1e-9
    again = series[::-1] * random.uniform(0.1, 10.0, (count, 1)) + 3.0
    assert count_directions(again) == pytest.approx((effective, ratio))


def rate(make: Callable[[np.random.Generator], np.ndarray], runs: int) -> float:
    found = [measure_series(make(np.random.default_rng(seed)))[0].alike for seed in range(runs)]
    return float(np.mean(found))


def test_unrelated_series_are_rarely_alike_and_related_ones_are() -> None:
    """A null of fresh days would call overlapping labels alike; at 5 %, 5 of 20 have a chance of 0.3 %."""
    assert rate(lambda random: follow(random, 4), 20) <= 0.2
    related = rate(lambda random: follow(random, 4) + 0.8 * follow(random, 1), 5)
    assert related >= 0.9
    assert measure_series(np.full((3, 200), np.nan)) == ()
    assert measure_series(follow(np.random.default_rng(1), 1)) == ()
    assert measure_series(follow(np.random.default_rng(1), 3, 40)) == ()


@given(st.lists(st.sampled_from(WORDS), min_size=2, max_size=30), st.permutations(WORDS))
@settings(max_examples=15)
def test_names_of_mechanisms_do_not_matter(names: list[str], other: list[str]) -> None:
    renamed = [other[WORDS.index(name)] for name in names]
    assert measure_mechanisms(names, 8) == measure_mechanisms(renamed, 8)


def test_few_mechanisms_are_alike_beyond_chance_alone() -> None:
    random = np.random.default_rng(3)
    drawn = [measure_mechanisms([WORDS[place] for place in random.integers(0, 8, 12)], 8) for _ in range(60)]
    assert np.mean([one.alike for one in drawn if one]) <= 0.15
    same = measure_mechanisms([*WORDS[:1] * 11, WORDS[1]], 8)
    assert same is not None
    assert same.alike
    assert same.observed < same.limit < same.null
    assert measure_mechanisms(WORDS[:1], 8) is None
    assert compare_mechanisms(1.0, 5, 1) is None


def test_authors_that_think_alike_are_not_told_apart_and_others_are() -> None:
    rounds = [f"{number:02d}" for number in range(1, 9)]
    apart = [(name, author, word) for name in rounds for author, word in (("a", WORDS[0]), ("b", WORDS[1]))]
    found = measure_authors(apart)
    assert found is not None
    assert (found.observed, found.alike) == (0.0, False)
    alike = measure_authors([(name, author, WORDS[0]) for name in rounds for author in "ab"])
    assert alike is not None
    assert (alike.observed, alike.null, alike.alike) == (1.0, 1.0, True)
    assert measure_authors([row for row in apart if row[1] == "a"]) is None
    assert measure_authors(apart[:4]) is None, "too few replies for any permutation to be rare"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)) as book:
        yield book


def test_it_is_read_from_the_record_of_a_run(ledger: Ledger) -> None:
    run = Run("run", {"settings": {}}, 7, "data", "2026-01-01")
    ledger.runs.start(run)
    assert read_monoculture(ledger, run).record()["concentration"] is None
    for number in range(1, 11):
        model = f"vendor/{'ab'[number % 2]}"
        statement = f'a "quoted" claim of round {number}'
        reply = ledger.objects.put(f'{{"statement": "a \\"quoted\\" claim of round {number}"}}'.encode())
        for role, intent in (("idea", "hypotheses"), ("eval", "critique")):
            key = f"{role}{number}"
            call = ModelCall(key, "run", role, intent, "frontier", model, "p", "q", reply, 1, 1, 0.0)
            ledger.calls.add(call)
        body = {"mechanism": WORDS[number % 2], "statement": statement, "either_way": False, "source": ""}
        ledger.events.record("run", "agents.hypothesis", f"r{number:02d}/h00", body)
    ledger.events.record("run", "agents.few_mechanisms", "r02", {"round": 2, "effective": 1.0})
    found = read_monoculture(ledger, run)
    assert (dict(found.models), found.concentration) == ({"vendor/a": 0.5, "vendor/b": 0.5}, 0.5)
    assert (found.judged_by_author, found.few_rounds, found.factors) == (("vendor/a", "vendor/b"), (2,), ())
    assert found.authors is not None
    assert (found.authors.observed, found.authors.alike) == (0.0, False)
    assert found.mechanisms is not None
    assert found.mechanisms.observed == pytest.approx(2.0)
