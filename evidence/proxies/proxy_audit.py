"""Does a score carry a group attribute, such as a country: the audit of one score against several attributes.

The statistics of an attribute are tested together with all others by permuting the groups of assets, so one audit is
one test. Where sizes are known, groups are permuted within quintiles of size, and what size explains of the scores is
taken out: what is left is no matter of large and small. "Nothing was found" says little by itself, so each finding has
the smallest gap that this audit would have seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..multiple_testing.online_fdr import lond_level
from .dependence import Codes, Frame, orthonormalise
from .permutation import MIN_PERMUTATIONS, GroupQuestion, GroupTest, run_permutations
from .probes import Probe, make_pair_probe, make_probes, standardise_days

SIZE = "size"
"""The attribute of size quintiles."""
STRATA = 5
DAYS = 64
"""Days of a score that are read, evenly spread: scores persist, and more days add little."""
MIN_AUDITED_NAMES = 20
MIN_GROUP = 2
"""Names that a group needs; smaller ones, and names without a group, are audited as one group."""
MIN_DAY_SHARE = 0.25
MIN_LEVEL = 1e-5
"""Smallest threshold of an audit: 200,000 permutations reach it."""
POWER_Z = 0.8416
"""Normal quantile of a power of 80 %."""
ALPHA = 0.05
OTHER = "other"


@dataclass(frozen=True, eq=False)
class AuditInput:
    """A score and the attributes of its assets.

    Attributes
    ----------
    scores
        ``[T, N]``, NaN where an asset has none.
    groups
        Codes ``[N]`` of each attribute by name, -1 unknown; those that are not audited are crossed with those that are.
    labels
        The label of each code, by attribute.
    size
        ``[T, N]``, in any rising unit; None where it is not known.
    """

    scores: NDArray[np.floating]
    groups: Mapping[str, NDArray[np.integer]]
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    size: NDArray[np.floating] | None = None


@dataclass(frozen=True)
class ProxyFinding:
    """What an audit says of one attribute.

    Attributes
    ----------
    attribute
        Its name.
    found
        Whether the score carries it: the p-value is at most the threshold.
    p_value, level
        Adjusted for all statistics and attributes of the audit; the threshold.
    statistic
        The most extreme statistic.
    group, gap
        The group whose mean score is farthest from that of all others, and the distance in standard deviations of a
        day's scores.
    smallest_gap, smallest_group
        The smallest gap that would have been found in four audits of five, and the group that it belongs to.
    weakest_gap, weakest_group
        The same for the group that was hardest to see.
    names, groups
        How many were compared.
    permutations
        How many were counted.
    p_with_size
        The same p-value where what size explains is left in, None where size is not known; it decides nothing. A small
        one beside a large `p_value` says that the attribute is carried by size alone.
    """

    attribute: str
    found: bool
    p_value: float
    level: float
    statistic: str
    group: str
    gap: float
    smallest_gap: float
    smallest_group: str
    weakest_gap: float
    weakest_group: str
    names: int
    groups: int
    permutations: int
    p_with_size: float | None = None


def audit_level(number: int, found_before: int, alpha: float = ALPHA) -> float:
    """Return the threshold of an audit: LOND under any dependence, but at least `MIN_LEVEL`.

    Parameters
    ----------
    number
        1 for the first audit of a workspace.
    found_before
        Audits before it that found a proxy.
    alpha
        False discovery rate to hold. The floor adds at most `MIN_LEVEL` false findings an audit: one in 100,000.
    """
    return max(lond_level(number, found_before, alpha), MIN_LEVEL)


def audit_groups(asked: AuditInput, attributes: Sequence[str], level: float, seed: int) -> tuple[ProxyFinding, ...]:
    """Audit a score against attributes; the result is the same for the same input and seed.

    Parameters
    ----------
    asked
        The score and the groups.
    attributes
        Names among the groups, or `SIZE`. For size itself nothing is taken out.
    level
        Threshold of the p-values.
    seed
        Seeds the permutations.

    Returns
    -------
    tuple of ProxyFinding
        One for each attribute with two groups of two names or more, in the order asked; an attribute without them
        cannot be audited and is left out. Empty with fewer than 20 names.
    """
    prepared = _prepare(asked)
    if prepared is None:
        return ()
    plain = [name for name in attributes if name != SIZE]
    found: dict[str, ProxyFinding] = {}
    for names, without_size in ((plain, True), ([SIZE] if SIZE in attributes else [], False)):
        found |= _audit_together(prepared, names, level, seed, without_size=without_size)
    return tuple(found[name] for name in attributes if name in found)


@dataclass(frozen=True, eq=False)
class _Prepared:
    """The assets that have scores: standardised days, groups, quintiles of size and the basis of what size explains."""

    days: Frame
    present: NDArray[np.bool_]
    codes: Mapping[str, Codes]
    labels: Mapping[str, Sequence[str]]
    quintiles: Codes
    explained: Frame | None

    def ask(self, names: Sequence[str], *, without_size: bool) -> GroupQuestion:
        """Return the question about attributes: within quintiles of size and without what it explains, or plain."""
        explained, days = self.explained if without_size else None, self.days
        if explained is not None:
            days = np.where(self.present, days - days @ explained @ explained.T, 0.0)
        alone = make_probes(days, self.present)
        probes: dict[str, list[Probe]] = {}
        for name in names:
            others = [other for other in self.codes if other != name]
            pairs = [make_pair_probe(days, self.present, other, self.codes[other]) for other in others]
            own = [*alone, *(pair for pair in pairs if pair is not None)]
            probes[name] = own if explained is None else [probe.without(explained) for probe in own]
        strata = np.zeros_like(self.quintiles) if explained is None else self.quintiles
        return GroupQuestion(probes, {name: self.codes[name] for name in names}, strata)


def _prepare(asked: AuditInput) -> _Prepared | None:
    scores = np.asarray(asked.scores, np.float64)
    rows = np.flatnonzero(np.isfinite(scores).sum(axis=1) >= MIN_AUDITED_NAMES)
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, DAYS).round().astype(int))] if len(rows) else rows
    kept = np.flatnonzero(np.isfinite(scores[rows]).mean(axis=0) >= MIN_DAY_SHARE) if len(rows) else rows
    if len(kept) < MIN_AUDITED_NAMES:
        return None
    chosen = scores[np.ix_(rows, kept)]
    size = None if asked.size is None else _rank_sizes(np.asarray(asked.size, np.float64)[np.ix_(rows, kept)])
    numbered = {
        name: _number_groups(np.asarray(raw)[kept], asked.labels.get(name, ())) for name, raw in asked.groups.items()
    }
    quintiles = np.zeros(len(kept), np.int64) if size is None else np.floor(size * STRATA).astype(np.int64)
    if size is not None:
        numbered[SIZE] = _number_groups(quintiles, tuple(f"quintile {one + 1}" for one in range(STRATA)))
    codes = {name: found for name, (found, words) in numbered.items() if len(words) > 1}
    labels = {name: words for name, (_, words) in numbered.items()}
    explained = None if size is None else _explain(size, quintiles)
    return _Prepared(standardise_days(chosen)[1], np.isfinite(chosen), codes, labels, quintiles, explained)


def _rank_sizes(size: Frame) -> Frame | None:
    """Return the rank of each asset's mean rank of size, in [0, 1), without one in the middle; None without sizes."""
    ranks, _ = standardise_days(size)
    known = np.isfinite(ranks)
    if known.any(axis=0).sum() < MIN_AUDITED_NAMES:
        return None
    mean = np.where(known, ranks, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    mean = np.where(known.any(axis=0), mean, 0.5)
    return np.argsort(np.argsort(mean, kind="stable"), kind="stable") / len(mean)


def _explain(size: Frame, quintiles: Codes) -> Frame:
    """Return an orthonormal basis of what size explains: a line within each quintile, ``[N, 10]``."""
    inside = np.eye(STRATA)[quintiles]
    return orthonormalise(np.hstack([inside, inside * size[:, None]]))


def _number_groups(codes: NDArray[np.integer], labels: Sequence[str]) -> tuple[Codes, tuple[str, ...]]:
    """Return codes from 0 and a label for each; small groups and unknown ones together are the last group."""
    values, counts = np.unique(codes[codes >= 0], return_counts=True)
    large = values[counts >= MIN_GROUP]
    numbered = np.full(len(codes), len(large), np.int64)
    for place, value in enumerate(large):
        numbered[codes == value] = place
    words = [str(labels[value]) if value < len(labels) else str(value) for value in large]
    return numbered, tuple([*words, OTHER] if (numbered == len(large)).any() else words)


def _audit_together(
    prepared: _Prepared, names: Sequence[str], level: float, seed: int, *, without_size: bool
) -> dict[str, ProxyFinding]:
    """Audit attributes in one test."""
    names = [name for name in names if name in prepared.codes]
    if not names:
        return {}
    question = prepared.ask(names, without_size=without_size)
    most = max(MIN_PERMUTATIONS, math.ceil(2.0 / level))
    test = run_permutations(question, most, np.random.default_rng([seed, without_size]))
    with_size: Sequence[float | None] = [None] * len(names)
    if without_size and prepared.explained is not None:
        plain = prepared.ask(names, without_size=False)
        with_size = run_permutations(plain, MIN_PERMUTATIONS, np.random.default_rng([seed, 2])).p_values
    found = {}
    for place, name in enumerate(names):
        words, p_value = prepared.labels[name], test.p_values[place]
        gaps = _measure_gaps(question, name, level, test, place)
        statistics = [statistic for probe in question.probes[name] for statistic in probe.names]
        easiest, hardest = int(gaps.seen.argmin()), int(gaps.seen.argmax())
        found[name] = ProxyFinding(
            attribute=name,
            found=p_value <= level,
            p_value=p_value,
            level=level,
            statistic=statistics[test.strongest[place]],
            group=words[gaps.largest],
            gap=float(gaps.sizes[gaps.largest]),
            smallest_gap=float(gaps.seen[easiest]),
            smallest_group=words[easiest],
            weakest_gap=float(gaps.seen[hardest]),
            weakest_group=words[hardest],
            names=prepared.days.shape[1],
            groups=len(words),
            permutations=test.permutations,
            p_with_size=with_size[place],
        )
    return found


@dataclass(frozen=True, eq=False)
class _Gaps:
    """The gap of each group ``[K]``, the one farthest from 0, and the smallest of each that would have been seen."""

    sizes: Frame
    largest: int
    seen: Frame


def _measure_gaps(question: GroupQuestion, name: str, level: float, test: GroupTest, place: int) -> _Gaps:
    """Return the gaps of an attribute's groups.

    The threshold of the largest of all statistics is that of as many independent normal ones as have its median. A gap
    of means is seen where its statistic alone is beyond that; `POWER_Z` of its noise more, and it is seen in four
    audits of five.
    """
    codes, level_scores = question.codes[name], question.probes[name][0].features[:, 0]
    counts = np.bincount(codes).astype(np.float64)
    rest = counts.sum() - counts
    sums = np.bincount(codes, weights=level_scores)
    sizes = sums / counts - (sums.sum() - sums) / rest
    scale = np.sqrt(1.0 / counts + 1.0 / rest)
    equivalent = max(math.log(2.0) / max(_upper_tail(float(np.median(test.largest))), 1e-12), 1.0)
    threshold = -float(ndtri(min(level / equivalent, 0.5)))
    mean, spread = test.scale[place]
    needed = max(mean + threshold * spread, 0.0) ** 1.5  # the statistic is the cube root of a square
    noise = float(np.std(level_scores)) * scale
    return _Gaps(sizes, int(np.argmax(abs(sizes) / scale)), needed * scale + POWER_Z * noise)


def _upper_tail(value: float) -> float:
    return 0.5 * math.erfc(value / math.sqrt(2.0))
