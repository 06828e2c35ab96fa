"""Permute groups over assets: exact p-values of the largest of many statistics, stopped as soon as nothing is there.

Assets are permuted, never their days: scores persist, so a pooled test would take each day for a new asset. Under the
null the groups are exchangeable over the assets of a stratum, whatever the scores are, and a p-value is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .dependence import Codes, Frame
from .probes import Probe

REFERENCE_PERMUTATIONS = 256
"""Permutations that set the scale of each statistic; they are not counted."""
STOP_EXCEEDANCES = 5
"""Permutations at least as extreme as the scores after which a test ends (Besag and Clifford)."""
MIN_PERMUTATIONS = 999
BATCH_CELLS = 4_000_000
"""Cells of the groups of one batch of permutations: 32 MB."""
TIE = 1e-9
"""Difference of two statistics below which they are the same: sums of the same numbers in another order."""


@dataclass(frozen=True, eq=False)
class GroupTest:
    """The result of a permutation test of several attributes at once.

    Attributes
    ----------
    p_values
        Of each attribute, adjusted for all statistics of all attributes (Westfall and Young, single step).
    strongest
        Place of each attribute's most extreme statistic.
    permutations
        How many were counted.
    largest
        ``[reference]``: the largest standardised statistic of each reference permutation.
    scale
        Mean and deviation of the cube root of each attribute's first statistic over the reference permutations.
    """

    p_values: tuple[float, ...]
    strongest: tuple[int, ...]
    permutations: int
    largest: Frame
    scale: tuple[tuple[float, float], ...]


def permute_within(strata: Codes, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Return permutations of assets within strata, ``[count, N]``."""
    home = np.argsort(strata, kind="stable")
    drawn = np.argsort(strata[None] + random.random((count, len(strata))), axis=1, kind="stable")
    out = np.empty_like(drawn)
    out[:, home] = drawn
    return out


def measure_groups(probes: Sequence[Probe], codes: Codes, count: int) -> Frame:
    """Return the statistics ``[B, S]`` of labellings ``[B, N]`` with groups 0 to `count` - 1; cube roots, near normal.

    The cube root of a sum of squares is nearly normal (Wilson and Hilferty), so that one scale compares them all.
    """
    inside = np.moveaxis(codes[..., None] == np.arange(count - 1), 1, 0)
    groups = np.ascontiguousarray(inside, dtype=np.float64).reshape(len(inside), -1)
    sizes = np.bincount(codes[0], minlength=count).astype(np.float64)
    columns = []
    for probe in probes:
        first = (probe.features.T @ groups).reshape(probe.features.shape[1], len(codes), count - 1)
        last = probe.features.sum(axis=0)[:, None, None] - first.sum(axis=2, keepdims=True)
        sums = np.concatenate([first, last], axis=2)
        columns.append(np.cbrt(np.maximum(probe.measure(sums, sizes), 0.0)))
    return np.concatenate(columns, axis=1)


@dataclass(frozen=True, eq=False)
class GroupQuestion:
    """The attributes of one test, each by name: its probes and its groups ``[N]``, and the strata of the assets."""

    probes: Mapping[str, Sequence[Probe]]
    codes: Mapping[str, Codes]
    strata: Codes

    def measure(self, orders: NDArray[np.int64]) -> list[Frame]:
        """Return the statistics of each attribute for permutations of the assets, ``[B, S]``."""
        return [
            measure_groups(self.probes[name], codes[orders], int(codes.max()) + 1) for name, codes in self.codes.items()
        ]

    @property
    def batch(self) -> int:
        """Return the permutations of one batch."""
        widest = max(int(codes.max()) + 1 for codes in self.codes.values())
        return int(np.clip(BATCH_CELLS // (widest * len(self.strata)), 8, 512))


def run_permutations(question: GroupQuestion, most: int, random: np.random.Generator) -> GroupTest:
    """Test several attributes at once, by the largest standardised statistic.

    Parameters
    ----------
    question
        Features and groups.
    most
        Permutations at most. The test ends earlier after `STOP_EXCEEDANCES` at least as extreme ones: its p-value is
        then their number over the permutations so far, which is exact, too.
    random
        Draws the permutations.

    References
    ----------
    Besag and Clifford (1991), Biometrika 78, 301-304. Westfall and Young (1993), Resampling-Based Multiple Testing.
    """
    reference = question.measure(permute_within(question.strata, REFERENCE_PERMUTATIONS, random))
    scales = [(one.mean(axis=0), np.maximum(one.std(axis=0), 1e-12)) for one in reference]
    observed = _standardise(question.measure(np.arange(len(question.strata))[None]), scales)
    own = np.array([one.max() for one in observed])
    largest = np.max([one.max(axis=1) for one in _standardise(reference, scales)], axis=0)
    drawn = 0
    exceeding = np.zeros(len(own), np.int64)
    while drawn < most:
        count = min(question.batch, most - drawn)
        values = _standardise(question.measure(permute_within(question.strata, count, random)), scales)
        top = np.max([one.max(axis=1) for one in values], axis=0)
        hits = top[:, None] >= own - TIE
        reached = exceeding.min() + np.cumsum(hits[:, own.argmax()])
        if reached[-1] >= STOP_EXCEEDANCES:
            hits = hits[: int(np.argmax(reached >= STOP_EXCEEDANCES)) + 1]
        drawn, exceeding = drawn + len(hits), exceeding + hits.sum(axis=0)
        if exceeding.min() >= STOP_EXCEEDANCES:
            break
    p_values = (exceeding + 1) / (drawn + 1) if exceeding.min() < STOP_EXCEEDANCES else exceeding / drawn
    places = [int(one[0].argmax()) for one in observed]
    first = [(float(mean[0]), float(spread[0])) for mean, spread in scales]
    return GroupTest(tuple(map(float, p_values)), tuple(places), drawn, largest, tuple(first))


def _standardise(values: Sequence[Frame], scales: Sequence[tuple[Frame, Frame]]) -> list[Frame]:
    return [(one - mean) / spread for one, (mean, spread) in zip(values, scales, strict=True)]
