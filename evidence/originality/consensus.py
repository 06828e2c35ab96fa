"""What the library says together, on the days of the search window: the mean of its factors' signed ranks.

Ranks are added as whole numbers, so that the sum is the same in whatever order factors came, and one that comes later is
added to what is kept in the workspace.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...factors import rank_rows
from ...ledger.database import explained
from ...ledger.files import make_folder, write_whole
from ..windows import Window
from .redundancy import LibraryValues

__all__ = ["Consensus"]

RANK_STEPS = 1 << 30
"""Steps of a rank from the lowest to the highest: far below what a float32 can tell."""
Totals = tuple[NDArray[np.int64], NDArray[np.int32]]


class Consensus:
    """The mean signed rank of a library's factors; see `combine`, of which this is the same sum."""

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
