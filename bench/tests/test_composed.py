"""Composed formulas are accepted without the removal of earlier looks, and have nothing left with it."""

from __future__ import annotations

from collections import Counter

from bench.composed import STRATEGIES, count_acceptances

LOOKS, DAYS, NAMES = 60, 130, 20


def test_the_removal_is_what_stops_composed_formulas() -> None:
    before: Counter[str] = Counter()
    for seed in range(5):
        before.update(count_acceptances(seed, LOOKS, DAYS, NAMES, removed=False))
    after = count_acceptances(0, LOOKS, DAYS, NAMES, removed=True)
    assert set(after) == {*STRATEGIES}
    assert before["weighted"] >= 3
    assert not any(after.values())
