"""The nearest of the training prompts: the cosine that it is said to be, whatever is asked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.router.classifier import INTENTS
from alphaloom.router.classifier.features import hash_marks, normalise_prompt
from alphaloom.router.classifier.model import WeightTable
from alphaloom.router.classifier.neighbours import MIN_HARD_SHARE, SCORE_WEIGHTS, Neighbours

TEXTS = [
    "mend the bracket here",
    "mend the brace here",
    "why does carry crash",
    "why does value crash now",
    "sum it up",
]
SHIPPED = WeightTable.read().near
WANTED, HARD = [3, 3, 9, 9, 6], [False, False, True, True, False]


@pytest.fixture(scope="module")
def few() -> Neighbours:
    return Neighbours.of(TEXTS, WANTED, HARD)


def by_hand(kind: int, text: str) -> list[float]:
    """Return the cosines to all texts, over the marks that at least two of them have."""
    each = [set(hash_marks(other)[kind].tolist()) for other in TEXTS]
    count = {mark: sum(mark in has for has in each) for mark in set().union(*each)}
    weight = {mark: 1 + np.log((1 + len(TEXTS)) / (1 + times)) for mark, times in count.items() if times >= 2}
    own = set(hash_marks(text)[kind].tolist()) & set(weight)

    def length(has: set[int]) -> float:
        return float(np.sqrt(sum(weight[mark] ** 2 for mark in has & set(weight)))) or 1.0

    return [sum(weight[mark] ** 2 for mark in has & own) / length(has) / length(own) for has in each]


@pytest.mark.parametrize("text", [*TEXTS, "mend why the crash", "nothing of the kind", ""])
def test_likeness_is_the_cosine_of_rare_marks(few: Neighbours, text: str) -> None:
    for kind, index in enumerate((few.words, few.runs)):
        assert index.likeness(hash_marks(text)[kind]) == pytest.approx(by_hand(kind, text))


def test_who_is_near_says_what_he_is(few: Neighbours) -> None:
    told = few.scores("why does carry crash")
    assert INTENTS[int(told[:-1].argmax())] == INTENTS[9]
    assert told[-1] == pytest.approx(SCORE_WEIGHTS[-1] * np.log((1 - MIN_HARD_SHARE) / MIN_HARD_SHARE))
    assert few.scores("mend the bracket here")[-1] == pytest.approx(-told[-1])
    assert not few.scores("zzz qqq").any()


def test_equals_count_alike_in_whatever_order_they_stand() -> None:
    texts = ["mend the bracket here"] * 10 + ["why does carry crash"] * 10
    hard = [at % 2 == 0 for at in range(20)]
    one = Neighbours.of(texts, [1] * 20, hard).scores("mend the bracket")
    other = Neighbours.of(texts[::-1], [1] * 20, hard[::-1]).scores("mend the bracket")
    assert one == pytest.approx(other)
    assert one[-1] == pytest.approx(0.0)


@given(st.text(max_size=2_000))
def test_any_text_has_neighbours_or_none(text: str) -> None:
    told = SHIPPED.scores(normalise_prompt(text))
    assert np.isfinite(told).all()
    assert abs(told[-1]) <= SCORE_WEIGHTS[-1] * np.log((1 - MIN_HARD_SHARE) / MIN_HARD_SHARE) + 1e-9


def test_an_index_that_is_torn_is_refused(few: Neighbours) -> None:
    kept = few.arrays()
    again = Neighbours.held(kept)
    assert np.array_equal(again.scores("why carry"), few.scores("why carry"))
    with pytest.raises(ValueError, match="counts"):
        Neighbours.held(kept | {"near_runs_in": kept["near_runs_in"][1:]})
