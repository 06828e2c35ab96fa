"""Coins turn labels in blocks, and the real gate is asked on a market of them."""

from __future__ import annotations

import numpy as np

from alphaloom.evidence.scoring.scorer import Scorer
from alphaloom.market import SyntheticConfig, simulate
from bench.styles import LOOKS, SETTINGS, CoinScorer, ask_gate, draw_coins


def test_coins_are_equal_within_blocks_and_turn_every_label() -> None:
    coins = draw_coins(np.random.default_rng(3), 300, 40)
    changes = np.flatnonzero(np.diff(coins)) + 1
    assert set(coins) == {-1.0, 1.0}
    assert set((changes - changes[0]) % 40) == {0}
    panel = simulate(SyntheticConfig(seed=1, days=300, names=20, nothing=True)).panel
    turned, plain = CoinScorer(panel, SETTINGS, coins), Scorer(panel, SETTINGS)
    for mine, theirs in (
        (turned.main_label, plain.main_label),
        (turned.label(1), plain.label(1)),
        (turned.returns, plain.returns),
        (turned.daily_returns, plain.daily_returns),
    ):
        np.testing.assert_array_equal(mine, theirs * coins[:, None])


def test_the_gate_takes_all_looks_on_a_market() -> None:
    panel = simulate(SyntheticConfig(seed=1, days=800, names=40)).panel
    answer = ask_gate(panel, 1, 700, 30, 35)
    assert (answer.seed, answer.looks) == (1, LOOKS)
    assert 0 < answer.smallest_p < 1
    assert ask_gate(panel, 1, 700, 30, 35) == answer
