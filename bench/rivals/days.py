"""Days of ranks as rivals see them: search days that are learnt from, and the RankIC of what they foretell."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Days:
    """Some search days: features ``[F, D, N]`` as on disk, labels ``[D, N]`` (NaN: none)."""

    features: NDArray[np.float16]
    label: Array
    rows: NDArray[np.int64]

    @classmethod
    def read(cls, folder: Path, step: int) -> Days:
        """Return every few search days of a folder."""
        label = np.load(folder / "label.npy")
        rows = np.arange(0, len(label), step)
        return cls(np.load(folder / "features.npy", mmap_mode="r"), label[rows], rows)

    def part(self, chosen: NDArray[np.bool_]) -> Days:
        """Return some of the days."""
        return Days(self.features, self.label[chosen], self.rows[chosen])

    def table(self) -> Array:
        """Return the features of all cells, ``[D * N, F]``, column by column in memory."""
        cells = self.label.size
        out = np.empty((len(self.features), cells), np.float32)
        for place, feature in enumerate(self.features):
            out[place] = feature[self.rows].ravel()
        return out.T


def daily_rank_ic(values: Array, label: Array) -> NDArray[np.float64]:
    """Return the correlation of each day's ranks with the label's, ``[D]``; 0 where all values of a day are equal.

    Ties are broken by place, which is of no consequence to a search: what matters is counted again outside.
    """
    there = ~np.isnan(label) & np.isfinite(values)
    filled = np.where(there, values, np.inf)
    order = np.argsort(filled, axis=1)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(order.shape[1])[None, :], axis=1)
    count = np.maximum(there.sum(axis=1, keepdims=True), 1)
    mine = np.where(there, ranks - (count - 1) / 2, 0.0)
    goal = np.where(there, label, 0.0)
    goal = np.where(there, goal - goal.sum(axis=1, keepdims=True) / count, 0.0)
    size = np.sqrt((mine**2).sum(axis=1) * (goal**2).sum(axis=1))
    flat = np.where(there, values, np.nan)
    spread = np.nanmax(flat, axis=1, initial=-np.inf) > np.nanmin(flat, axis=1, initial=np.inf)
    found: NDArray[np.float64] = np.where(spread & (size > 0), (mine * goal).sum(axis=1) / np.maximum(size, 1e-12), 0.0)
    return found


@dataclass(frozen=True)
class Asked:
    """What a rival's process is asked: its folder, its seed, and evaluations or, where they are given, CPU seconds."""

    folder: Path
    seed: int
    evaluations: int
    cpu_s: float | None

    @classmethod
    def read(cls) -> Asked:
        """Read the command line: a folder with ``asked.json``."""
        folder = Path(sys.argv[1])
        told = json.loads((folder / "asked.json").read_text())
        return cls(folder, told["seed"], told["evaluations"], told["cpu_s"])

    @property
    def left(self) -> float:
        """Return the CPU seconds that are left; endless where evaluations are counted."""
        return float("inf") if self.cpu_s is None else self.cpu_s - time.process_time()

    def answer(self, **found: Any) -> None:
        """Write the answer: arrays as a file of their own, the rest as JSON."""
        np.save(self.folder / "values.npy", found.pop("values"))
        (self.folder / "answer.json").write_text(json.dumps(found))
