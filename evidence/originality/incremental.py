"""The incremental value of a factor: the residual of its ranks on those of the library, by regression day by day.

The library as a whole is the mean of its factors' signed ranks (`Consensus`). Ranks are added as integers, so the sum
does not depend on the order of factors, and the workspace can store it and add later factors.
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
from ..newey_west import NeweyWest, newey_west_t
from ..scoring.metrics import round_significant
from ..scoring.scorer import Scorer
from ..windows import Window
from .redundancy import LibraryValues

Frame = NDArray[np.float64]
Values = NDArray[np.float32]
MAX_NEAREST_FACTORS = 5
"""Factors of the library that are removed one by one, beside the library as a whole."""
MIN_RESIDUAL_NAMES = 10
MIN_SPREAD_LEFT = 1e-4
"""Share of a day's rank variance below which the residual counts as rounding."""
MIN_ADDED_T = 2.0

RANK_STEPS = 1 << 30
"""Integer steps from the lowest to the highest rank: far finer than a float32 resolves."""
Totals = tuple[NDArray[np.int64], NDArray[np.int32]]


@dataclass(frozen=True)
class Addition:
    """The incremental value of a factor beside the library, on the search window.

    Attributes
    ----------
    rank_ic, t
        Mean daily RankIC of the residual, and its Newey-West t; NaN where there is no residual.
    kept
        Share of the variance of its ranks that is left, mean over days.
    against
        Ids of the factors that were removed one by one, the most correlated first.
    library
        Number of factors in the library's mean.
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
        """Return a warning that the residual is not significant; `rank_ic` is the factor's own. Empty where it is."""
        if not np.isfinite(self.t) and not np.isfinite(self.kept):
            return ""  # the library has no value on any day
        if not np.isfinite(self.t):
            subject = "factor says" if self.library == 1 else "factors say"
            return f"the library's {self.library} {subject} all that it says"
        if abs(self.t) >= MIN_ADDED_T and self.rank_ic * (rank_ic or 0.0) > 0:
            return ""
        own_text = "" if rank_ic is None else f" of {rank_ic:+.4f}"
        figures = f"RankIC {self.rank_ic:+.4f}{own_text}, t {self.t:+.1f}"
        return f"little is left beside the library's {format_count(self.library, 'factor')}: {figures}"


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

        On each day the ranks are regressed on the mean of the library's signed ranks and on the ranks of the five most
        correlated factors. A name without a value in one of these five gets its middle rank.
        """
        count = len(set(self.library) - {but})
        if not count:
            return None
        nearest = tuple(overlap.factor_id for overlap in self.library.nearest(values, MAX_NEAREST_FACTORS, but))
        ranked = [cut_ranks(self.library.values(name), self.window) for name in nearest]
        residual, share = residual_ranks(cut_ranks(values, self.window), [self.consensus.without(but), *ranked])
        test = _test_residual(residual, self.scorer, self.window)
        return Addition(test.mean, test.t, share, nearest, count)


def cut_ranks(values: Values, window: Window) -> Frame:
    """Return the centred ranks of values `[T, N]` on a window's days, `[days, N]` in [-0.5, 0.5]; NaN missing."""
    return rank_rows(np.ascontiguousarray(window.cut(values))) - 0.5


def _test_residual(residual: Frame, scorer: Scorer, window: Window) -> NeweyWest:
    frame = np.full(scorer.panel.universe.shape, np.nan, np.float32)
    window.cut(frame)[:] = residual
    return newey_west_t(scorer.daily_rank_ic(frame, window), scorer.lag)


def measure_beside(values: Values, other: Values, scorer: Scorer, window: Window) -> Addition:
    """Return what one factor adds beside one other on a window.

    Parameters
    ----------
    values, other
        Values ``[T, N]`` of the panel's days, NaN missing. Names without both are left out of the regression.

    Returns
    -------
    Addition
        RankIC and t are NaN where nothing is left, for example of a factor beside itself.
    """
    residual, share = residual_ranks(cut_ranks(values, window), [cut_ranks(other, window)])
    test = _test_residual(residual, scorer, window)
    return Addition(test.mean, test.t, share, (), 1)


