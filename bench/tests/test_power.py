"""The benchmark of power takes out what the product takes out, and reads its own figures right."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.stats import norm

from alphaloom.evidence.scoring.exposures import residualise_label
from alphaloom.evidence.scoring.scorer import Scorer
from alphaloom.evidence.settings import EvidenceSettings
from alphaloom.market import SyntheticConfig, simulate
from bench.power import GRID, H, Row, World, provable
from bench.power_picture import draw


@cache
def world() -> World:
    return World(simulate(SyntheticConfig(seed=3, days=320, names=60, nothing=True)).panel, 200, 300)


@pytest.mark.parametrize("name", ["+ size", "own risk"])
def test_a_projection_is_the_residual_of_the_product(name: str) -> None:
    place = world()
    label = place.label(place.daily, H)
    whole = np.full(place.daily.shape, np.nan)
    whole[place.rows(H)] = label
    mine = place.projections[name](label)
    theirs = residualise_label(whole, place.exposures, place.risk if name == "own risk" else None)[place.rows(H)]
    known = ~np.isnan(place.exposures.beta[place.rows(H)]) & ~np.isnan(place.exposures.size[place.rows(H)])
    days = (known | np.isnan(label)).all(axis=1)  # where an exposure is unknown, the two fill it in differently
    assert days.any()
    np.testing.assert_allclose(mine[days], np.nan_to_num(theirs[days]), atol=1e-9)


def test_the_noise_of_the_benchmark_is_what_the_scorer_scores() -> None:
    place = world()
    scorer = Scorer(place.panel, EvidenceSettings(returns="raw"))
    label, raw = place.label(place.daily, H), np.log1p(scorer.label(H)[place.rows(H)])
    shift = label - raw  # names are centred, so a name's labels differ by one number
    assert np.nanmax(np.nanstd(shift[:, ~np.isnan(shift).all(axis=0)], axis=0)) < 1e-9


def test_provable_is_where_four_of_five_are_accepted() -> None:
    accepted = [float(norm.cdf(100 * (rank_ic - 0.035))) for rank_ic in GRID]
    assert provable(accepted) == pytest.approx(0.035 + norm.ppf(0.8) / 100)
    assert np.isnan(provable([0.0] * len(GRID)))


def test_size_counts_both_tails_with_an_exact_interval() -> None:
    size, low, high = Row("x", 1000, (100, 0), (), 0.03).size(0)
    assert size == 0.05
    assert [low, high] == pytest.approx([0.0411, 0.0602], abs=2e-4)


def test_the_picture_names_each_variant() -> None:
    text = draw(GRID, {"one": [0, 0.1, 0.5, 0.8, 0.9, 1.0], "two": [0] * 6})
    assert text.count("<polyline") == 2
    assert ">one</text>" in text
