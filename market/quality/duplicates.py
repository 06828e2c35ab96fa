"""Duplicates: one company under two symbols (a renamed ticker, a second share class, a copied row), and copied columns.

Own returns (the market's taken out, in usual units, clipped) of two symbols that share at least 60 of the sampled days
are correlated; twins are beyond 0.95 on all their common days, and their plain returns are too (two funds of bonds,
which hardly move, share nothing but the market that was taken out). Two symbols of one industry reach 0.8 to 0.9 when
most of their variance is common; Fisher's z of 0.9 is 0.36 below that of 0.95, which on 250 days is six deviations
(1e-9 a pair, 0.0005 in 1,000 symbols of which all pairs were that close). Symbols whose returns agree in the sixth
digit on nine of ten days are copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ..errors import DataWarning, first_few, format_count
from .moves import Frame, LogMoves, thin_rows

MIN_TWIN_CORRELATION = 0.95
MIN_CANDIDATE_CORRELATION = 0.9
MIN_COMMON_DAYS = 60
EQUAL_RETURN_TOLERANCE = 1e-6
MIN_COPY_SHARE = 0.9
MAX_TWIN_PAIRS = 2000
MIN_COPIED_SHARE = 0.99
MIN_REPEATED_SHARE, MIN_REPEATED_DAYS = 0.5, 40
SAMPLED_DAYS = 200
PROBED_CELLS, MIN_PROBES = 64, 16
"""Cells in which columns are compared first, and those of them below which a pair is compared in all cells.

A pair that is equal in 0.99 of the known cells is equal in fewer than half of 16 by chance in one case of 10^14.
"""

TWINS_WHY = "one bet counts twice: ranks, neutral weights and the number of independent names are wrong"
TWINS_REMEDY = "keep one of each pair, the one that trades more"


def find_twin_symbols(moves: LogMoves) -> DataWarning | None:
    """Warn of pairs of symbols that are one company."""
    panel = moves.panel
    if panel.names < 2 or panel.days < MIN_COMMON_DAYS:
        return None
    pairs = [
        (a, b, same) for a, b in find_candidate_pairs(moves) if (same := measure_equal_returns(moves, a, b)) is not None
    ]
    if not pairs:
        return None
    copies = sum(same >= MIN_COPY_SHARE for _, _, same in pairs)
    cases = first_few(
        f"{panel.symbols[a]} = {panel.symbols[b]}" for a, b, _ in sorted(pairs, key=lambda pair: -pair[2])
    )
    observation = (
        f"{format_count(len(pairs), 'pair')} of names that move as one, "
        f"{copies} with the same returns on nine days of ten"
    )
    return DataWarning(
        "twin names", observation, len(pairs), cases, TWINS_WHY, TWINS_REMEDY, {"pairs": len(pairs), "copies": copies}
    )


def find_candidate_pairs(moves: LogMoves) -> list[tuple[int, int]]:
    """Return pairs of symbols, as columns, whose own returns correlate above 0.9 on the sampled days known for both."""
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


def measure_equal_returns(moves: LogMoves, a: int, b: int) -> float | None:
    """Return the share of common days on which two symbols have the same return; None if they are not twins."""
    first, second = moves.returns[:, a], moves.returns[:, b]
    both = ~(np.isnan(first) | np.isnan(second))
    if both.sum() < MIN_COMMON_DAYS:
        return None
    if (
        compute_correlation(moves.unit[both, a], moves.unit[both, b]) < MIN_TWIN_CORRELATION
        or compute_correlation(first[both], second[both]) < MIN_TWIN_CORRELATION
    ):
        return None
    return float((np.abs(first[both] - second[both]) < EQUAL_RETURN_TOLERANCE).mean())


def compute_correlation(first: Frame, second: Frame) -> float:
    """Return Pearson's correlation; 0 where one of them does not vary."""
    x, y = first - first.mean(), second - second.mean()
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / scale if scale > 0 else 0.0


def find_twin_columns(moves: LogMoves) -> DataWarning | None:
    """Warn of columns with another column's values, and of opens that repeat the close of the day before."""
    panel = moves.panel
    step = max(1, panel.days // SAMPLED_DAYS)
    sample = {name: values[1::step] for name, values in panel.fields.items() if name != "returns"}
    pairs = (pair for pair in find_like_columns(sample) if pair != ("close", "close_raw"))
    twins = (pair for pair in pairs if compute_equal_share(*map(sample.__getitem__, pair)) > MIN_COPIED_SHARE)
    cases = [f"{a} = {b}" for a, b in islice(twins, MAX_TWIN_PAIRS)]
    if (
        panel.days > MIN_REPEATED_DAYS
        and compute_equal_share(panel.fields["open"][1:], panel.fields["close"][:-1]) > MIN_REPEATED_SHARE
    ):
        cases.append("open = the close of the day before")
    if not cases:
        return None
    least = "at least " if len(cases) >= MAX_TWIN_PAIRS else ""
    observation = f"{least}{format_count(len(cases), 'pair')} of columns with the same values"
    why = "one of them is not what its name says: labels and fills at such an open are made up, and ranges are none"
    return DataWarning(
        "twin columns", observation, len(cases), first_few(cases), why, "give the true column, or leave it out"
    )


def find_like_columns(sample: Mapping[str, NDArray[np.float64]]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of columns that may be copies, by name: those that are equal in half of the probed cells.

    All pairs of thousands of columns would take minutes to compare cell by cell.
    """
    names = sorted(sample)
    size = sample[names[0]].size
    if not size:
        return
    cells = np.random.default_rng(0).integers(size, size=PROBED_CELLS)
    probes = np.stack([np.ravel(sample[name])[cells] for name in names])
    known = np.isfinite(probes)
    for place, name in enumerate(names[:-1]):
        equal = (probes[place + 1 :] == probes[place]).sum(axis=1)
        either = (known[place + 1 :] | known[place]).sum(axis=1)
        alike = np.flatnonzero((2 * equal >= either) | (either < MIN_PROBES))
        yield from ((name, names[place + 1 + other]) for other in alike.tolist())


def compute_equal_share(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the share of equal cells among those known in either column."""
    either = int((np.isfinite(first) | np.isfinite(second)).sum())
    return int((first == second).sum()) / either if either else 0.0