def residual_ranks(ranks: Frame, others: Sequence[Frame]) -> tuple[Frame, float]:
    """Return the residual of ranks on others, day by day, by least squares with a constant.

    Parameters
    ----------
    ranks
        Centred ranks `[days, N]`, NaN missing.
    others
        Regressors, each `[days, N]`. Where the first is NaN the residual is NaN; NaN in the rest counts as 0.

    Returns
    -------
    tuple
        The residual `[days, N]`: NaN on days with fewer than 10 names, without spread, or with less than 1e-4 of the
        variance left. And the share of the variance that is left, mean over days with enough names, NaN if none has.
    """
    residuals = np.full(ranks.shape, np.nan)
    shares = []
    for day in range(len(ranks)):
        present = ~np.isnan(ranks[day]) & ~np.isnan(others[0][day])
        centred = ranks[day][present]
        if centred.size < MIN_RESIDUAL_NAMES or np.ptp(centred) == 0:
            continue
        centred = centred - centred.mean()
        design = np.column_stack([np.ones(centred.size), *(np.nan_to_num(other[day][present]) for other in others)])
        residual = centred - design @ np.linalg.lstsq(design, centred, rcond=1e-9)[0]
        shares.append(float(residual @ residual / (centred @ centred)))
        if shares[-1] >= MIN_SPREAD_LEFT:
            residuals[day, present] = residual
    return residuals, float(np.mean(shares)) if shares else float("nan")


class Consensus:
    """The mean signed rank of a library's factors: the same sum as in `portfolio.combination.combine_ranks`."""

    def __init__(self, library: LibraryValues, window: Window) -> None:
        self._library, self._window = library, window
        self._summed_signs: dict[str, int] = {}
        self._totals: Totals | None = None

    def without(self, but: str = "") -> NDArray[np.float64]:
        """Return the mean over all factors but `but`, `[days, N]` in [-0.5, 0.5]; NaN where none has a value."""
        total, count = self._sum_ranks()
        if but in self._summed_signs:
            ranks, present = self._scale_ranks(self._library.values(but), self._summed_signs[but])
            total, count = total - ranks, count - present
        return np.where(count > 0, total / np.maximum(count, 1) / RANK_STEPS, np.nan)

    def _sum_ranks(self) -> Totals:
        directions = {name: self._library.direction(name) for name in self._library}
        if self._totals is None:
            self._summed_signs, self._totals = self._read_totals() or ({}, self._zero_totals())
        if any(directions.get(name) != sign for name, sign in self._summed_signs.items()):
            self._summed_signs, self._totals = (
                {},
                self._zero_totals(),
            )  # the stored sum has factors that this run does not see
        missing = [name for name in directions if name not in self._summed_signs]
        for name, values in self._library.stream(missing):
            ranks, present = self._scale_ranks(values, directions[name])
            self._totals = self._totals[0] + ranks, self._totals[1] + present
            self._summed_signs[name] = directions[name]
        if missing:
            self._write_totals()
        return self._totals

    def _zero_totals(self) -> Totals:
        shape = self._library.shape(self._window)
        return np.zeros(shape, np.int64), np.zeros(shape, np.int32)

    def _scale_ranks(self, values: NDArray[np.float32], sign: int) -> Totals:
        """Return signed centred ranks as integers, and 1 where there is one."""
        ranks = cut_ranks(values, self._window)
        present = ~np.isnan(ranks)
        return np.rint(np.where(present, sign * ranks, 0.0) * RANK_STEPS).astype(np.int64), present.astype(np.int32)

    # On the disk.

    @property
    def _file(self) -> Path:
        return self._library.folder / "consensus.npz"

    def _read_totals(self) -> tuple[dict[str, int], Totals] | None:
        """Return the stored sum; None if the file is missing or damaged."""
        damaged = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)
        with suppress(*damaged), np.load(io.BytesIO(self._file.read_bytes())) as arrays:
            signs = dict(zip(arrays["names"].tolist(), arrays["signs"].tolist(), strict=True))
            if arrays["totals"].shape == arrays["counts"].shape == self._library.shape(self._window):
                return signs, (arrays["totals"], arrays["counts"])
        return None

    def _write_totals(self) -> None:
        """Write the sum atomically; of two processes the last one wins."""
        names: Mapping[str, int] = dict(sorted(self._summed_signs.items()))
        assert self._totals is not None
        body = io.BytesIO()
        np.savez(
            body,
            names=np.array(list(names)),
            signs=np.array(list(names.values()), np.int64),
            totals=self._totals[0],
            counts=self._totals[1],
        )
        with explained(self._file):
            make_folder(self._file.parent)
            write_whole(self._file, body.getvalue())
