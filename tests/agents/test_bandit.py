"""The bandit: its weights without data, the better arm with data, and the same seed, the same choice."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.agents.offline.mutations import MAX_EFFECTIVE_TRIES, Bandit

WEIGHTS = {"smooth": 2.0, "wrap": 1.5, "graft": 0.5}


def test_without_data_each_is_chosen_in_proportion_to_its_weight() -> None:
    rng, bandit = np.random.default_rng(1), Bandit.parse([])
    chosen = Counter(bandit.choose(WEIGHTS, "turnover", rng) for _ in range(8_000))
    for name, weight in WEIGHTS.items():
        share = weight / sum(WEIGHTS.values())
        assert abs(chosen[name] / 8_000 - share) < 5 * np.sqrt(share * (1 - share) / 8_000)


def row(operator: str, where: str, tried: int, better: int) -> dict[str, object]:
    return {"operator": operator, "where": where, "tried": tried, "better": better, "gain": 0.0}


def test_it_converges_to_the_better_arm_of_each_weakness() -> None:
    """Smooth helps on turnover with 0.6 against 0.2, and the other way round on decay."""
    chance = {("smooth", "turnover"): 0.6, ("wrap", "turnover"): 0.2, ("smooth", "decay"): 0.2, ("wrap", "decay"): 0.6}
    rng, done = np.random.default_rng(2), {arm: [0, 0] for arm in chance}
    late: Counter[tuple[str, str]] = Counter()
    for turn in range(1_200):
        rows = [row(*arm, *counts) for arm, counts in done.items()]
        rows += [
            row(name, "any", *np.sum([done[name, w] for w in ("turnover", "decay")], axis=0))
            for name in ("smooth", "wrap")
        ]
        where = ("turnover", "decay")[turn % 2]
        name = Bandit.parse(rows).choose({"smooth": 1.0, "wrap": 1.0}, where, rng)
        done[name, where][0] += 1
        done[name, where][1] += rng.random() < chance[name, where]
        late[name, where] += turn >= 800
    assert late["smooth", "turnover"] > 0.85 * 200
    assert late["wrap", "decay"] > 0.85 * 200


def test_equal_seeds_choose_alike_and_others_do_not() -> None:
    def choices(seed: int) -> list[str]:
        rng, bandit = np.random.default_rng(seed), Bandit.parse([row("wrap", "any", 9, 4)])
        return [bandit.choose(WEIGHTS, "none", rng) for _ in range(40)]

    assert choices(1) == choices(1) != choices(2)


@given(tried=st.integers(0, 10_000), share=st.floats(0, 1), elsewhere=st.integers(0, 10_000))
def test_a_belief_rests_on_so_many_tries_at_most_and_keeps_their_share(
    tried: int, share: float, elsewhere: int
) -> None:
    better = int(share * tried)
    rows = [row("smooth", "decay", tried, better), row("smooth", "any", tried + elsewhere, better)]
    counted, good = Bandit.parse(rows).evidence("smooth", "decay")
    assert 0 <= good <= counted <= MAX_EFFECTIVE_TRIES + 1e-9
    assert Bandit.parse(rows).evidence("wrap", "decay") == (0, 0)
    if not elsewhere and tried:
        assert good / counted == pytest.approx(better / tried)


def test_rows_that_are_none_are_passed_over() -> None:
    assert Bandit.parse(["smooth", None, {"operator": "smooth"}]).seen == {}
