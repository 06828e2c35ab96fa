"""A thin copy of the search window: few names and few days, enough to tell how alike factors are."""

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
"""Names that are looked at, and at most how many of their days; correlations are then known to about .015."""
MIN_SAMPLE_NAMES = 10
MIN_SAMPLE_COVERAGE, MIN_DISTINCT_VALUE_SHARE = 0.5, 0.15
"""Coverage, and share of a day's values that differ, below which a formula is thin: of 64 names ten values."""
FORMULAS_PER_BATCH = 64
MAX_FINGERPRINTS_KEPT, CACHED_BYTES = 512, 96 << 20
"""Looks and bytes of subtrees that are kept: drafts are looked at again with changes of them, which share most of it."""


@dataclass(frozen=True, eq=False)
class RankFingerprint:
    """What is seen of one factor.

    Attributes
    ----------
    ranks : NDArray[np.float32]
        ``[cells]``: twice the rank of a name less the middle of its day, a small whole number; 0 where there is no value.
        The product of two, over their lengths, is their rank correlation. It is exact in float32, in whatever order it is
        summed, so that nothing hangs on how many formulas are looked at together.
    coverage : float
        Share of the universe's cells that have a value.
    distinct : float
        Mean share of a day's values that differ from one another.
    """

    ranks: NDArray[np.float32]
    coverage: float
    distinct: float

    @property
    def thin(self) -> bool:
        """Tell whether too few names have a value, or too many have the same."""
        return self.coverage < MIN_SAMPLE_COVERAGE or self.distinct < MIN_DISTINCT_VALUE_SHARE


@dataclass(frozen=True, eq=False)
class SubsampledPanel:
    """Looks at factors on a few names of one panel, up to the end of one window.

    Operators across names see these few only, so what they give is near to what it is on the whole panel, not the same.
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
    def _kept(self) -> OrderedDict[str, RankFingerprint]:
        return OrderedDict()

    @cached_property
    def _levels(self) -> PriceLevelTest:
        return PriceLevelTest(self._small_panel, self.window)

    def knows_later(self, expression: Expression) -> bool:
        """Tell whether a formula reads the level of back-adjusted prices, and so may not be looked at; see `PriceLevelTest`."""
        return bool(self._levels.objection(expression))

    @cached_property
    def _days(self) -> slice:
        names = self._engine.panel.names
        return slice(self.window.start, self.window.stop, max(1, -(-self.window.days * names // MAX_SAMPLE_CELLS)))

    @cached_property
    def cells(self) -> int:
        """Return how many ranks a look holds."""
        return len(range(self.window.stop)[self._days]) * self._engine.panel.names

    @cached_property
    def _members(self) -> int:
        return max(int(self._engine.panel.universe[self._days].sum()), 1)

    def look(self, expressions: Sequence[Expression]) -> list[RankFingerprint]:
        """Look at formulas, in order; they must be of this panel's fields. One thread looks at a time."""
        texts = [each.text for each in expressions]
        fresh = list({each.text: each for each in expressions if each.text not in self._kept}.values())
        found = {text: self._kept[text] for text in texts if text in self._kept}
        for start in range(0, len(fresh), FORMULAS_PER_BATCH):
            part = fresh[start : start + FORMULAS_PER_BATCH]
            found.update(zip((each.text for each in part), map(self._seen, self._engine.evaluate(part)), strict=True))
        for text in texts:
            self._kept[text] = found[text]
            self._kept.move_to_end(text)
        while len(self._kept) > MAX_FINGERPRINTS_KEPT:
            self._kept.popitem(last=False)
        return [found[text] for text in texts]

    def _seen(self, values: NDArray[np.float32]) -> RankFingerprint:
        few = np.ascontiguousarray(values[self._days])
        there = np.isfinite(few)
        return RankFingerprint(
            whole_ranks(few).ravel(), float(there.sum()) / self._members, _distinct_share(few, there)
        )


def few_names(panel: Panel, most: int) -> Panel:
    """Return the panel with at most so many names: every so manyth of those that are members on half of the days or more."""
    present = panel.universe.mean(axis=0)
    seen = present[present > 0]
    least = min(0.5, float(np.median(seen))) if seen.size else 0.0
    steady = np.flatnonzero(present >= least)
    if len(steady) > most:
        steady = steady[np.linspace(0, len(steady) - 1, most).round().astype(np.intp)]
    return Panel(
        dates=panel.dates,
        symbols=tuple(panel.symbols[place] for place in steady),
        fields={name: values[:, steady] for name, values in panel.fields.items()},
        universe=panel.universe[:, steady],
        groups={name: codes[steady] for name, codes in panel.groups.items()},
        group_labels=panel.group_labels,
        notes=panel.notes,
        back_adjusted=panel.back_adjusted,
        volumes=panel.volumes,
    )


def whole_ranks(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return ``2 r - n - 1`` of each name's rank r (1..n, ties averaged) on its day; 0 where missing or n is below ten."""
    ranks = rank_rows(values)
    there = np.isfinite(ranks)
    counts = there.sum(axis=1, keepdims=True)
    centred = np.rint(2.0 * ranks * counts) - counts - 1.0  # percentiles back to ranks, ties in halves
    return np.where(there & (counts >= MIN_SAMPLE_NAMES), centred, 0.0).astype(np.float32)


def _distinct_share(values: NDArray[np.float32], there: NDArray[np.bool_]) -> float:
    counts = there.sum(axis=1)
    new = (np.diff(np.sort(values, axis=1), axis=1) > 0).sum(axis=1) + 1  # what is missing is sorted to the end
    known = counts > 0
    return float(np.mean(new[known] / counts[known])) if known.any() else 0.0
