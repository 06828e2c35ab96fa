"""A campaign's candidates on the search days, each held in the direction that its hypothesis claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...evidence import Claim
from ...evidence.multiple_testing import (
    FOLD_GROUPS,
    choose_and_test,
    count_clusters,
    estimate_pbo,
    run_superiority_test,
    split_days,
)
from ...evidence.scoring import round_significant
from ..service import Evaluator
from .search_records import BetClusters, CrossValidationTest, OverfittingTest, SuperiorityTest

MAX_CANDIDATES = 100
"""Most candidates that are compared: the first by id. Ids are hashes, so these are a random sample."""
BLOCKS_PER_HORIZON = 2
"""Mean block of the bootstrap, in horizons: a position is held for one horizon."""
OVERFITTING_BLOCKS = 10
"""Blocks of search days for `estimate_pbo`."""


@dataclass(frozen=True)
class CandidateSet:
    """Single factors whose returns vary on search days, in the order of their ids.

    Neither their selection nor their direction, which their hypotheses claim, depends on their figures on search days.

    Attributes
    ----------
    net
        Daily return after costs of each long-short, `[D, K]`, decimal; NaN where there is none.
    rank_ic
        Daily RankIC in the claimed direction, `[D, K]`; NaN where undefined.
    horizon
        Days from entry to exit.
    scored
        Single factors that the campaign scored, of which these are all or a sample.
    """

    net: NDArray[np.float64]
    rank_ic: NDArray[np.float64]
    horizon: int
    scored: int

    @property
    def count(self) -> int:
        """Return the number of candidates."""
        return int(self.net.shape[1])

    @cached_property
    def effective(self) -> int | None:
        """Return the number of different bets, by clusters of returns; None for fewer than two candidates."""
        return count_clusters(self.net) if self.count >= 2 else None

    def count_clusters(self) -> BetClusters | None:
        """Return the number of different bets with that of candidates; None for fewer than two candidates."""
        if self.effective is None:
            return None
        return BetClusters(clusters=self.effective, candidates=self.count, scored=self.scored)

    def measure_overfitting(self) -> OverfittingTest | None:
        """Return the probability of backtest overfitting; None for fewer than two candidates."""
        if self.count < 2:
            return None
        probability = round_significant(estimate_pbo(self.net, OVERFITTING_BLOCKS).probability)
        return OverfittingTest(
            probability=probability, candidates=self.count, blocks=OVERFITTING_BLOCKS, scored=self.scored
        )

    def measure_superiority(self) -> SuperiorityTest | None:
        """Return Hansen's p-values that the best candidate earns nothing after costs; None without a candidate."""
        if not self.count:
            return None
        test = run_superiority_test(self.net, BLOCKS_PER_HORIZON * self.horizon)
        return SuperiorityTest(
            lower=round_significant(test.lower),
            consistent=round_significant(test.consistent),
            upper=round_significant(test.upper),
            candidates=test.candidates,
            scored=self.scored,
            days=test.days,
            block_days=test.block_days,
            replications=test.replications,
        )

    def cross_validate(self) -> CrossValidationTest | None:
        """Return the out-of-sample result of choosing the best candidate; None for too few candidates or days."""
        purge = embargo = self.horizon
        if self.count < 2 or len(self.net) // FOLD_GROUPS <= purge + embargo:
            return None
        folds = split_days(len(self.net), purge, embargo)
        choice = choose_and_test(self.rank_ic, self.net, folds)
        return CrossValidationTest(
            candidates=self.count,
            scored=self.scored,
            splits=len(folds.splits),
            paths=folds.path_count,
            purge_days=purge,
            embargo_days=embargo,
            chosen=choice.chosen,
            rank_ic_chosen_on=round_significant(choice.inside),
            rank_ic=tuple(round_significant(value) for value in sorted(choice.rank_ic)),
            net_sharpe=tuple(round_significant(value * np.sqrt(252.0)) for value in sorted(choice.sharpe)),
        )


def gather_candidates(
    evaluator: Evaluator, claims: Mapping[str, Claim], members: Mapping[str, Sequence[str]]
) -> CandidateSet:
    """Score the campaign's single factors on search, at most 100 of them, in their claimed direction."""
    names = [name for name in sorted(evaluator.scores) if name in claims and name not in members]
    columns = [_score_candidate(evaluator, name, claims[name].direction) for name in names[:MAX_CANDIDATES]]
    varying = [(net, ic) for net, ic in columns if np.nanstd(np.append(net, 0.0)) > 0]
    days = evaluator.windows.search.days
    net, rank_ic = (np.column_stack(part) if varying else np.empty((days, 0)) for part in _split_pairs(varying))
    return CandidateSet(net, rank_ic, evaluator.settings.horizon_days, len(names))


def _split_pairs(pairs: list[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> tuple[list[NDArray[np.float64]], ...]:
    return [net for net, _ in pairs], [rank_ic for _, rank_ic in pairs]


def _score_candidate(
    evaluator: Evaluator, name: str, direction: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    values = evaluator.values(evaluator.read(evaluator.scores[name].text))
    sheet = evaluator.scorer.score(values, evaluator.windows.search, direction)
    return sheet.net_daily, direction * sheet.daily
