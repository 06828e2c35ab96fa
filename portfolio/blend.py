"""Combine factors into one score, with weights learnt from labels that have ended.

Callers with arrays and without a campaign use `blend_values(values, labels, allowed)`.
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
        Scores ``[T, N]`` in [-0.5, 0.5], NaN where no factor has a value.
    weights
        ``[T, K]``: weights at the close of each day of the factors times `signs`.
    signs
        ``[K]``: direction of each factor, 1 or -1.
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
        K frames ``[T, N]``, or an array ``[K, T, N]``: values or ranks known at the close of each day, NaN missing, in
        either direction. Each is multiplied by the sign of its mean RankIC over the allowed days.
    labels
        ``[T, N]``: returns to predict, over `horizon` days from the next open; NaN where there is none.
    allowed
        ``[T]``: days whose labels may be learnt from; other labels are not read. After the last of them, weights change
        only with the market's state.
    kind
        ``equal``, ``ridge`` or ``adaptive``.
    horizon
        Days of the label: the label of day s is first used at the close of day s + 1 + `horizon`.
    states
        ``[S, T]`` from `combination.market_states`, known at the close of each day; None uses no state.
    """
    ranks = [standard_ranks(frame) for frame in values]
    moments = measure_moments(ranks, np.where(allowed[:, None], labels, np.nan))
    return blend_ranks(ranks, moments, allowed, build_combiner(kind, horizon), states=states).score


def blend_ranks(
    ranks: Sequence[Frame],
    moments: RankMoments,
    allowed: Flags,
    how: Combiner,
    *,
    states: Series | None = None,
    signs: NDArray[np.int64] | None = None,
) -> Blend:
    """Return factors weighed by a combiner.

    Parameters
    ----------
    ranks
        K frames ``[T, N]`` from `standard_ranks`, of the factors as written.
    moments
        Second moments of the factors as written.
    allowed
        ``[T]``: days whose labels may be learnt from.
    how
        The combiner.
    states
        ``[S, T]`` from `combination.market_states`; None uses no state.
    signs
        ``[K]``: direction of each factor; None takes the sign of its mean RankIC over the allowed days.
    """
    turn = moments.signs(allowed) if signs is None else signs
    weights = how.weights(moments.turned(turn), allowed, states)
    return Blend(weigh_ranks(ranks, weights * turn), weights, turn)


def weigh_ranks(ranks: Sequence[Frame], weights: Series) -> Frame:
    """Return the weighted sum of standard ranks, ``[T, N]`` in [-0.5, 0.5].

    Notes
    -----
    Absolute weights add up to 1 on each day. A missing value counts as the middle rank, as it did when the weights were
    learnt, so the score of a name with values of few factors is small.
    """
    total = np.zeros(ranks[0].shape)
    has_value = np.zeros(ranks[0].shape, dtype=np.bool_)
    for place, frame in enumerate(ranks):
        is_present = ~np.isnan(frame)
        total += np.where(is_present, frame, 0.0) * weights[:, place, None]
        has_value |= is_present
    return np.where(has_value, total / RANK_SCALE, np.nan).astype(np.float32)
