"""The accepted factors as one score: the mean of their signed ranks, weights fixed on search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..factors import rank_rows
from ..ledger.files import make_file
from ..market import Panel


@dataclass(frozen=True)
class CombinationPart:
    """One accepted factor or set in the combination; `sign` is its direction on search."""

    factor_id: str
    sign: int
    values: NDArray[np.float32]


def combine_ranks(parts: Sequence[CombinationPart]) -> NDArray[np.float32]:
    """Return the mean of the parts' ranks, each centred at 0 and turned by its sign.

    Parameters
    ----------
    parts
        At least one; values `[T, N]`.

    Returns
    -------
    NDArray[np.float32]
        `[T, N]` in [-0.5, 0.5]; NaN where no part has a value. A part without a value there is left out of the mean.
    """
    total = np.zeros(parts[0].values.shape)
    count = np.zeros(parts[0].values.shape)
    for part in parts:
        ranks = part.sign * (rank_rows(part.values) - 0.5)
        seen = ~np.isnan(ranks)
        total += np.where(seen, ranks, 0.0)
        count += seen
    return np.where(count > 0, total / np.maximum(count, 1), np.nan).astype(np.float32)


def write_combination(score: NDArray[np.float32], panel: Panel, path: Path) -> int:
    """Write a score as a tidy Parquet file (date, symbol, score), whole or not at all, and return its rows."""
    import pandas as pd

    rows, columns = np.nonzero(~np.isnan(score))
    symbols = np.array(panel.symbols, dtype=object)
    frame = pd.DataFrame(
        {"date": panel.dates[rows].astype("datetime64[s]"), "symbol": symbols[columns], "score": score[rows, columns]}
    )
    unfinished = path.with_suffix(".unfinished")
    make_file(unfinished)
    try:
        frame.to_parquet(unfinished, index=False, compression="zstd")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)  # what a full disk cut off
    return len(frame)
