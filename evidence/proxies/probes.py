"""What an audit looks at: features of each asset's scores, and the statistic that sums of them over groups give.

Features are fixed; only the groups are permuted. So a statistic of any shape has an exact permutation p-value, and all
permutations of all statistics are matrix products.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ...factors import rank_rows
from .dependence import Codes, Frame, make_distance_features, make_rank_features, orthonormalise

DISTANCE_STEPS = 64
"""Values to which a score is rounded for its distance features."""
DAY_WINDOWS = 8
TRANSFORMS = 50
LEGENDRE_DEGREES = (2, 3, 4, 5, 6)
WAVES = (3, 5, 7, 9)
MIN_PARTNER_NAMES = 5
"""Names that a group of a second attribute needs to be crossed with the first one."""

Reduction = Literal["largest", "sum", "each", "top"]


@dataclass(frozen=True, eq=False)
class Probe:
    """Features of the assets and the statistics that they give.

    Attributes
    ----------
    names
        One for each statistic.
    features
        ``[N, R]``, without NaN.
    reduction
        ``largest``: of one feature, the largest standardised gap of a group. ``sum``: what all features vary between
        groups. ``each``: the same, a statistic a feature. ``top``: the largest squared canonical correlation with the
        groups, of orthonormal features.
    """

    names: tuple[str, ...]
    features: Frame
    reduction: Reduction

    def without(self, explained: Frame) -> Probe:
        """Return the probe of what an orthonormal basis `[N, P]` does not explain of the features."""
        rest = self.features - explained @ (explained.T @ self.features)
        return replace(self, features=orthonormalise(rest) if self.reduction == "top" else rest)

    def measure(self, sums: Frame, sizes: Frame) -> Frame:
        """Return the statistics, ``[B, S]``, from sums ``[R, B, K]`` over groups of some sizes ``[K]``."""
        total = sizes.sum()
        if self.reduction == "top":
            if not len(sums):  # a constant score has no polynomial
                return np.zeros((sums.shape[1], 1))
            scaled = np.moveaxis(sums, 1, 0) / np.sqrt(sizes)
            return np.asarray(np.linalg.eigvalsh(scaled @ np.swapaxes(scaled, 1, 2))[:, -1:], np.float64)
        if self.reduction == "largest":
            return np.asarray((sums[0] ** 2 / (sizes * (1.0 - sizes / total))).max(axis=1)[:, None])
        between: Frame = (sums**2 / sizes).sum(axis=2).T
        return between.sum(axis=1, keepdims=True) if self.reduction == "sum" else between


def standardise_days(scores: NDArray[np.floating]) -> tuple[Frame, Frame]:
    """Return each day's ranks in (0, 1), NaN without a score, and the same with mean 0 and deviation 1, then 0.

    Both are ``[T, N]``.
    """
    present = np.isfinite(scores)
    count = np.maximum(present.sum(axis=1, keepdims=True), 1)
    ranks = rank_rows(scores) - 0.5 / count
    centred = np.where(present, ranks - 0.5, 0.0)
    spread = np.sqrt((centred**2).sum(axis=1, keepdims=True) / count)
    return ranks, np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0)


def make_probes(days: Frame, present: NDArray[np.bool_]) -> list[Probe]:
    """Return the probes of one attribute alone.

    Parameters
    ----------
    days
        ``[T, N]`` scores of mean 0 and deviation 1 a day, 0 where there is none; already without what size explains.
    present
        ``[T, N]``: where there is a score. Every asset has one on some day.
    """
    level = mean_over_days(days, present)
    change = np.where(present, days - level, 0.0)
    order = np.linspace(0.0, 1.0, DISTANCE_STEPS)
    steps = np.quantile(level, order)
    rounded = steps[np.searchsorted(steps, level, side="left").clip(0, DISTANCE_STEPS - 1)]
    names, searched = search_transforms(days, present, level)
    return [
        Probe(("mean gap",), (level - level.mean())[:, None], "largest"),
        Probe(("squared gap by day",), (change - change.mean(axis=1, keepdims=True)).T, "sum"),
        Probe(("distance correlation",), make_distance_features(rounded), "sum"),
        Probe(("maximal correlation",), make_rank_features(level), "top"),
        Probe(names, searched, "each"),
    ]


def make_pair_probe(days: Frame, present: NDArray[np.bool_], partner: str, codes: Codes) -> Probe | None:
    """Return the probe for an effect of an attribute that differs by a second one; None without two large groups.

    The second attribute stays with its assets: the mean score is taken apart by its groups.
    """
    level = mean_over_days(days, present)
    parts = []
    for code in np.unique(codes[codes >= 0]):
        inside = codes == code
        if inside.sum() >= MIN_PARTNER_NAMES:
            parts.append(np.where(inside, level - level[inside].mean(), 0.0))
    return Probe((f"gap that differs by {partner}",), np.column_stack(parts), "sum") if len(parts) > 1 else None


def mean_over_days(days: Frame, present: NDArray[np.bool_]) -> Frame:
    """Return the mean of each asset over the days on which it has a score, ``[N]``."""
    mean: Frame = np.where(present, days, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    return mean


def search_transforms(days: Frame, present: NDArray[np.bool_], level: Frame) -> tuple[tuple[str, ...], Frame]:
    """Return the names and the features ``[N, 50]`` of transforms of a score: disguises that a mean does not show.

    40 are functions of a day's score or of an asset's history; 8 compare a window of days with the mean of all.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a row without any score: its ranks are NaN, and not counted
        ranks, _ = standardise_days(np.where(present, days, np.nan))
    ranks = np.where(present, ranks, 0.5)
    columns = {name: mean_over_days(values, present) for name, values in _list_day_transforms(ranks).items()}
    columns |= _list_history_transforms(days, present, level)
    for number, rows in enumerate(np.array_split(np.arange(len(days)), DAY_WINDOWS), start=1):
        columns[f"days of window {number} of {DAY_WINDOWS}"] = _compare_rows(days, present, level, rows)
    columns["second half less first"] = _compare_rows(days, present, level, np.arange(len(days) // 2, len(days)))
    columns["even days less odd"] = _compare_rows(days, present, level, np.arange(0, len(days), 2))
    features = np.column_stack(list(columns.values()))
    return tuple(columns), features - features.mean(axis=0)


def _list_day_transforms(ranks: Frame) -> Mapping[str, Frame]:
    """Return functions of a day's ranks in (0, 1), each ``[T, N]``."""
    signed = 2.0 * ranks - 1.0
    normal = ndtri(np.clip(ranks, 1e-3, 1 - 1e-3))
    tails = {"top 5 %": ranks > 0.95, "bottom 5 %": ranks < 0.05, "top 20 %": ranks > 0.8, "bottom 20 %": ranks < 0.2}
    tails |= {"both 5 % tails": abs(signed) > 0.9, "both 10 % tails": abs(signed) > 0.8}
    out = {f"decile {place + 1}": np.floor(ranks * 10).clip(0, 9) == place for place in range(10)} | tails
    legendre = {
        f"Legendre {degree}": np.polynomial.legendre.Legendre.basis(degree)(signed) for degree in LEGENDRE_DEGREES
    }
    waves = {f"wave {number}": np.cos(number * np.pi * ranks) for number in WAVES}
    powers = {"size": abs(signed), "square": signed**2, "root": np.sign(signed) * np.sqrt(abs(signed))}
    powers |= {"sign": np.sign(signed), "normal score": normal, "square of normal score": normal**2}
    return {name: values.astype(np.float64) for name, values in {**out, **legendre, **waves, **powers}.items()}


def _list_history_transforms(days: Frame, present: NDArray[np.bool_], level: Frame) -> Mapping[str, Frame]:
    """Return functions of an asset's scores over the days, each ``[N]``."""
    change = np.where(present, days - level, 0.0)
    count = np.maximum(present.sum(axis=0), 1)
    spread = np.sqrt((change**2).sum(axis=0) / count)
    both = present[1:] & present[:-1]
    pairs = np.maximum(both.sum(axis=0), 1)
    moves = np.where(both, days[1:] - days[:-1], 0.0)
    time = np.linspace(-1.0, 1.0, len(days))[:, None]
    return {
        "spread over days": spread,
        "size of changes": abs(moves).sum(axis=0) / pairs,
        "highest": np.where(present, days, -np.inf).max(axis=0),
        "lowest": np.where(present, days, np.inf).min(axis=0),
        "skewness": (change**3).sum(axis=0) / count / np.maximum(spread, 1e-6) ** 3,
        "trend": (change * time).sum(axis=0) / count,
        "bend": (change * time**2).sum(axis=0) / count,
        "share of days": present.mean(axis=0),
        "persistence": np.where(both, change[1:] * change[:-1], 0.0).sum(axis=0) / pairs,
    }


def _compare_rows(days: Frame, present: NDArray[np.bool_], level: Frame, rows: NDArray[np.int64]) -> Frame:
    """Return the mean of each asset on some days less its mean on all, 0 where it has no score on them."""
    known = present[rows].any(axis=0)
    return np.where(known, mean_over_days(days[rows], present[rows]) - level, 0.0)
