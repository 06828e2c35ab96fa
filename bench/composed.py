"""False acceptances of formulas composed from the outcomes of earlier tests, by simulation.

python -m bench.composed                     2,000 markets of 60 names and 250 days, 120 looks each; about two hours
python -m bench.composed --before            the same without the removal of earlier looks: what it is there for

Formulas are independent draws with a memory of a day to a quarter, returns are independent noise, so every acceptance
is false. After each formula had its test, somebody who saw every t composes one more and submits it:

- weighted   ranks added up in proportion to their t, negative ones turned
- words      the equal sum of those with p <= .05, which is all that agents hear
- cubes      the weighted sum of the cubes of the ranks
- product    the product of one plus the weighted ranks of the ten strongest
- delayed    yesterday's weighted sum
- masked     the weighted sum on a random half of the names
- half       the weighted sum and as much fresh noise

The gate's own functions do the rest: the removal over blocks, the Newey-West test with its exact null distribution,
the level of the stream. `bench.adaptive` asks the whole gate, with fewer runs.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from alphaloom.evaluation.checks import share_interval
from alphaloom.evidence.gate.earlier_looks import Removal, list_lags
from alphaloom.evidence.gate.mean_test import run_mean_test
from alphaloom.evidence.multiple_testing.online_fdr import lond_level
from alphaloom.factors import order_rows, rank_rows, row_rank_correlation

Ranks = NDArray[np.float32]
HORIZON: Final = 5
LAG: Final = 2 * HORIZON
MEMORIES: Final = (0.0, 0.5, 0.9, 0.98)
"""Correlation of a formula's values with those of the day before; each formula draws one."""
WATCH_P: Final = 0.05
STRONGEST: Final = 10


@dataclass(frozen=True)
class Market:
    """Formulas' centred ranks `[K, horizon + D, N]`, the label `[D, N]`, and each formula's t and p-value `[K]`."""

    ranks: Ranks
    label: NDArray[np.float64]
    t: NDArray[np.float64]
    p: NDArray[np.float64]

    @classmethod
    def draw(cls, rng: np.random.Generator, looks: int, days: int, names: int) -> Market:
        """Draw a market and test its formulas."""
        memory = rng.choice(MEMORIES, looks).astype(np.float32)[:, None]
        values = rng.standard_normal((HORIZON + days, looks, names), dtype=np.float32)
        for day in range(1, HORIZON + days):
            values[day] = memory * values[day - 1] + np.sqrt(1 - memory**2) * values[day]
        frames = [rank_rows(np.ascontiguousarray(values[:, look])) - 0.5 for look in range(looks)]
        ranks = np.stack(frames).astype(np.float32)
        returns = rng.standard_normal((days + HORIZON, names))
        sums = np.cumsum(np.vstack([np.zeros(names), returns]), axis=0)
        label = (sums[HORIZON:] - sums[:-HORIZON])[:days]
        tests = [run_trial(frame[HORIZON:], label) for frame in ranks]
        return cls(ranks, label, np.array([each[0] for each in tests]), np.array([each[1] for each in tests]))


def run_trial(frame: NDArray[np.floating], label: NDArray[np.float64]) -> tuple[float, float]:
    """Return t and one-sided p-value of a frame `[D, N]` against labels, as a trial computes them."""
    daily = row_rank_correlation(frame.astype(np.float32), order_rows(label))
    found = run_mean_test(daily, None, HORIZON, LAG)
    return found.t, found.p_value(1)


def weigh(market: Market) -> Ranks:
    """Return the ranks added up in proportion to their t, `[horizon + D, N]`."""
    return np.tensordot(market.t.astype(np.float32), market.ranks, axes=1)


def add_words(market: Market) -> Ranks:
    """Return the equal sum of the formulas on the watchlist; zeros where there is none."""
    return np.asarray(market.ranks[market.p <= WATCH_P].sum(axis=0), dtype=np.float32)


def add_cubes(market: Market) -> Ranks:
    """Return the weighted sum of the cubes of the ranks."""
    return np.tensordot(market.t.astype(np.float32), market.ranks**3, axes=1)


def multiply(market: Market) -> Ranks:
    """Return the product of one plus the weighted ranks of the strongest formulas."""
    strongest = np.argsort(-np.abs(market.t))[:STRONGEST]
    signs = np.sign(market.t[strongest]).astype(np.float32)[:, None, None]
    return np.asarray(np.prod(1 + signs * market.ranks[strongest], axis=0), dtype=np.float32)


STRATEGIES: Final[Mapping[str, Callable[[Market, np.random.Generator], Ranks]]] = MappingProxyType(
    {
        "weighted": lambda market, rng: weigh(market),
        "words": lambda market, rng: add_words(market),
        "cubes": lambda market, rng: add_cubes(market),
        "product": lambda market, rng: multiply(market),
        "delayed": lambda market, rng: np.roll(weigh(market), 1, axis=0),
        "masked": lambda market, rng: mask_half(weigh(market), rng),
        "half": lambda market, rng: add_noise(weigh(market), rng),
    }
)


def mask_half(frame: Ranks, rng: np.random.Generator) -> Ranks:
    """Return a frame with half of its names missing, the same ones on all days."""
    masked = frame.copy()
    masked[:, rng.permutation(frame.shape[1])[: frame.shape[1] // 2]] = np.nan
    return masked


def add_noise(frame: Ranks, rng: np.random.Generator) -> Ranks:
    """Return a frame with independent noise of the same spread added."""
    return np.asarray(frame + frame.std() * rng.standard_normal(frame.shape, dtype=np.float32), dtype=np.float32)


def count_acceptances(seed: int, looks: int, days: int, names: int, *, removed: bool) -> Counter[str]:
    """Return by strategy whether its candidate is accepted on the market of a seed."""
    rng = np.random.default_rng([seed, 0xC0])
    market, level = Market.draw(rng, looks, days, names), lond_level(looks + 1, 0)
    removal = Removal([frame for ranks in market.ranks for frame in list_lags(ranks, HORIZON)])
    accepted: Counter[str] = Counter()
    for name, compose in STRATEGIES.items():
        values = np.ascontiguousarray(compose(market, rng)[HORIZON:])
        frame = rank_rows(values).astype(np.float64) - 0.5
        left = removal(frame) if removed else frame
        accepted[name] = int(run_trial(left, market.label)[1] <= level)
    return accepted


def main() -> int:
    """Print the share of markets with a false acceptance, by strategy; 1 if a 95 % limit is above .05."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--markets", type=int, default=2000, help="how many, with the seeds 0, 1, 2 ...")
    options.add_argument("--looks", type=int, default=120)
    options.add_argument("--days", type=int, default=250)
    options.add_argument("--names", type=int, default=60)
    options.add_argument("--before", action="store_true", help="without the removal of earlier looks")
    given = options.parse_args()
    total: Counter[str] = Counter()
    for seed in range(given.markets):
        total.update(count_acceptances(seed, given.looks, given.days, given.names, removed=not given.before))
        if (seed + 1) % 100 == 0:
            sys.stdout.write(f"{seed + 1} markets: {dict(total)}\n")
            sys.stdout.flush()
    highs = []
    for name in STRATEGIES:
        low, high = share_interval(total[name], given.markets)
        highs.append(high)
        sys.stdout.write(f"{name:10s} {total[name]:5d} of {given.markets} (95 % interval {low:.4f} to {high:.4f})\n")
    return int(not given.before and max(highs) > 0.05)


if __name__ == "__main__":
    sys.exit(main())
