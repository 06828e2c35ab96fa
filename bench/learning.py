"""What does a valid reply cost if the router learns? Beside always-local, always-frontier, fixed cascade and an oracle.

python -m bench.learning                40 seeds of 4,000 tasks; some minutes
python -m bench.learning --seeds 5      fewer

Success is drawn by the laws below, which change half-way (the local model is exchanged: better at some intents, worse
at others), and prices scatter about their means. A task is asked until its reply is valid, and each failed attempt
costs FAILURE beside its price; so every task ends in one valid reply, and strategies differ in what that took. The
oracle knows the laws of each half and takes the cheapest way. Intervals are 95 %, by bootstrap over seeds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from alphaloom.router.config import LearningSettings
from alphaloom.router.policy.learning import WAYS, TierOutcome, Way, cost_per_valid
from tests.router.learning import FAILURE, PRICE, Cell, Laws, Strategy, World, always, laws, learner


def oracle(key: str, cell: Cell, now: Laws) -> Way:
    """Return the cheapest way by the laws themselves."""
    return min(WAYS, key=lambda way: cost_per_valid(way, now[cell], PRICE, FAILURE))


def held_oracle(key: str, cell: Cell, now: Laws) -> Way:
    """Return the cheapest way that sends nobody's hard prompt to a local model alone below the floor."""
    open_ways = WAYS if cell[1] != "high" or now[cell]["local"] >= LearningSettings().floor else ("frontier", "cascade")
    return min(open_ways, key=lambda way: cost_per_valid(way, now[cell], PRICE, FAILURE))


def nobody(_: TierOutcome) -> None:
    """Learn nothing."""


def strategies(seed: int) -> dict[str, tuple[Strategy, Callable[[TierOutcome], None]]]:
    """Return every strategy, and who hears of its outcomes."""
    free, held = learner(seed, floor=0.0), learner(seed, try_hard_locally=True)
    return {
        "always local": (always("local"), nobody),
        "always frontier": (always("frontier"), nobody),
        "always cascade": (always("cascade"), nobody),
        "learner": (lambda key, cell, now: free.decide(key, *cell).way, free.record),
        "oracle": (oracle, nobody),
        "learner, floor 0.9": (lambda key, cell, now: held.decide(key, *cell).way, held.record),
        "oracle, floor 0.9": (held_oracle, nobody),
    }


def measured(seeds: int, tasks: int, halves: Sequence[Laws]) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Return US dollars for a valid reply by strategy and seed, and hard prompts that went to a poor local model."""
    found: dict[str, list[float]] = {}
    below: dict[str, int] = {}
    for seed in range(seeds):
        for name, (strategy, learn) in strategies(seed).items():
            world = World(seed, tasks)
            found.setdefault(name, []).append(world.play(strategy, learn, halves))
            below[name] = below.get(name, 0) + world.below_floor
    return found, below


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean with its 95 % bootstrap interval."""
    drawn: NDArray[np.float64] = np.random.default_rng(0).choice(np.asarray(values), size=(4000, len(values)))
    low, high = np.quantile(drawn.mean(axis=1), [0.025, 0.975])
    return float(np.mean(values)), float(low), float(high)


def table(found: Mapping[str, Sequence[float]], below: Mapping[str, int]) -> str:
    """Return the table as text: thousandths of a dollar, and multiples of the oracle's."""
    lines = [f"{'strategy':20s} {'0.001 US$ per valid reply':28s} {'over the oracle':24s} hard below the floor"]
    for name, values in found.items():
        best = found["oracle, floor 0.9" if "floor" in name else "oracle"]
        cost = interval([1000 * value for value in values])
        over = interval([each / least for each, least in zip(values, best, strict=True)])
        shown = f"{cost[0]:6.2f} ({cost[1]:.2f} to {cost[2]:.2f})"
        lines.append(f"{name:20s} {shown:28s} {f'{over[0]:.3f} ({over[1]:.3f} to {over[2]:.3f})':24s} {below[name]}")
    return "\n".join(lines)


def main() -> int:
    """Measure and print; 1 if what learns is not cheaper than each fixed way."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=40)
    options.add_argument("--tasks", type=int, default=4000)
    given = options.parse_args()
    worse = False
    for title, halves in (("laws that stay", [laws(0)]), ("laws that change half-way", [laws(0), laws(1)])):
        found, below = measured(given.seeds, given.tasks, halves)
        sys.stdout.write(f"{title}; {given.seeds} seeds of {given.tasks} tasks\n{table(found, below)}\n\n")
        sys.stdout.flush()
        fixed = min(interval(found[f"always {way}"])[0] for way in WAYS)
        worse = worse or interval(found["learner"])[0] >= fixed
    return int(worse)


if __name__ == "__main__":
    sys.exit(main())
