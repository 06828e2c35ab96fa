"""Products with the sample of the language: those of the formulas that are kept, whatever was kept before."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from alphaloom.evidence.basis import Basis, Scored
from alphaloom.evidence.reach import Reach
from alphaloom.factors import parse

ONE = Scored(parse("close"), 0.01, 2.0)


@given(st.integers(0, 10_000), st.lists(st.sets(st.integers(0, 9)), max_size=4))
def test_products_are_those_of_what_is_known_now(seed: int, steps: list[set[int]]) -> None:
    rng = np.random.default_rng(seed)
    ranks, sample = (rng.integers(-9, 10, (count, 20)).astype(np.float32) for count in (10, 12))
    parts = [sample[:5].astype(np.int8), sample[5:7].astype(np.int8), sample[7:].astype(np.int8)]
    reach = Reach()
    for turn, known in enumerate(steps):
        places = sorted(known)
        basis = Basis().joined([f"f{at}" for at in places], [ONE] * len(places), ranks[places]) if places else Basis()
        reach.follow(basis, parts[: turn + 1])
        for part, found in zip(parts, reach.products, strict=False):
            np.testing.assert_array_equal(found, ranks[places] @ part.T.astype(np.float32))
