"""How accepted factors are weighed: equally, by ridge regression, or adapted to the recent past and to the market's state.

Each combiner gives the weight of each factor at the close of each day, from the same small record (`moments.py`). The weights
of day t rest only on labels that had ended by t, of days from which it may learn.

**Adaptive weights** are a Bayesian average over learners that differ in memory, in restraint and in the market's state. Each
learner is a regression of label ranks on factor ranks, shrunk towards something plainer: the long one, over all days known so
far, towards equal weights; those with a shorter memory towards the long one; those that listen to the market's state, with
past days weighed by their likeness to today, towards the learner of the same memory that does not. So with little evidence
all weights are equal, and each step away must be supported by evidence.

Learners are averaged by prior times likelihood of their walk-forward predictions (dynamic model averaging: Raftery, Karny and
Ettler 2010, Technometrics 52, 52-66, without forgetting). No learner is picked, and nothing is tuned on the days that are
reported. The likelihood of a day is divided by the label's length, because labels overlap, and by how much more daily RankICs
scatter than the number of names explains, because factors share risks. On real markets this ratio is 3 to 8.

A weight below zero becomes zero: an accepted factor is left out, and never held against the direction that was proven.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from .moments import RankMoments, last_known_rows

Series = NDArray[np.float64]
Flags = NDArray[np.bool_]
CombinerKind = Literal["equal", "ridge", "adaptive"]

COMBINER_KINDS: tuple[CombinerKind, ...] = ("equal", "ridge", "adaptive")
MIN_KNOWN_DAYS = 60
"""Known days before which nothing is learnt: weights are equal."""
STRENGTHS = (5.0, 20.0, 80.0, 320.0, 1280.0)
"""Candidates for the strength of ridge, in days of evidence."""
Sums = tuple[Series, Series]

LEARNING_STEP_DAYS = 5
"""Weights are learnt anew every so many days and held between: evidence of a week changes little, and trading costs."""
EQUAL_PRIOR, LONG_PRIOR, RECENT_PRIOR, STATE_PRIOR = 0.25, 0.25, 0.25, 0.25
"""Prior shares of the four kinds of learners."""
STATE_BANDWIDTH = 0.2
"""Distance of two days, in the share of days by which states are told, at which the one counts for 0.6 of the other."""
PRIOR_DAYS = 60
"""Days that are taken to have shown daily RankICs no wilder than the names make them."""


class Combiner(Protocol):
    """Weighs factors. Frozen, without memory: equal moments, equal weights."""

    @property
    def name(self) -> CombinerKind:
        """Return what settings call it."""
        ...

    def weights(self, moments: RankMoments, allowed: Flags, states: Series | None = None) -> Series:
        """Return the weight of each factor at the close of each day, ``[T, K]``, absolute ones adding up to 1.

        Parameters
        ----------
        moments
            Of the factors, turned so that more is better.
        allowed
            ``[T]``: days whose labels may be learnt from. Weights of later days rest on what was learnt by then.
        states
            ``[S, T]`` as of `market_state.market_states`; None learns nothing of the market's state.
        """
        ...


@dataclass(frozen=True)
class Equal:
    """All factors weigh the same."""

    name: CombinerKind = "equal"

    def weights(self, moments: RankMoments, allowed: Flags, states: Series | None = None) -> Series:
        """Return equal weights."""
        return equal_weights(moments)


@dataclass(frozen=True)
class Ridge:
    """Ridge regression of label ranks on factor ranks, over all days known so far.

    Attributes
    ----------
    horizon
        Days of the label.
    strengths
        Candidates, each in days: that of the smallest squared error in walk-forward so far is taken, every day anew. The
        error of a day counts once its label has ended, so the walk is purged by `horizon` + 1 days.
    """

    horizon: int
    strengths: tuple[float, ...] = STRENGTHS
    name: CombinerKind = "ridge"

    def weights(self, moments: RankMoments, allowed: Flags, states: Series | None = None) -> Series:
        """Return the weights of the strength that did best so far."""
        last = last_known_rows(allowed, self.horizon)
        gram, covariance = expanding_sums(moments, allowed, last)
        tried = [_ridge(gram, covariance, each) for each in self.strengths]
        losses = np.stack([moments.loss(each) for each in tried])
        so_far = np.cumsum(np.where(allowed, losses * moments.names, 0.0), axis=1)
        best = np.argmin(np.where(last >= 0, so_far[:, last], 0.0), axis=0)
        found = np.stack(tried)[best, np.arange(moments.days)]
        return _scale_weights(found, moments, allowed, last)


def build_combiner(kind: CombinerKind, horizon: int) -> Combiner:
    """Return a combiner by its name, for labels of `horizon` days."""
    built: dict[CombinerKind, Combiner] = {"equal": Equal(), "ridge": Ridge(horizon), "adaptive": Adaptive(horizon)}
    return built[kind]


def equal_weights(moments: RankMoments) -> Series:
    """Return equal weights for every day, ``[T, K]``."""
    return np.full((moments.days, moments.factors), 1.0 / moments.factors)


def expanding_sums(moments: RankMoments, allowed: Flags, last: NDArray[np.int64]) -> tuple[Series, Series]:
    """Return sums of gram and covariance over all days known by each day, ``[T, K, K]`` and ``[T, K]``."""
    use = (allowed & (moments.names > 0)).astype(np.float64)
    gram = np.cumsum(moments.gram * use[:, None, None], axis=0)[last]
    covariance = np.cumsum(moments.covariance * use[:, None], axis=0)[last]
    none = last < 0
    gram[none], covariance[none] = 0.0, 0.0
    return gram, covariance


def _ridge(gram: Series, covariance: Series, strength: float) -> Series:
    held = gram + strength * np.eye(gram.shape[1])
    return np.asarray(np.linalg.solve(held, covariance[..., None])[..., 0], dtype=np.float64)


def _scale_weights(weights: Series, moments: RankMoments, allowed: Flags, last: NDArray[np.int64]) -> Series:
    """Scale weights to an absolute sum of 1; equal where too little is known, or where all are 0."""
    known = np.cumsum(allowed & (moments.names > 0))
    total = np.abs(weights).sum(axis=1)
    usable = (last >= 0) & (known[last] >= MIN_KNOWN_DAYS) & (total > 0)
    return np.where(usable[:, None], weights / np.where(usable, total, 1.0)[:, None], equal_weights(moments))


@dataclass(frozen=True, eq=False)
class _Learner:
    """Weights of one learner at each day of learning, ``[U, K]``, with its prior share."""

    prior: float
    weights: Series


@dataclass(frozen=True)
class Adaptive:
    """Regime-adaptive weights, shrunk to equal.

    Attributes
    ----------
    horizon
        Days of the label.
    memories
        Half-lives of what is recent, in known days.
    restraints
        How strongly a learner is held to the plainer one, in days of evidence.
    """

    horizon: int
    memories: tuple[float, ...] = (504.0, 252.0, 126.0)
    restraints: tuple[float, ...] = (30.0, 120.0, 500.0)
    name: CombinerKind = "adaptive"

    def weights(self, moments: RankMoments, allowed: Flags, states: Series | None = None) -> Series:
        """Return the mixture's weights; see `combiners.Combiner`."""
        school = _TrainingDays(moments, allowed, last_known_rows(allowed, self.horizon), states)
        learners = [_Learner(one.prior, np.maximum(one.weights, 0.0)) for one in self._learners(school)]
        daily = np.stack([school.each_day(one.weights) for one in learners])
        share = school.shares(daily, np.array([one.prior for one in learners]), self.horizon)
        mixed: Series = np.einsum("et,etk->tk", share[:, school.days], daily[:, school.days])
        total = mixed.sum(axis=1, keepdims=True)
        usable = school.taught[:, None] & (total > 0)
        return school.each_day(np.where(usable, mixed / np.where(usable, total, 1.0), 1.0 / moments.factors))

    def _learners(self, school: _TrainingDays) -> Iterator[_Learner]:
        equal = school.scaled_evenly()
        yield _Learner(EQUAL_PRIOR, equal)
        all_days = school.sums(None)
        plain = {each: _shrink_weights(all_days, each, equal) for each in self.restraints}
        for found in plain.values():
            yield _Learner(LONG_PRIOR / len(plain), found)
        middle = self.restraints[len(self.restraints) // 2]
        yield from self._recent(school, plain[middle])
        if school.states is not None:
            yield from self._state_learners(school, plain[middle])

    def _recent(self, school: _TrainingDays, long: Series) -> Iterator[_Learner]:
        share = RECENT_PRIOR / len(self.memories) / len(self.restraints)
        for memory in self.memories:
            sums = school.sums(memory)
            for restraint in self.restraints:
                yield _Learner(share, _shrink_weights(sums, restraint, long))

    def _state_learners(self, school: _TrainingDays, long: Series) -> Iterator[_Learner]:
        """Yield learners by one state each, over all days and over recent ones."""
        assert school.states is not None
        few, middle = self.restraints[0], self.restraints[len(self.restraints) // 2]
        slow = self.memories[0]
        plainer = {None: long, slow: _shrink_weights(school.sums(slow), middle, long)}
        share = STATE_PRIOR / len(school.states) / 4
        for state in school.states:
            for memory, base in plainer.items():
                sums = school.sums(memory, state)
                for restraint in (few, middle):
                    yield _Learner(share, _shrink_weights(sums, restraint, base))


@dataclass(frozen=True, eq=False)
class _TrainingDays:
    """What is taught on each day of learning: every `LEARNING_STEP_DAYS`-th day, from what is known by then."""

    moments: RankMoments
    allowed: Flags
    last: NDArray[np.int64]
    states: Series | None

    @property
    def days(self) -> NDArray[np.int64]:
        """Return the days of learning, ``[U]``."""
        return np.arange(0, self.moments.days, LEARNING_STEP_DAYS)

    @property
    def use(self) -> Flags:
        """Tell which days teach."""
        return self.allowed & (self.moments.names > 0)

    @property
    def taught(self) -> Flags:
        """Tell on which days of learning enough is known, ``[U]``."""
        known = np.cumsum(self.use)
        last = self.last[self.days]
        return (last >= 0) & (known[last] >= MIN_KNOWN_DAYS)

    def each_day(self, weights: Series) -> Series:
        """Hold each day of learning's weights until the next, ``[T, K]``."""
        return np.repeat(weights, LEARNING_STEP_DAYS, axis=0)[: self.moments.days]

    def sums(self, memory: float | None, state: Series | None = None) -> Sums:
        """Return gram and covariance added up over known days, ``[U, K, K]`` and ``[U, K]``.

        A day weighs half for each `memory` of days that teach after it, and less the less its state is like today's. Age
        is counted from the last day known, so where nothing more may be learnt nothing is forgotten.
        """
        order = np.cumsum(self.use)
        days, rows = self.days, np.flatnonzero(self.use)
        last = self.last[days]
        weigh = (rows <= last[:, None]).astype(np.float64)
        if memory is not None:
            age = np.where(last >= 0, order[last], 0)[:, None] - order[rows]
            weigh *= 0.5 ** (np.maximum(age, 0) / memory)
        if state is not None:
            weigh *= np.exp(-0.5 * ((state[days][:, None] - state[rows]) / STATE_BANDWIDTH) ** 2)
        size = self.moments.factors
        gram = weigh @ self.moments.gram[rows].reshape(len(rows), size * size)
        return gram.reshape(len(days), size, size), weigh @ self.moments.covariance[rows]

    def scaled_evenly(self) -> Series:
        """Return equal weights in the unit of the regression: the slope of labels on the factors' sum, not below 0."""
        gram, covariance = self.sums(None)
        slope = np.maximum(covariance.sum(axis=1), 0.0) / np.maximum(gram.sum(axis=(1, 2)), 1e-12)
        found: Series = slope[:, None] * np.ones(self.moments.factors)
        return found

    def shares(self, daily: Series, prior: Series, horizon: int) -> Series:
        """Return how much each learner is believed each day, ``[E, T]``, adding up to 1."""
        moments, use = self.moments, self.use
        wild = moments.names * (moments.covariance**2).mean(axis=1)
        seen = np.cumsum(use) + PRIOR_DAYS
        wilder = np.maximum((np.cumsum(np.where(use, wild, 0.0)) + PRIOR_DAYS) / seen, 1.0)
        gain = np.stack([np.where(use, -0.5 * moments.names * moments.loss(each), 0.0) for each in daily])
        past = np.cumsum(gain, axis=1) / wilder / horizon
        told = np.log(prior)[:, None] + np.where(self.last >= 0, past[:, self.last], 0.0)
        share = np.exp(told - told.max(axis=0))
        found: Series = share / share.sum(axis=0)
        return found


def _shrink_weights(sums: Sums, restraint: float, towards: Series) -> Series:
    """Return the least-squares weights that are held to others by so many days of evidence."""
    gram, covariance = sums
    held = gram + restraint * np.eye(gram.shape[1])
    found: Series = np.asarray(np.linalg.solve(held, (covariance + restraint * towards)[..., None])[..., 0], np.float64)
    return found
