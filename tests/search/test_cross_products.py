"""Products with the sample of the language: those of the formulas that are kept, whatever was kept before."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from alphaloom.evidence.windows import Window
from alphaloom.factors import parse
from alphaloom.market import SyntheticConfig, simulate
from alphaloom.search.surrogate.candidate_pool import CandidatePool, CrossProducts
from alphaloom.search.surrogate.gaussian_process import GaussianProcess, ScoredFormula
from alphaloom.search.surrogate.subsample import SubsampledPanel

PANEL = simulate(SyntheticConfig(seed=3, days=120, names=20)).panel
ONE = ScoredFormula(parse("close"), 0.01, 2.0)


def unit(rows: NDArray[Any]) -> NDArray[np.float64]:
    return np.array([row / np.sqrt(float(row @ row)) for row in rows.astype(np.float64)]).reshape(rows.shape)


@given(st.integers(0, 10_000), st.lists(st.sets(st.integers(0, 9)), max_size=4))
def test_products_are_those_of_what_is_known_now(seed: int, steps: list[set[int]]) -> None:
    rng = np.random.default_rng(seed)
    ranks = rng.integers(-9, 10, (10, 20)).astype(np.float32)
    sample = CandidatePool(SubsampledPanel(PANEL, Window("search", 0, 60, "", "")), ("close",))
    reach = CrossProducts(sample)
    for places in map(sorted, steps):
        basis = (
            GaussianProcess().with_formulas([f"f{at}" for at in places], [ONE] * len(places), ranks[places])
            if places
            else GaussianProcess()
        )
        rows = rng.integers(1, 4)
        sample._firsts.append(sum(map(len, sample.parts)))
        sample.parts.append(rng.integers(-9, 10, (rows, 20)).astype(np.int8))
        reach.update(basis)
        whole = np.vstack(sample.parts).astype(np.float64)
        expected = unit(whole) @ unit(ranks[places]).T
        found = np.vstack([reach.across(basis, part) for part in range(len(sample.parts))])
        np.testing.assert_allclose(found, expected, atol=1e-6)
        asked = rng.permutation(len(whole))[:2]
        np.testing.assert_allclose(reach.rows(basis, asked.tolist()), expected[asked], atol=1e-6)
