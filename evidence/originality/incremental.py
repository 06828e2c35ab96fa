"""What a factor adds to the library: its ranks after those of the library are removed, by regression day by day.

The library as a whole is the mean of its factors' signed ranks (`Consensus`). Ranks are added as whole numbers, so the sum
does not depend on the order of factors, and a later factor is added to the sum that the workspace keeps.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...factors import rank_rows
from ...ledger.database import explained
from ...ledger.files import make_folder, write_whole
from ...market import format_count
from ..newey_west import newey_west_t
from ..scoring.metrics import round_significant
from ..scoring.scorer import Scorer
from ..windows import Window
from .redundancy import LibraryValues

Frame = NDArray[np.float64]
Values = NDArray[np.float32]
MAX_NEAREST_FACTORS = 5
"""How many of the library's factors are taken out one by one, beside the library as a whole."""
MIN_RESIDUAL_NAMES = 10
MIN_SPREAD_LEFT = 1e-4
"""Share of a day's spread of ranks below which what is left is taken for rounding."""
MIN_ADDED_T = 2.0

RANK_STEPS = 1 << 30
"""Steps of a rank from the lowest to the highest: far below what a float32 can tell."""
Totals = tuple[NDArray[np.int64], NDArray[np.int32]]


@dataclass(frozen=True)
class Addition:
    """What a factor says beside the library, on the search window.

    Attributes
    ----------
    rank_ic, t
        Mean daily RankIC of what is left, and its Newey-West t; NaN where nothing is.
    kept
        Share of the spread of its ranks that is left, mean over days.
    against
        Ids of the factors that were taken out one by one, the most correlated first.
    library
        How many factors the library's mean is of.
    """

    rank_ic: float
    t: float
    kept: float
    against: tuple[str, ...]
    library: int

    def record(self) -> dict[str, Any]:
        """Return the JSON form; undefined figures are null."""
        figures = {name: round_significant(getattr(self, name)) for name in ("rank_ic", "t", "kept")}
        return {**figures, "against": list(self.against), "library": self.library}

    def doubt(self, rank_ic: float | None) -> str:
        """Say that too little is left of a factor with this RankIC of its own; empty where it adds something."""
        if not np.isfinite(self.t) and not np.isfinite(self.kept):
            return ""  # no day on which the library says something
        if not np.isfinite(self.t):
            say = "factor says" if self.library == 1 else "factors say"
            return f"the library's {self.library} {say} all that it says"
        if abs(self.t) >= MIN_ADDED_T and self.rank_ic * (rank_ic or 0.0) > 0:
            return ""
        own = "" if rank_ic is None else f" of {rank_ic:+.4f}"
        said = f"RankIC {self.rank_ic:+.4f}{own}, t {self.t:+.1f}"
        return f"little is left beside the library's {format_count(self.library, 'factor')}: {said}"


@dataclass(frozen=True)
class AddedValue:
    """Measures what factors add to one library on one window."""

    library: LibraryValues
    scorer: Scorer
    window: Window
    consensus: Consensus

    @classmethod
    def of(cls, library: LibraryValues, scorer: Scorer, window: Window) -> AddedValue:
        """Return the measure of a library."""
        return cls(library, scorer, window, Consensus(library, window))

    def addition(self, values: Values, but: str = "") -> Addition | None:
        """Return what a factor's values `[T, N]` add to the library without `but`; None for an empty library.

        Each day its ranks are regressed on the mean of the library's signed ranks and on the ranks of the five factors
        that they are most correlated with; a name without a value in one of these counts as in its middle.
        """
        count = len(set(self.library) - {but})
        if not count:
            return None
        nearest = tuple(one.factor_id for one in self.library.nearest(values, MAX_NEAREST_FACTORS, but))
        ranked = [self._ranks(self.library.values(name)) for name in nearest]
        left, kept = residual_ranks(self._ranks(values), [self.consensus.without(but), *ranked])
        whole = np.full(values.shape, np.nan, np.float32)
        self.window.cut(whole)[:] = left
        test = newey_west_t(self.scorer.daily_rank_ic(whole, self.window), self.scorer.lag)
        return Addition(test.mean, test.t, kept, nearest, count)

    def _ranks(self, values: Values) -> Frame:
        return rank_rows(np.ascontiguousarray(self.window.cut(values))) - 0.5


