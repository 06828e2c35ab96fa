"""Combiners weigh accepted factors: equally, by ridge regression, or adapted to the recent past and the market's state.

Each combiner computes the weight of each factor at the close of each day from the same second moments (`moments.py`).
The weights of day t rest only on labels that had ended by t, of days from which it may learn.

**Adaptive weights** are a Bayesian average over learners that differ in memory, in restraint and in the market's state.
Each learner is a regression of label ranks on factor ranks, shrunk towards a simpler one. The long learner, over all
days known so far, is shrunk towards equal weights. Learners with a shorter memory are shrunk towards the long one.
Learners with a market state, which weight past days by their likeness to today, are shrunk towards the learner of the
same memory without it. With little evidence all weights are therefore equal, and each step away needs evidence.

Learners are averaged by prior times likelihood of their walk-forward predictions (dynamic model averaging: Raftery,
Karny and Ettler 2010, Technometrics 52, 52-66, without forgetting). No learner is selected, and nothing is tuned on the
days that are reported. The likelihood of a day is divided by the label's length, because labels overlap, and by the
ratio of the scatter of daily RankICs to that which the number of names explains, because factors share risks. On real
markets this ratio is 3 to 8.

A weight below zero becomes zero: an accepted factor may be left out, but is never held against its proven direction.
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
"""Fewest known days; with fewer, weights are equal."""
STRENGTHS = (5.0, 20.0, 80.0, 320.0, 1280.0)
"""Candidates for the strength of the ridge, in days of evidence."""
Sums = tuple[Series, Series]

LEARNING_STEP_DAYS = 5
"""Weights are learnt every so many days and kept in between: a week changes little evidence, and trading costs."""
EQUAL_PRIOR, LONG_PRIOR, RECENT_PRIOR, STATE_PRIOR = 0.25, 0.25, 0.25, 0.25
"""Prior shares of the four kinds of learners."""
STATE_BANDWIDTH = 0.2
"""Difference of two days' states (shares of days, see `market_states`) at which a past day has weight 0.6."""
PRIOR_DAYS = 60
"""Prior for the scatter of daily RankICs: so many days at the scatter that the number of names explains."""


class Combiner(Protocol):
    """Weighs factors; frozen and without state, so equal moments give equal weights."""

    @property
    def name(self) -> CombinerKind:
        """Return its name in the settings."""
        ...

    def weights(self, moments: RankMoments, allowed: Flags, states: Series | None = None) -> Series:
        """Return the weight of each factor at the close of each day, ``[T, K]``; absolute weights sum to 1.

        Parameters
        ----------
        moments
            Second moments of the factors, each in its held direction.
        allowed
            ``[T]``: days whose labels may be learnt from. Weights of later days rest on what was learnt by then.
        states
            ``[S, T]`` from `combination.market_states`; None uses no state.
        """
        ...


@dataclass(frozen=True)
class Equal:
    """Equal weights."""

    name: CombinerKind = "equal"

    def weights(self, moments: RankMoments, allowed: Flags, states: Series | None = None) -> Series:
        """Return equal weights, ``[T, K]``."""
        return equal_weights(moments)


@dataclass(frozen=True)
class Ridge:
    """Ridge regression of label ranks on factor ranks, over all days known so far.

    Attributes
    ----------
    horizon
        Days of the label.
    strengths
        Candidates, in days of evidence: each day takes the one with the smallest squared walk-forward error so far. The
        error of a day counts once its label has ended, so the walk is purged by `horizon` + 1 days.
    """

    horizon: int
    strengths: tuple[float, ...] = STRENGTHS
    name: CombinerKind = "ridge"

    def weights(self, moments: RankMoments, allowed: Flags, states: Series | None = None) -> Series:
        """Return the weights of the best strength so far, ``[T, K]``."""
        last = last_known_rows(allowed, self.horizon)
        gram, covariance = expanding_sums(moments, allowed, last)
        candidates = [_solve_ridge(gram, covariance, strength) for strength in self.strengths]
        losses = np.stack([moments.loss(weights) for weights in candidates])
        so_far = np.cumsum(np.where(allowed, losses * moments.names, 0.0), axis=1)
        best = np.argmin(np.where(last >= 0, so_far[:, last], 0.0), axis=0)
        chosen = np.stack(candidates)[best, np.arange(moments.days)]
        return _scale_weights(chosen, moments, allowed, last)


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
    is_empty = last < 0
    gram[is_empty], covariance[is_empty] = 0.0, 0.0
    return gram, covariance


def _solve_ridge(gram: Series, covariance: Series, strength: float) -> Series:
    regularised = gram + strength * np.eye(gram.shape[1])
    return np.asarray(np.linalg.solve(regularised, covariance[..., None])[..., 0], dtype=np.float64)


