"""Twin names: one company twice, as a renamed ticker, a second share class, or a row that was copied.

Own returns (the market's taken out, in usual units, clipped) of two names that share at least 60 of the sampled days are
correlated; twins are beyond 0.95 on all their common days, and their plain returns are too (two funds of bonds, which hardly
move, share nothing but the market that was taken out). Two names of one industry reach 0.8 to 0.9 when most of their variance is
common; Fisher's z of 0.9 is 0.36 below that of 0.95, which on 250 days is six deviations (1e-9 a pair, 0.0005 in 1,000
names of which all pairs were that close). Names whose returns agree in the sixth digit on nine of ten days are copies.
"""

from __future__ import annotations

import numpy as np

from ..data_warning import DataWarning, first_few, format_count
from .moves import Frame, LogMoves, thin_rows

MIN_TWIN_CORRELATION = 0.95
MIN_CANDIDATE_CORRELATION = 0.9
MIN_COMMON_DAYS = 60
EQUAL_RETURN_TOLERANCE = 1e-6
MIN_COPY_SHARE = 0.9
MAX_TWIN_PAIRS = 2000

TWINS_WHY = "one bet counts twice: ranks, neutral weights and the number of independent names are wrong"
TWINS_REMEDY = "keep one of each pair, the one that trades more"


def twin_names(moves: LogMoves) -> DataWarning | None:
    """Find pairs of names that are one."""
    panel = moves.panel
    if panel.names < 2 or panel.days < MIN_COMMON_DAYS:
        return None
    kept = [(a, b, same) for a, b in candidates(moves) if (same := equal_return_share(moves, a, b)) is not None]
    if not kept:
        return None
    copies = sum(same >= MIN_COPY_SHARE for _, _, same in kept)
    told = first_few(f"{panel.symbols[a]} = {panel.symbols[b]}" for a, b, _ in sorted(kept, key=lambda pair: -pair[2]))
    seen = f"{format_count(len(kept), 'pair')} of names that move as one, {copies} with the same returns on nine days of ten"
    return DataWarning(
        "twin names", seen, len(kept), told, TWINS_WHY, TWINS_REMEDY, {"pairs": len(kept), "copies": copies}
    )


def candidates(moves: LogMoves) -> list[tuple[int, int]]:
    """Return pairs of columns whose own returns correlate beyond 0.9 on the sampled days that both have."""
    unit = thin_rows(moves.unit[1:])
    known = (~np.isnan(unit)).astype(np.float32)
    filled = np.nan_to_num(unit).astype(np.float32)
    size = (filled * filled).T @ known
    with np.errstate(invalid="ignore", divide="ignore"):
        like = (filled.T @ filled) / np.sqrt(size * size.T)
    common = known.T @ known
    enough = min(MIN_COMMON_DAYS, len(unit) // 2)
    pairs = np.argwhere(np.triu((like > MIN_CANDIDATE_CORRELATION) & (common >= enough), 1))
    return [(int(a), int(b)) for a, b in pairs[:MAX_TWIN_PAIRS]]


def equal_return_share(moves: LogMoves, a: int, b: int) -> float | None:
    """Return the share of common days on which two names have the same return; None if they are not twins."""
    first, second = moves.returns[:, a], moves.returns[:, b]
    both = ~(np.isnan(first) | np.isnan(second))
    if both.sum() < MIN_COMMON_DAYS:
        return None
    if (
        correlation(moves.unit[both, a], moves.unit[both, b]) < MIN_TWIN_CORRELATION
        or correlation(first[both], second[both]) < MIN_TWIN_CORRELATION
    ):
        return None
    return float((np.abs(first[both] - second[both]) < EQUAL_RETURN_TOLERANCE).mean())


def correlation(first: Frame, second: Frame) -> float:
    """Return Pearson's correlation; 0 where one of them does not vary."""
    x, y = first - first.mean(), second - second.mean()
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / scale if scale > 0 else 0.0
