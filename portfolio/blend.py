"""Several factors as one score: ranks in, weights learnt from labels that have ended, one frame out.

For callers with arrays and no campaign: `blend_values(values, labels, allowed)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .combiners import Combiner, CombinerKind, build_combiner
from .moments import RANK_SCALE, RankMoments, measure_moments, standard_ranks

Series = NDArray[np.float64]
Frame = NDArray[np.float32]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Blend:
    """A combination of K factors.

    Attributes
    ----------
    score
        ``[T, N]`` in [-0.5, 0.5], NaN where no factor has a value.
    weights
        ``[T, K]``: how the factors, turned by `signs`, were weighed at the close of each day.
    signs
        ``[K]``: 1 or -1.
    """

    score: Frame
    weights: Series
    signs: NDArray[np.int64]


def blend_values(
    values: Sequence[NDArray[np.floating]] | NDArray[np.floating],
    labels: NDArray[np.floating],
    allowed: Flags,
    *,
    kind: CombinerKind = "adaptive",
    horizon: int = 5,
    states: Series | None = None,
) -> Frame:
    """Return K factors combined into one score, ``[T, N]`` in [-0.5, 0.5].

    Parameters
    ----------
    values
        K frames ``[T, N]``, or an array ``[K, T, N]``: values or ranks known at the close of each day, NaN missing, held
        either way. Each is turned by the sign of its mean RankIC over the allowed days.
    labels
        ``[T, N]``: what is foretold, the return of `horizon` days from the next open; NaN where there is none.
    allowed
        ``[T]``: days whose labels may be learnt from; those of all others are not read. On days after the last of them
        the weights stand still but for the market's state.
    kind
        ``equal``, ``ridge`` or ``adaptive``.
    horizon
        Days of the label: the label of day s is first used at the close of day s + 1 + `horizon`.
    states
        ``[S, T]`` as of `market_state.market_states`, known at the close of each day; None listens to no state.
    """
    ranks = [standard_ranks(each) for each in values]
    moments = measure_moments(ranks, np.where(allowed[:, None], labels, np.nan))
    return blend_ranks(ranks, moments, allowed, build_combiner(kind, horizon), states=states).score


def blend_ranks(
    ranks: Sequence[Frame], moments: RankMoments, allowed: Flags, how: Combiner, *, states: Series | None = None,
    signs: NDArray[np.int64] | None = None,
) -> Blend:  # fmt: skip
    """Return factors weighed by a combiner; `ranks` and `moments` are as written, `signs` those of the allowed days if None."""
    turn = moments.signs(allowed) if signs is None else signs
    weights = how.weights(moments.turned(turn), allowed, states)
    return Blend(weigh_ranks(ranks, weights * turn), weights, turn)


def weigh_ranks(ranks: Sequence[Frame], weights: Series) -> Frame:
    """Return the weighted sum of standard ranks, ``[T, N]`` in [-0.5, 0.5].

    Notes
    -----
    Absolute weights add up to 1 on each day. A missing value counts as the middle, as it did when the weights were learnt:
    a name of which one factor in ten speaks is not believed as if all ten did.
    """
    total = np.zeros(ranks[0].shape)
    spoken = np.zeros(ranks[0].shape, dtype=np.bool_)
    for place, each in enumerate(ranks):
        seen = ~np.isnan(each)
        total += np.where(seen, each, 0.0) * weights[:, place, None]
        spoken |= seen
    return np.where(spoken, total / RANK_SCALE, np.nan).astype(np.float32)
