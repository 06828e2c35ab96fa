"""Choose the few factors that explain the RankICs of many scored ones.

This is a sparse choice from a dictionary of correlated entries: orthogonal matching pursuit (Pati, Rezaiifar and
Krishnaprasad 1993), where after each step every choice may be exchanged for a better one. The greedy choice alone takes
a blend of two alphas first, since a blend scores above either, and never drops it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Frame = NDArray[np.float64]

NODE_SQUARED_T = 2.0 * float(np.log(32.0))
"""Price of a node in squared t: the best of 32^k formulas of k nodes has about this much per node by chance."""
FREE_NODES = 2
MIN_ADDED_SQUARED_T = 8.0
"""Least squared t, less the price of its nodes, that a further choice must add."""
MIN_EXCHANGE_SQUARED_T = 1.0
"""Least gain in squared t of an exchange."""
MAX_LEADER_CORRELATION = 0.6
"""Absolute rank correlation at which two factors are not both chosen."""
MIN_SHARE_LEFT = 0.3
"""Least share of a factor's ranks that the other choices leave unexplained."""
OWN_SHARE = 0.5
"""Least t of a factor alone, as a share of its contribution: a factor without t of its own is a difference of
others."""
NOISE_VARIANCE_SHARE = 0.03
"""Share of a factor's variance that is error of the subsample; with it, noise does not separate near-copies."""
MAX_EXCHANGE_PASSES = 6


@dataclass(frozen=True)
class Dictionary:
    """The factors to choose from.

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
        """Return the contribution of each factor beside those taken, ``[K]``; see `marginal_contribution`."""
        return marginal_contribution(self.t, self.alike, self, taken)[0] if taken else self.t

    def worth(self, taken: Sequence[int]) -> Frame:
        """Return the squared contributions less the price of nodes, ``[K]``; -1 where too correlated with one taken."""
        gains = self.beside(taken) ** 2 - NODE_SQUARED_T * np.maximum(self.size - FREE_NODES, 0)
        if taken:
            gains[np.abs(self.alike[:, taken]).max(axis=1) >= MAX_LEADER_CORRELATION] = -1.0
        return np.round(gains, 6)  # equal ranks are a tie on every machine


def marginal_contribution(t: Frame, across: Frame, dictionary: Dictionary, taken: Sequence[int]) -> tuple[Frame, Frame]:
    """Return the contributions of factors beside some that are taken, and the shares of their ranks that are left.

    Parameters
    ----------
    t : NDArray[np.float64]
        ``[M]``: mean RankIC of the factors, in any unit.
    across : NDArray[np.float64]
        ``[M, K]``: their rank correlations with those of the dictionary.
    dictionary : Dictionary
        The factors to choose from, with t in the same unit.
    taken : sequence of int
        Places in the dictionary, at least one.

    Returns
    -------
    tuple
        Contributions ``[M]`` in the unit of `t`, 0 where those taken explain the factor or it has too little alone; and
        unexplained shares of ranks ``[M]``.
    """
    covariance = dictionary.alike[np.ix_(taken, taken)] + NOISE_VARIANCE_SHARE * np.eye(len(taken))
    correlations = across[:, taken]
    solved = np.linalg.solve(covariance, np.column_stack([dictionary.t[taken], correlations.T]))
    share = 1.0 - np.einsum("ij,ji->i", correlations, solved[:, 1:])
    contribution = (t - correlations @ solved[:, 0]) / np.sqrt(np.maximum(share, MIN_SHARE_LEFT))
    counts = (share >= MIN_SHARE_LEFT) & (contribution * t > 0) & (np.abs(t) >= OWN_SHARE * np.abs(contribution))
    return np.where(counts, contribution, 0.0), share


def choose_leaders(dictionary: Dictionary, limit: int) -> dict[int, float]:
    """Return at most `limit` chosen places, each with its contribution beside the others, in t."""
    chosen: list[int] = []
    while len(chosen) < limit:
        worth = dictionary.worth(chosen)
        best = int(worth.argmax())
        if worth[best] < MIN_ADDED_SQUARED_T:
            break
        chosen.append(best)
        _exchange(dictionary, chosen)
    chosen = _drop_redundant(dictionary, chosen)
    others = {place: [other for other in chosen if other != place] for place in chosen}
    return {place: float(dictionary.beside(rest)[place]) for place, rest in others.items()}


def _drop_redundant(dictionary: Dictionary, chosen: list[int]) -> list[int]:
    """Return the choices without those that contribute nothing beside the others; the smallest are removed first."""
    while chosen:
        adds = [abs(float(dictionary.beside([other for other in chosen if other != place])[place])) for place in chosen]
        if min(adds) > 0:
            break
        chosen = [place for index, place in enumerate(chosen) if index != adds.index(min(adds))]
    return chosen


def _exchange(dictionary: Dictionary, chosen: list[int]) -> None:
    """Exchange choices for better ones until none is better."""
    for _ in range(MAX_EXCHANGE_PASSES):
        before = list(chosen)
        for index, place in enumerate(before):
            worth = dictionary.worth([other for other in chosen if other != place])
            best = int(worth.argmax())
            if worth[best] > worth[place] + MIN_EXCHANGE_SQUARED_T:
                chosen[index] = best
        if chosen == before:
            return
