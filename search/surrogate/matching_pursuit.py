"""Choose the few factors that between them say what many scored ones say.

A sparse choice from a dictionary whose entries are much alike: orthogonal matching pursuit (Pati, Rezaiifar and
Krishnaprasad 1993), where every choice may be taken back in favour of a better one after each step. The greedy choice
alone takes a blend of two alphas first, since a blend scores above either, and never lets go of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Frame = NDArray[np.float64]

NODE_SQUARED_T = 2.0 * float(np.log(32.0))
"""Squared t that one node of a formula must be worth: the best of the 32^k formulas of k nodes has about that by chance."""
FREE_NODES = 2
MIN_ADDED_SQUARED_T = 8.0
"""Squared t, less the price of its nodes, that one more choice must add."""
MIN_EXCHANGE_SQUARED_T = 1.0
"""Squared t by which one must be better to take another's place."""
MAX_LEADER_CORRELATION = 0.6
"""Absolute rank correlation from which two factors are not both chosen."""
MIN_SHARE_LEFT = 0.3
"""Share of a factor's ranks that the other choices must leave."""
OWN_SHARE = 0.5
"""Share of what a factor adds that it must show alone: one that is nothing without others is their difference."""
NOISE_VARIANCE_SHARE = 0.03
"""Share of a factor's variance that thin looks get wrong; it keeps near-copies from being told apart by noise."""
MAX_EXCHANGE_PASSES = 6


@dataclass(frozen=True)
class Dictionary:
    """What is chosen from.

    Attributes
    ----------
    t : NDArray[np.float64]
        ``[K]``: mean RankIC in units of its standard error, the same unit for all.
    size : NDArray
        ``[K]``: nodes of each formula.
    alike : NDArray[np.float64]
        ``[K, K]``: rank correlations.
    """

    t: Frame
    size: NDArray[np.int64]
    alike: Frame

    def beside(self, taken: Sequence[int]) -> Frame:
        """Return what each factor adds to those taken, ``[K]``; see `marginal_contribution`."""
        return marginal_contribution(self.t, self.alike, self, taken)[0] if taken else self.t

    def worth(self, taken: Sequence[int]) -> Frame:
        """Return the squared t that each adds less the price of its nodes, ``[K]``; -1 where it is too like one taken."""
        gains = self.beside(taken) ** 2 - NODE_SQUARED_T * np.maximum(self.size - FREE_NODES, 0)
        if taken:
            gains[np.abs(self.alike[:, taken]).max(axis=1) >= MAX_LEADER_CORRELATION] = -1.0
        return np.round(gains, 6)  # equal ranks are a tie on every machine


def marginal_contribution(t: Frame, across: Frame, dictionary: Dictionary, taken: Sequence[int]) -> tuple[Frame, Frame]:
    """Return what factors add to some that are taken, ``[M]``, and the share of their ranks that those leave, ``[M]``.

    What they add is in the unit of `t`, and 0 where those explain it, or where it is nothing alone.

    Parameters
    ----------
    t : NDArray[np.float64]
        ``[M]``: of the factors, in any unit.
    across : NDArray[np.float64]
        ``[M, K]``: their rank correlations with the dictionary's.
    dictionary : Dictionary
        Its t are in the same unit.
    taken : sequence of int
        Places in the dictionary, one at least.
    """
    own = dictionary.alike[np.ix_(taken, taken)] + NOISE_VARIANCE_SHARE * np.eye(len(taken))
    shown = across[:, taken]
    solved = np.linalg.solve(own, np.column_stack([dictionary.t[taken], shown.T]))
    share = 1.0 - np.einsum("ij,ji->i", shown, solved[:, 1:])
    left = (t - shown @ solved[:, 0]) / np.sqrt(np.maximum(share, MIN_SHARE_LEFT))
    stands = (share >= MIN_SHARE_LEFT) & (left * t > 0) & (np.abs(t) >= OWN_SHARE * np.abs(left))
    return np.where(stands, left, 0.0), share


def choose_leaders(dictionary: Dictionary, limit: int) -> dict[int, float]:
    """Return the chosen places with what each adds to the others, in t; at most `limit`."""
    chosen: list[int] = []
    while len(chosen) < limit:
        worth = dictionary.worth(chosen)
        best = int(worth.argmax())
        if worth[best] < MIN_ADDED_SQUARED_T:
            break
        chosen.append(best)
        _exchange(dictionary, chosen)
    chosen = _drop_redundant(dictionary, chosen)
    others = {one: [other for other in chosen if other != one] for one in chosen}
    return {one: float(dictionary.beside(rest)[one]) for one, rest in others.items()}


def _drop_redundant(dictionary: Dictionary, chosen: list[int]) -> list[int]:
    """Return the choices without those that say nothing beside the others, the least worthy first to go."""
    while chosen:
        adds = [abs(float(dictionary.beside([other for other in chosen if other != one])[one])) for one in chosen]
        if min(adds) > 0:
            break
        chosen = [one for place, one in enumerate(chosen) if place != adds.index(min(adds))]
    return chosen


def _exchange(dictionary: Dictionary, chosen: list[int]) -> None:
    """Put a better one in the place of any choice until there is none."""
    for _ in range(MAX_EXCHANGE_PASSES):
        before = list(chosen)
        for place, one in enumerate(before):
            worth = dictionary.worth([other for other in chosen if other != one])
            best = int(worth.argmax())
            if worth[best] > worth[one] + MIN_EXCHANGE_SQUARED_T:
                chosen[place] = best
        if chosen == before:
            return
