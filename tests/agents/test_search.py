"""The search climbs: on a landscape it comes closer to a hidden formula than drawing at random does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from alphaloom.agents import AgentsConfig
from alphaloom.agents.structure import overlap
from alphaloom.factors import sample

from .doubles import FIELDS, GROUPS, Lab

CONFIG = AgentsConfig(rounds=6, hypotheses=4, candidates=5, steps=3, trials_per_round=0, set_size=0)


@pytest.mark.parametrize(
    "target", ["ts_mean(rank(volume / ts_mean(volume, 20)), 5)", "ts_corr(rank(close), delta(volume, 5), 30)"]
)
def test_a_campaign_climbs_above_random_search(lab: Callable[..., Lab], target: str) -> None:
    campaign = lab(config=CONFIG)
    campaign.servers.evaluations = 300
    campaign.servers.strength = lambda text: 12 * overlap(text, target, FIELDS, GROUPS)
    campaign.run()
    best = max(overlap(str(row["text"]), target, FIELDS, GROUPS) for row in campaign.servers.scored.values())
    rng = np.random.default_rng(7)
    drawn = [sample(rng, fields=FIELDS).text for _ in range(300)]
    assert best > max(overlap(text, target, FIELDS, GROUPS) for text in drawn)
    assert best >= 0.7
