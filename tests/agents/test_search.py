"""The search climbs: it comes closer to hidden formulas than drawing at random does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from alphaloom.agents import AgentsConfig
from alphaloom.factors import Engine, row_rank_correlation, sample
from alphaloom.market import SyntheticConfig, simulate

from .doubles import FIELDS, Lab

pytestmark = pytest.mark.integration

CONFIG = AgentsConfig(rounds=20, min_search_t=99, set_size=0, survey_share=0.85)
HIDDEN = ("rank(delay(ts_rsquare(close, 24), 3))", "rank(ts_cov(amount * low, close, 34))", "ts_mad(rank(vwap), 30)")
EVALUATIONS = 250

Nearness = Callable[[str], list[float]]


@pytest.fixture(scope="module")
def nearness() -> Nearness:
    """Return a formula's mean rank correlation with each hidden one, on a market without returns to find."""
    engine = Engine(simulate(SyntheticConfig(seed=5, days=300, names=60)).panel, threads=1)
    hidden = [np.ascontiguousarray(values[100::5]) for values in engine.evaluate(list(HIDDEN))]

    def near(text: str) -> list[float]:
        values = np.ascontiguousarray(engine.evaluate([text])[0][100::5])
        daily = [row_rank_correlation(values, target) for target in hidden]
        return [float(row[np.isfinite(row)].mean()) if np.isfinite(row).any() else 0.0 for row in daily]

    return near


def test_a_campaign_finds_more_than_drawing_at_random(lab: Callable[..., Lab], nearness: Nearness) -> None:
    campaign = lab(config=CONFIG)
    campaign.servers.evaluations = EVALUATIONS
    campaign.servers.strength = lambda text: 15 * sum(nearness(text))
    campaign.run()
    found = np.abs([nearness(str(row["text"])) for row in campaign.servers.scored.values()]).max(axis=0)
    rng = np.random.default_rng(7)
    drawn = np.abs([nearness(sample(rng, fields=FIELDS, max_size=8).text) for _ in range(EVALUATIONS)]).max(axis=0)
    assert found.max() >= 0.5
    assert found.sum() > drawn.sum()