def _scale_weights(weights: Series, moments: RankMoments, allowed: Flags, last: NDArray[np.int64]) -> Series:
    """Scale weights to an absolute sum of 1; equal with too few known days, or where all are 0."""
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
        Half-lives of the learners with a shorter memory, in known days.
    restraints
        Strengths of the shrinkage of a learner to the simpler one, in days of evidence.
    """

    horizon: int
    memories: tuple[float, ...] = (504.0, 252.0, 126.0)
    restraints: tuple[float, ...] = (30.0, 120.0, 500.0)
    name: CombinerKind = "adaptive"

    def weights(self, moments: RankMoments, allowed: Flags, states: Series | None = None) -> Series:
        """Return the weights of the mixture, ``[T, K]``; see `Combiner`."""
        training = _TrainingDays(moments, allowed, last_known_rows(allowed, self.horizon), states)
        learners = [
            _Learner(learner.prior, np.maximum(learner.weights, 0.0)) for learner in self._build_learners(training)
        ]
        daily = np.stack([training.repeat_daily(learner.weights) for learner in learners])
        share = training.posterior_shares(daily, np.array([learner.prior for learner in learners]), self.horizon)
        mixed: Series = np.einsum("et,etk->tk", share[:, training.days], daily[:, training.days])
        total = mixed.sum(axis=1, keepdims=True)
        usable = training.has_enough_days[:, None] & (total > 0)
        return training.repeat_daily(np.where(usable, mixed / np.where(usable, total, 1.0), 1.0 / moments.factors))

    def _build_learners(self, training: _TrainingDays) -> Iterator[_Learner]:
        equal = training.scale_evenly()
        yield _Learner(EQUAL_PRIOR, equal)
        all_days = training.sums(None)
        plain = {restraint: _shrink_weights(all_days, restraint, equal) for restraint in self.restraints}
        for weights in plain.values():
            yield _Learner(LONG_PRIOR / len(plain), weights)
        middle = self.restraints[len(self.restraints) // 2]
        yield from self._build_recent_learners(training, plain[middle])
        if training.states is not None:
            yield from self._build_state_learners(training, plain[middle])

    def _build_recent_learners(self, training: _TrainingDays, long: Series) -> Iterator[_Learner]:
        share = RECENT_PRIOR / len(self.memories) / len(self.restraints)
        for memory in self.memories:
            sums = training.sums(memory)
            for restraint in self.restraints:
                yield _Learner(share, _shrink_weights(sums, restraint, long))

    def _build_state_learners(self, training: _TrainingDays, long: Series) -> Iterator[_Learner]:
        """Yield learners with one state each, over all days and over recent days."""
        assert training.states is not None
        few, middle = self.restraints[0], self.restraints[len(self.restraints) // 2]
        slow = self.memories[0]
        plainer = {None: long, slow: _shrink_weights(training.sums(slow), middle, long)}
        share = STATE_PRIOR / len(training.states) / 4
        for state in training.states:
            for memory, base in plainer.items():
                sums = training.sums(memory, state)
                for restraint in (few, middle):
                    yield _Learner(share, _shrink_weights(sums, restraint, base))


@dataclass(frozen=True, eq=False)
class _TrainingDays:
    """The training data of each learning day: every `LEARNING_STEP_DAYS`-th day, from labels that ended by then."""

    moments: RankMoments
    allowed: Flags
    last: NDArray[np.int64]
    states: Series | None

    @property
    def days(self) -> NDArray[np.int64]:
        """Return the learning days, ``[U]``."""
        return np.arange(0, self.moments.days, LEARNING_STEP_DAYS)

    @property
    def use(self) -> Flags:
        """Return which days have labels that may be learnt from, ``[T]``."""
        return self.allowed & (self.moments.names > 0)

    @property
    def has_enough_days(self) -> Flags:
        """Return on which learning days enough days are known, ``[U]``."""
        known = np.cumsum(self.use)
        last = self.last[self.days]
        return (last >= 0) & (known[last] >= MIN_KNOWN_DAYS)

    def repeat_daily(self, weights: Series) -> Series:
        """Return weights ``[T, K]`` from those of learning days, each kept until the next."""
        return np.repeat(weights, LEARNING_STEP_DAYS, axis=0)[: self.moments.days]

    def sums(self, memory: float | None, state: Series | None = None) -> Sums:
        """Return weighted sums of gram and covariance over known days, ``[U, K, K]`` and ``[U, K]``.

        The weight of a day halves with every `memory` later learnable days, and falls with the difference of its state
        from today's. Age is counted from the last known day, so nothing is forgotten while nothing more may be learnt.
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

    def scale_evenly(self) -> Series:
        """Return equal weights in the unit of the regression: the slope of labels on the factors' sum, at least 0."""
        gram, covariance = self.sums(None)
        slope = np.maximum(covariance.sum(axis=1), 0.0) / np.maximum(gram.sum(axis=(1, 2)), 1e-12)
        weights: Series = slope[:, None] * np.ones(self.moments.factors)
        return weights

    def posterior_shares(self, daily: Series, prior: Series, horizon: int) -> Series:
        """Return the posterior share of each learner on each day, ``[E, T]``, with sum 1."""
        moments, use = self.moments, self.use
        scatter = moments.names * (moments.covariance**2).mean(axis=1)
        counted_days = np.cumsum(use) + PRIOR_DAYS
        scatter_ratio = np.maximum((np.cumsum(np.where(use, scatter, 0.0)) + PRIOR_DAYS) / counted_days, 1.0)
        gain = np.stack([np.where(use, -0.5 * moments.names * moments.loss(weights), 0.0) for weights in daily])
        past = np.cumsum(gain, axis=1) / scatter_ratio / horizon
        log_posterior = np.log(prior)[:, None] + np.where(self.last >= 0, past[:, self.last], 0.0)
        share = np.exp(log_posterior - log_posterior.max(axis=0))
        shares: Series = share / share.sum(axis=0)
        return shares


def _shrink_weights(sums: Sums, restraint: float, towards: Series) -> Series:
    """Return least-squares weights, shrunk towards others with a strength in days of evidence."""
    gram, covariance = sums
    regularised = gram + restraint * np.eye(gram.shape[1])
    weights: Series = np.asarray(
        np.linalg.solve(regularised, (covariance + restraint * towards)[..., None])[..., 0], np.float64
    )
    return weights