def residual_ranks(ranks: Frame, others: Sequence[Frame]) -> tuple[Frame, float]:
    """Take others out of ranks, day by day, by least squares with a constant.

    Parameters
    ----------
    ranks
        `[days, N]`, NaN missing.
    others
        Each `[days, N]`. Where the first is NaN nothing is left; NaN in the rest counts as 0.

    Returns
    -------
    tuple
        What is left, `[days, N]`: NaN on days with fewer than 10 names, and where less than 1e-4 of the spread is left;
        and the share of the spread that is left, mean over days with enough names, NaN if there is none.
    """
    left = np.full(ranks.shape, np.nan)
    shares = []
    for day in range(len(ranks)):
        known = ~np.isnan(ranks[day]) & ~np.isnan(others[0][day])
        own = ranks[day][known]
        if own.size < MIN_RESIDUAL_NAMES or np.ptp(own) == 0:
            continue
        own = own - own.mean()
        design = np.column_stack([np.ones(own.size), *(np.nan_to_num(other[day][known]) for other in others)])
        rest = own - design @ np.linalg.lstsq(design, own, rcond=1e-9)[0]
        shares.append(float(rest @ rest / (own @ own)))
        if shares[-1] >= MIN_SPREAD_LEFT:
            left[day, known] = rest
    return left, float(np.mean(shares)) if shares else float("nan")


class Consensus:
    """The mean signed rank of a library's factors; see `portfolio.combination.combine_ranks`, of which this is the same sum."""

    def __init__(self, library: LibraryValues, window: Window) -> None:
        self._library, self._window = library, window
        self._held: dict[str, int] = {}
        self._totals: Totals | None = None

    def without(self, but: str = "") -> NDArray[np.float64]:
        """Return the mean over all factors but one, `[days, N]` in [-0.5, 0.5]; NaN where none has a value."""
        total, count = self._sum_ranks()
        if but in self._held:
            ranks, seen = self._steps(self._library.values(but), self._held[but])
            total, count = total - ranks, count - seen
        return np.where(count > 0, total / np.maximum(count, 1) / RANK_STEPS, np.nan)

    def _sum_ranks(self) -> Totals:
        wanted = {name: self._library.direction(name) for name in self._library}
        if self._totals is None:
            self._held, self._totals = self._kept() or ({}, self._zero_totals())
        if any(wanted.get(name) != sign for name, sign in self._held.items()):
            self._held, self._totals = {}, self._zero_totals()  # it holds what this run does not see
        lacking = [name for name in wanted if name not in self._held]
        for name, values in self._library.stream(lacking):
            ranks, seen = self._steps(values, wanted[name])
            self._totals = self._totals[0] + ranks, self._totals[1] + seen
            self._held[name] = wanted[name]
        if lacking:
            self._keep()
        return self._totals

    def _zero_totals(self) -> Totals:
        shape = self._library.shape(self._window)
        return np.zeros(shape, np.int64), np.zeros(shape, np.int32)

    def _steps(self, values: NDArray[np.float32], sign: int) -> Totals:
        """Return centred ranks as whole numbers, and where there is one."""
        ranks = rank_rows(np.ascontiguousarray(self._window.cut(values))) - 0.5
        seen = ~np.isnan(ranks)
        return np.rint(np.where(seen, sign * ranks, 0.0) * RANK_STEPS).astype(np.int64), seen.astype(np.int32)

    # On the disk.

    @property
    def _file(self) -> Path:
        return self._library.folder / "consensus.npz"

    def _kept(self) -> tuple[dict[str, int], Totals] | None:
        """Return what was kept; a file that is missing or damaged is as none."""
        damaged = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)
        with suppress(*damaged), np.load(io.BytesIO(self._file.read_bytes())) as kept:
            held = dict(zip(kept["names"].tolist(), kept["signs"].tolist(), strict=True))
            if kept["totals"].shape == kept["counts"].shape == self._library.shape(self._window):
                return held, (kept["totals"], kept["counts"])
        return None

    def _keep(self) -> None:
        """Write all of it, whole or not at all; of two processes the last one stays."""
        names: Mapping[str, int] = dict(sorted(self._held.items()))
        assert self._totals is not None
        body = io.BytesIO()
        np.savez(
            body, names=np.array(list(names)), signs=np.array(list(names.values()), np.int64),
            totals=self._totals[0], counts=self._totals[1],
        )  # fmt: skip
        with explained(self._file):
            make_folder(self._file.parent)
            write_whole(self._file, body.getvalue())
