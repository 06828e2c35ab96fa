"""A subsample of the search window: few names and days, enough to measure the rank correlations of factors."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...evidence import Window
from ...evidence.gate import PriceLevelTest
from ...factors import Engine, Expression, rank_rows
from ...market import Panel

MAX_SAMPLE_NAMES = 64
MAX_SAMPLE_CELLS = 6_000
"""Most names, and most cells, of the subsample; the error of a correlation is then about .015."""
MIN_SAMPLE_NAMES = 10
MIN_SAMPLE_COVERAGE, MIN_DISTINCT_VALUE_SHARE = 0.5, 0.15
"""Coverage, and share of distinct values of a day, below which a formula is thin: ten values of 64 names."""
FORMULAS_PER_BATCH = 64
MAX_FINGERPRINTS_KEPT, CACHED_BYTES = 512, 96 << 20
"""Cached fingerprints, and bytes of cached subtrees: changes of a draft share most of its subtrees."""


@dataclass(frozen=True, eq=False)
class RankFingerprint:
    """The ranks of one factor on the subsample.

    Attributes
    ----------
    ranks : NDArray[np.float32]
        ``[cells]``: twice the centred rank of a name on its day, a small integer; 0 where there is no value. The
        product of two, over their lengths, is their rank correlation. Products are exact in float32 in any order of
        summation, so results do not depend on the size of a batch.
    coverage : float
        Share of the universe's cells that have a value.
    distinct : float
        Mean share of distinct values among a day's values.
    """

    ranks: NDArray[np.float32]
    coverage: float
    distinct: float

    @property
    def thin(self) -> bool:
        """True where too few names have a value, or too many have the same."""
        return self.coverage < MIN_SAMPLE_COVERAGE or self.distinct < MIN_DISTINCT_VALUE_SHARE


@dataclass(frozen=True, eq=False)
class SubsampledPanel:
    """Computes factors on a few names of one panel, up to the end of one window.

    Operators across names see only these names, so values are near those on the whole panel but not equal.
    """

    panel: Panel
    window: Window

    @cached_property
    def _small_panel(self) -> Panel:
        return few_names(self.panel.rows(0, self.window.stop), MAX_SAMPLE_NAMES)

    @cached_property
    def _engine(self) -> Engine:
        return Engine(self._small_panel, cache_bytes=CACHED_BYTES, threads=1)

    @cached_property
    def _cache(self) -> OrderedDict[str, RankFingerprint]:
        return OrderedDict()

    @cached_property
    def _levels(self) -> PriceLevelTest:
        return PriceLevelTest(self._small_panel, self.window)

    def reads_price_level(self, expression: Expression) -> bool:
        """Tell whether a formula reads the level of back-adjusted prices; see `PriceLevelTest`."""
        return bool(self._levels.objection(expression))

    @cached_property
    def _days(self) -> slice:
        names = self._engine.panel.names
        return slice(self.window.start, self.window.stop, max(1, -(-self.window.days * names // MAX_SAMPLE_CELLS)))

    @cached_property
    def cells(self) -> int:
        """Return the number of cells of a fingerprint."""
        return len(range(self.window.stop)[self._days]) * self._engine.panel.names

    @cached_property
    def _member_cells(self) -> int:
        return max(int(self._engine.panel.universe[self._days].sum()), 1)

    def fingerprint(self, expressions: Sequence[Expression]) -> list[RankFingerprint]:
        """Return the fingerprints of formulas of this panel's fields, in order; not thread-safe."""
        texts = [expression.text for expression in expressions]
        fresh = list({formula.text: formula for formula in expressions if formula.text not in self._cache}.values())
        prints = {text: self._cache[text] for text in texts if text in self._cache}
        for start in range(0, len(fresh), FORMULAS_PER_BATCH):
            part = fresh[start : start + FORMULAS_PER_BATCH]
            values = self._engine.evaluate(part, out=self._take_buffers(len(part)))
            prints.update(zip((formula.text for formula in part), map(self._rank_values, values), strict=True))
        for text in texts:
            self._cache[text] = prints[text]
            self._cache.move_to_end(text)
        while len(self._cache) > MAX_FINGERPRINTS_KEPT:
            self._cache.popitem(last=False)
        return [prints[text] for text in texts]

    @cached_property
    def _buffers(self) -> list[NDArray[np.float32]]:
        return []

    def _take_buffers(self, count: int) -> list[NDArray[np.float32]]:
        """Return arrays for the values of a batch, used again by the next: new memory costs as much as a kernel."""
        while len(self._buffers) < count:
            self._buffers.append(np.empty(self._small_panel.universe.shape, np.float32))
        return self._buffers[:count]

    def _rank_values(self, values: NDArray[np.float32]) -> RankFingerprint:
        sampled = np.ascontiguousarray(values[self._days])
        is_present = np.isfinite(sampled)
        return RankFingerprint(
            whole_ranks(sampled).ravel(),
            float(is_present.sum()) / self._member_cells,
            _measure_distinct_share(sampled, is_present),
        )


def few_names(panel: Panel, most: int) -> Panel:
    """Return the panel with at most `most` names, evenly spaced among those that are members on half of the days."""
    present = panel.universe.mean(axis=0)
    present_shares = present[present > 0]
    min_share = min(0.5, float(np.median(present_shares))) if present_shares.size else 0.0
    columns = np.flatnonzero(present >= min_share)
    if len(columns) > most:
        columns = columns[np.linspace(0, len(columns) - 1, most).round().astype(np.intp)]
    return Panel(
        dates=panel.dates,
        symbols=tuple(panel.symbols[place] for place in columns),
        fields={name: values[:, columns] for name, values in panel.fields.items()},
        universe=panel.universe[:, columns],
        groups={name: codes[columns] for name, codes in panel.groups.items()},
        group_labels=panel.group_labels,
        notes=panel.notes,
        back_adjusted=panel.back_adjusted,
        volumes=panel.volumes,
        splits=panel.splits,
    )


def whole_ranks(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return ``2 r - n - 1`` for rank r (1 to n, ties averaged) of each name on its day.

    Parameters
    ----------
    values
        ``[D, N]``, NaN missing.

    Returns
    -------
    NDArray[np.float32]
        ``[D, N]``; 0 where a value is missing or its day has fewer than ten.
    """
    ranks = rank_rows(values)
    is_present = np.isfinite(ranks)
    counts = is_present.sum(axis=1, keepdims=True)
    centred = np.rint(2.0 * ranks * counts) - counts - 1.0  # from percentiles to ranks; ties are halves
    return np.where(is_present & (counts >= MIN_SAMPLE_NAMES), centred, 0.0).astype(np.float32)


def _measure_distinct_share(values: NDArray[np.float32], is_present: NDArray[np.bool_]) -> float:
    counts = is_present.sum(axis=1)
    new = (np.diff(np.sort(values, axis=1), axis=1) > 0).sum(axis=1) + 1  # NaN is sorted to the end
    has_values = counts > 0
    return float(np.mean(new[has_values] / counts[has_values])) if has_values.any() else 0.0
