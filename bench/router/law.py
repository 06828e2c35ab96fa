"""What would become of each prompt at each tier: a table drawn by a stated law, the same for everybody who chooses.

Nobody was paid to answer these prompts: success, price and what shows of a failure are simulated, and the law is
printed with every result. A prompt's label may be wrong, tiers differ more on hard prompts than on easy ones, and
prompts of one label differ among themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.router.prompts import Prompt, hardness

__all__ = ["FRONTIER", "LOCAL", "Law", "Table", "drawn"]

Flags = NDArray[np.bool_]
Numbers = NDArray[np.float64]
LOCAL, FRONTIER = 0, 1
BYTES_OF_A_TOKEN = 4.0


@dataclass(frozen=True)
class Law:
    """How success and price are drawn.

    Attributes
    ----------
    success : two pairs of float
        Chance of a right reply of the local and of the frontier tier, on an easy and on a hard prompt.
    spread : float
        Standard deviation of a prompt's own ease, in log-odds, added to both tiers' chances.
    flipped : float
        Share of prompts whose true hardness is not their label's.
    shown : float
        Share of wrong replies that show themselves (an invalid reply); a cascade and a learner hear of no other.
    prices : two pairs of float
        US dollars per million tokens sent and received, local and frontier.
    sent : float
        Tokens of instructions sent with each prompt.
    replies : pair of float
        Mean tokens of a reply to an easy and to a hard prompt; gamma with shape 4.
    worlds : int
        How often each prompt is drawn anew.
    """

    success: tuple[tuple[float, float], tuple[float, float]] = ((0.96, 0.35), (0.97, 0.90))
    spread: float = 0.7
    flipped: float = 0.05
    shown: float = 0.5
    prices: tuple[tuple[float, float], tuple[float, float]] = ((0.10, 0.40), (5.0, 25.0))
    sent: float = 700.0
    replies: tuple[float, float] = (250.0, 700.0)
    worlds: int = 20

    def told(self) -> str:
        """Return the law in words."""
        (easy, hard), (easy_up, hard_up) = self.success
        (sent, reply), (sent_up, reply_up) = self.prices
        return (
            f"success easy/hard: local {easy}/{hard}, frontier {easy_up}/{hard_up}; "
            f"ease of a prompt N(0, {self.spread}) in log-odds; {self.flipped:.0%} of labels wrong;\n"
            f"{self.shown:.0%} of wrong replies show themselves; "
            f"US$ per million tokens in/out: local {sent}/{reply}, frontier {sent_up}/{reply_up};\n"
            f"{self.sent:.0f} tokens of instructions and the prompt (4 bytes a token) in, "
            f"{self.replies[0]:.0f}/{self.replies[1]:.0f} out (gamma, shape 4); {self.worlds} draws of each prompt"
        )


@dataclass(frozen=True)
class Table:
    """Of each call (every prompt in every world): whose prompt it is, and by tier chance, success and price.

    Attributes
    ----------
    owner : array of int, [calls]
        The number of the prompt.
    chance, cost, mean_cost : arrays, [2, calls]
        Of a right reply; US dollars as drawn, and as known beforehand.
    success : array of bool, [2, calls]
    shown : array of float, [2, calls]
        A wrong reply shows itself where this is below `Law.shown`.
    """

    owner: NDArray[np.int64]
    chance: Numbers
    cost: Numbers
    mean_cost: Numbers
    success: Flags
    shown: Numbers


def drawn(prompts: Sequence[Prompt], law: Law, seed: int) -> Table:
    """Return the table that law and seed give."""
    rng = np.random.default_rng(seed)
    shape = (len(prompts), law.worlds)
    hard = hardness(prompts)[:, None] ^ (rng.random(shape) < law.flipped)
    ease = rng.normal(scale=law.spread, size=shape)
    base = np.where(hard, np.array(law.success)[:, 1, None, None], np.array(law.success)[:, 0, None, None])
    chance = 1.0 / (1.0 + (1.0 / base - 1.0) * np.exp(-ease))
    sizes = np.array([len(prompt.text.encode()) / BYTES_OF_A_TOKEN for prompt in prompts])[:, None] + law.sent
    reply = np.where(hard, law.replies[1], law.replies[0])
    prices = np.array(law.prices)[:, :, None, None] / 1e6
    cost = prices[:, 0] * sizes + prices[:, 1] * reply * rng.gamma(4.0, 0.25, size=(2, *shape))
    success = rng.random((2, *shape)) < chance
    owner = np.repeat(np.arange(len(prompts)), law.worlds)
    mean_cost = prices[:, 0] * sizes + prices[:, 1] * reply
    return Table(
        owner,
        _flat(chance),
        _flat(cost),
        _flat(mean_cost),
        success.reshape(2, -1),
        _flat(rng.random((2, *shape))),
    )


def _flat(values: Numbers) -> Numbers:
    return np.ascontiguousarray(values.reshape(2, -1))
