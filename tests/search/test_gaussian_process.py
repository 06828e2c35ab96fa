"""What a score would tell of formulas that nobody has scored: as the slow formula says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from alphaloom.factors import parse
from alphaloom.search.surrogate import gaussian_process
from alphaloom.search.surrogate.gaussian_process import GaussianProcess, ScoredFormula
from alphaloom.search.surrogate.matching_pursuit import NOISE_VARIANCE_SHARE

ONE = ScoredFormula(parse("close"), 0.01, 2.0)


def unit(ranks: NDArray[np.float32]) -> NDArray[np.float64]:
    whole = ranks.astype(np.float64)
    return np.asarray(whole / np.linalg.norm(whole, axis=1, keepdims=True))


@given(st.integers(0, 10_000), st.integers(0, 4))
def test_a_score_tells_by_how_much_the_rest_grows_less_uncertain(seed: int, scored: int) -> None:
    rng = np.random.default_rng(seed)
    known, others, drafts = (rng.integers(-9, 10, (count, 30)).astype(np.float32) for count in (scored, 7, 3))
    one = GaussianProcess().with_references(others[:2])
    for at in range(scored):  # learned one by one, and before and after the others were exchanged
        one = one.with_formulas([f"f{at}"], [ONE], known[at : at + 1]).with_references(others)

    def unknown(given: NDArray[np.float32]) -> float:
        """Return the mean variance of `others` when the scores of some formulas are given, each with its own doubt."""
        left = unit(others) @ unit(others).T
        if len(given):
            across = unit(others) @ unit(given).T
            alike = unit(given) @ unit(given).T + NOISE_VARIANCE_SHARE * np.eye(len(given))
            left = left - across @ np.linalg.solve(alike, across.T)
        return float(np.diag(left).mean())

    one = one.with_references(others)
    told = one.measure_information(drafts, one.decorrelate(one.across(drafts)))
    expected = [unknown(known) - unknown(np.vstack([known, draft[None]])) for draft in drafts]
    np.testing.assert_allclose(told, expected, atol=1e-9)


def test_of_too_many_the_same_are_kept_whenever_they_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian_process, "MAX_STRONGEST_FACTORS", 4)
    monkeypatch.setattr(gaussian_process, "MAX_OTHER_FACTORS", 3)
    rng = np.random.default_rng(0)
    rows = {
        f"f{at:02d}": ScoredFormula(ONE.expression, float(rank_ic), 1.0)
        for at, rank_ic in enumerate(rng.normal(size=20))
    }
    ranks = {name: rng.integers(-9, 10, (1, 30)).astype(np.float32) for name in rows}
    found = []
    for _ in range(5):
        one = GaussianProcess()
        for name in rng.permutation(list(rows)):
            one = one.with_formulas([name], [rows[name]], ranks[name])
        found.append(one.ids)
    by_strength = sorted(rows, key=lambda name: -abs(rows[name].rank_ic))
    assert set(found) == {tuple(sorted([*by_strength[:4], *sorted(by_strength[4:])[:3]]))}
