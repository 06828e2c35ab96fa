"""Combinatorial cross-validation: purged paths over all days (CPCV), and the probability of backtest overfitting (PBO).

CPCV (`split_days`, `choose_and_test`): the days are cut into groups; every combination of a few groups is the test
once, and the rest is training. Training days whose label reaches into a test group, or that follow one too closely, are
left out. Each group is tested several times; the k-th tests of all groups together are a path over all days.

PBO (`estimate_pbo`): the share of symmetric splits in which the best candidate in sample is at or below the median out
of sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

FOLD_GROUPS, TESTED_GROUPS = 6, 2


@dataclass(frozen=True)
class Split:
    """One division of the days; all arrays are sorted rows."""

    train: NDArray[np.intp]
    tests: tuple[NDArray[np.intp], ...]
    groups: tuple[int, ...]


@dataclass(frozen=True)
class Folds:
    """All splits, in lexicographic order of the tested groups.

    Attributes
    ----------
    paths
        `[splits, groups]`: path of a split's test of a group, -1 where the split trains on that group.
    """

    splits: tuple[Split, ...]
    paths: NDArray[np.intp]

    @property
    def path_count(self) -> int:
        """Return the number of paths over all days."""
        return int(self.paths.max()) + 1


def split_days(days: int, purge: int, embargo: int, groups: int = FOLD_GROUPS, tested: int = TESTED_GROUPS) -> Folds:
    """Divide days for combinatorial purged cross-validation.

    Parameters
    ----------
    days
        Number of days D, in order of time; left-over days belong to the last group.
    purge
        Days that a label reaches beyond its own day; so many training days are left out on both sides of a test.
    embargo
        Further training days that are left out after a test.
    groups, tested
        N and k: ``C(N, k)`` splits, which make ``C(N - 1, k - 1)`` paths.

    Returns
    -------
    Folds

    Raises
    ------
    ValueError
        When a group is not longer than purge and embargo together, or 1 <= tested < groups does not hold.

    References
    ----------
    Lopez de Prado (2018), Advances in Financial Machine Learning, chapters 7 and 12.
    """
    size = days // groups if groups > 0 else 0
    if not 1 <= tested < groups or min(purge, embargo) < 0 or size <= purge + embargo:
        raise ValueError(
            f"needs 1 <= tested < groups and groups longer than purge + embargo; got {groups} groups of {size} days, "
            f"{tested} tested, purge {purge}, embargo {embargo}"
        )
    edges = [*(number * size for number in range(groups)), days]
    splits, paths = [], np.full((math.comb(groups, tested), groups), -1, dtype=np.intp)
    tests_made = np.zeros(groups, dtype=np.intp)
    for row, chosen in enumerate(combinations(range(groups), tested)):
        open_days = np.ones(days, dtype=bool)
        for group in chosen:
            open_days[max(edges[group] - purge, 0) : edges[group + 1] + purge + embargo] = False
            paths[row, group] = tests_made[group]
            tests_made[group] += 1
        tests = tuple(np.arange(edges[group], edges[group + 1]) for group in chosen)
        splits.append(Split(np.flatnonzero(open_days), tests, chosen))
    return Folds(tuple(splits), paths)


@dataclass(frozen=True)
class Paths:
    """Out-of-sample results of choosing the best candidate.

    Attributes
    ----------
    inside
        Mean RankIC of the chosen candidate on training days, averaged over splits.
    rank_ic
        Mean RankIC of each path.
    sharpe
        Sharpe ratio after costs of each path, per day; NaN without variation.
    chosen
        Number of different candidates that were chosen over the splits.
    """

    inside: float
    rank_ic: tuple[float, ...]
    sharpe: tuple[float, ...]
    chosen: int


def choose_and_test(rank_ic: NDArray[np.float64], net: NDArray[np.float64], folds: Folds) -> Paths:
    """Choose the best candidate on the training days of every split, and join its test days to paths.

    Parameters
    ----------
    rank_ic
        Daily RankIC of each candidate in its claimed direction, `[D, K]`; NaN missing.
    net
        Daily return after costs of each candidate in the same direction, `[D, K]`; NaN counts as no position.
    folds
        From `split_days` for the same D.

    Notes
    -----
    The best candidate has the highest mean RankIC over its daily standard deviation; the first wins a tie. A candidate
    without variation on the training days is not chosen.
    """
    days = len(rank_ic)
    ics, nets = (np.full((folds.path_count, days), np.nan) for _ in range(2))
    inside, winners = [], []
    for split, paths in zip(folds.splits, folds.paths, strict=True):
        best = _find_best(rank_ic[split.train])
        winners.append(best)
        inside.append(_average_columns(rank_ic[split.train][:, [best]])[0])
        for group, test in zip(split.groups, split.tests, strict=True):
            ics[paths[group], test] = rank_ic[test, best]
            nets[paths[group], test] = np.nan_to_num(net[test, best])
    return Paths(
        float(np.mean(inside)),
        tuple(_average_columns(ics.T)),
        tuple(float(_compute_ratio(path)) for path in nets),
        len(set(winners)),
    )


def _average_columns(table: NDArray[np.float64]) -> list[float]:
    """Return the mean of each column without its missing days; NaN for a column without any day."""
    present = ~np.isnan(table)
    total, count = np.where(present, table, 0.0).sum(axis=0), present.sum(axis=0)
    return [float(value) for value in np.where(count > 0, total / np.maximum(count, 1), np.nan)]


def _find_best(table: NDArray[np.float64]) -> int:
    ratios = [_compute_ratio(column[~np.isnan(column)]) for column in table.T]
    return int(np.argmax([ratio if np.isfinite(ratio) else -np.inf for ratio in ratios]))


def _compute_ratio(series: NDArray[np.float64]) -> float:
    """Return mean over standard deviation (ddof 1); NaN for fewer than three values or without variation."""
    if len(series) < 3:
        return math.nan
    spread = float(series.std(ddof=1))
    return float(series.mean()) / spread if spread > 1e-13 * float(np.abs(series).max()) else math.nan


@dataclass(frozen=True)
class Overfitting:
    """Result of the combinatorially symmetric cross-validation.

    Attributes
    ----------
    probability
        Share of splits in which the best in sample is at or below the median out of sample.
    logits
        One per split, in lexicographic order of the in-sample blocks.
    """

    probability: float
    logits: NDArray[np.float64]


def estimate_pbo(returns: ArrayLike, blocks: int = 10) -> Overfitting:
    """Return the probability that the best candidate in sample is worse than the median out of sample.

    Parameters
    ----------
    returns
        Shape ``[D, K]``: one column for each of at least two candidates. A NaN counts as no position, a return of 0.
    blocks
        Even number of contiguous blocks; left-over days at the start are dropped.

    Returns
    -------
    Overfitting
        Candidates are compared by Sharpe ratio, which is 0 without variation. A tie takes the first candidate in
        sample, and the average rank out of sample.

    Raises
    ------
    ValueError
        For an odd number of blocks, fewer than two candidates, or fewer than two days a block.

    References
    ----------
    Bailey, Borwein, Lopez de Prado and Zhu (2017), Journal of Computational Finance 20(4), 39-69.
    """
    table = np.nan_to_num(np.asarray(returns, dtype=np.float64))
    size = len(table) // blocks if blocks >= 2 else 0
    if blocks < 2 or blocks % 2 or table.ndim != 2 or table.shape[1] < 2 or size < 2:
        raise ValueError(f"needs an even number of blocks, 2 days each, and 2 candidates; got {blocks}, {table.shape}")
    cut = table[len(table) - size * blocks :].reshape(blocks, size, -1)
    sums, squares = cut.sum(axis=1), (cut**2).sum(axis=1)
    inside = np.zeros((math.comb(blocks, blocks // 2), blocks))
    for row, chosen in enumerate(combinations(range(blocks), blocks // 2)):
        inside[row, list(chosen)] = 1.0
    half = size * blocks // 2
    winners = _compute_sharpe(inside @ sums, inside @ squares, half).argmax(axis=1)
    out = _compute_sharpe((1 - inside) @ sums, (1 - inside) @ squares, half)
    best = out[np.arange(len(out)), winners][:, None]
    ranks = ((out < best).sum(axis=1) + ((out == best).sum(axis=1) + 1) / 2) / (out.shape[1] + 1)  # ties share one
    logits = np.log(ranks / (1.0 - ranks))
    return Overfitting(float((logits <= 0).mean()), logits)


def _compute_sharpe(sums: NDArray[np.float64], squares: NDArray[np.float64], days: int) -> NDArray[np.float64]:
    """Return Sharpe ratios from sums and sums of squares; 0 without variation."""
    mean = sums / days
    variance = squares / days - mean**2
    varies = variance > 1e-15 * squares / days
    return np.where(varies, mean / np.sqrt(np.where(varies, variance, 1.0)), 0.0)
