"""Count what the gate's null distribution would call significant, on simulated series and on random factors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from alphaloom.evidence.newey_west import LAG_PER_HORIZON, null_distribution

from .cells import HORIZONS, LEVELS, Cell
from .laws import Law
from .market import KEPT, held, listed, spans
from .paths import Paths, banded_sums, changing, moving_sums, t_statistics

BATCH = 2_000
MARKET_DAYS = 12_000
WHAT = {None: "random factors, flat", 20: "new every month", 5: "new every week", 1: "new every day"}


def required(days: int, horizon: int) -> NDArray[np.float64]:
    """Return the t that the gate asks for at each level."""
    null = null_distribution(days, horizon, LAG_PER_HORIZON * horizon)
    return np.array([null.t_required(level) for level in LEVELS])


def t_of(series: Paths, horizon: int) -> NDArray[np.float64]:
    """Return the t of each path, with the gate's lag."""
    values = np.empty(len(series))
    t_statistics(np.ascontiguousarray(series), LAG_PER_HORIZON * horizon, values)
    return values


def beyond(t: NDArray[np.float64], limits: NDArray[np.float64]) -> NDArray[np.int64]:
    """Count the values that reach each limit."""
    return np.array([np.count_nonzero(t >= limit) for limit in limits])


def law_cells(law: Law, days: int, draws: int, seed: Sequence[int]) -> Iterator[Cell]:
    """Simulate one law at one length; the horizons share their shocks."""
    rng, batches = np.random.default_rng(seed), max(draws // law.share // BATCH, 1)
    limits = {horizon: required(days, horizon) for horizon in HORIZONS if law.persistence == 1 or horizon > 1}
    bands = {horizon: changing(days, horizon, law.persistence) for horizon in limits if law.persistence < 1}
    counts = {horizon: np.zeros(len(LEVELS), dtype=np.int64) for horizon in limits}
    series = np.empty((BATCH, days), dtype=np.float32)
    for _ in range(batches):
        shocks = law.shocks(rng, BATCH, days + max(HORIZONS) - 1)
        for horizon, limit in limits.items():
            if bands:
                banded_sums(shocks, bands[horizon], series)
            else:
                moving_sums(shocks, horizon, series)
            t = t_of(series, horizon)
            counts[horizon] += beyond(np.abs(t) if law.symmetric else t, limit)
    tails = 2 if law.symmetric else 1
    for horizon in limits:
        for level, count in zip(LEVELS, counts[horizon], strict=True):
            yield Cell(law.name, law.claimed, days, horizon, level, batches * BATCH, int(count), tails)


def market_cells(days: int, horizon: int, draws: int, seed: int) -> Iterator[Cell]:
    """Count over random factors on markets with nothing in them, as many markets as the draws need."""
    rng, limits = np.random.default_rng(seed), required(days, horizon)
    counts: dict[int | None, list[NDArray[np.int64]]] = {kept: [] for kept in KEPT}
    tried = 0
    while tried < draws:
        for span in spans(listed(seed, MARKET_DAYS), horizon, days):
            pool = span.pool(rng)
            tried += len(pool)
            for kept in KEPT:
                counts[kept].append(beyond(np.abs(t_of(held(pool, kept, rng), horizon)), limits))
        seed += 1
    for kept in KEPT:
        yield from _clustered(f"market: {WHAT[kept]}", np.array(counts[kept]), (days, horizon, tried))


def _clustered(name: str, counts: NDArray[np.int64], asked: tuple[int, int, int]) -> Iterator[Cell]:
    """Yield the cells of one kind of factor; windows differ more than chance, which widens the interval."""
    days, horizon, draws = asked
    for level, found in zip(LEVELS, counts.T, strict=True):
        mean = float(found.mean())
        spread = max(float(found.var(ddof=1)) / mean, 1.0) if mean > 0 else 1.0
        yield Cell(name, True, days, horizon, level, draws, int(found.sum()), 2, spread)
