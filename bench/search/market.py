"""Planted markets: alphas drawn from the grammar by the market's seed, some of which fade or die.

A market is used only if five to eight of its alphas live in the sealed span and a third of those have a form that no
library and no list holds; else its seed is refused, with the reason, and the next one is taken.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from alphaloom.evidence.windows import Window
from alphaloom.factors import PlantSettings, build_planted_market, parse
from alphaloom.ledger import compute_digest
from alphaloom.market import PlantedAlpha, SyntheticConfig, SyntheticMarket

from .known import form, known_forms
from .rooms import state_of
from .world import Alpha, World, labelled

__all__ = ["PLANTS", "Size", "life_in", "objection", "say", "told", "worlds"]

PLANTS = PlantSettings(count=10, rank_ic=(0.02, 0.04), nodes=(4, 6), fading=0.2, dying=0.2)
"""Ten alphas of two or three operators, of a five-day RankIC between 0.02 and 0.04; two fade, two die."""
LEAST_LIFE = 0.25
"""Mean share of its strength that an alpha must have on sealed days to be alive there."""
LEAST_T = 4.0
"""An alpha whose true formula shows less on search days could be found by luck only."""
ALIVE = (5, 8)
LEAST_NEW = 1 / 3
MOST_REFUSED = 20


@dataclass(frozen=True)
class Size:
    """Days and names of a market."""

    days: int = 2520
    names: int = 500

    def config(self, seed: int) -> SyntheticConfig:
        """Return the configuration of a market."""
        return SyntheticConfig(seed=seed, days=self.days, names=self.names)


def worlds(count: int, size: Size, folder: Path, first: int = 0) -> Iterator[tuple[int, World]]:
    """Yield seeds and markets from the first seed on; a seed that is refused is told and left out."""
    refused, seed = 0, first
    while count:
        world = world_of(seed, size, folder)
        if reason := objection(world.alphas):
            say(f"seed {seed}: refused, {reason}")
            refused += 1
            if refused > MOST_REFUSED:
                raise SystemExit(f"{refused} seeds were refused, the last one since {reason}")
        else:
            count -= 1
            yield seed, world
        seed += 1


def world_of(seed: int, size: Size, folder: Path) -> World:
    """Return a market with its labels, and what is true of it."""
    made, known = simulated(seed, size, folder), known_forms(folder)
    world = labelled(f"synthetic-{seed}", made.panel)
    alphas = tuple(_alpha(plant, world, form(parse(plant.text)) in known) for plant in made.plants)
    return replace(world, expected=made.expected_return.astype(np.float32), alphas=alphas)


def simulated(seed: int, size: Size, folder: Path) -> SyntheticMarket:
    """Return a market, simulated once and kept in a folder under a digest of what decides it."""
    config = size.config(seed)
    name = compute_digest(
        [config.model_dump(mode="json"), PLANTS.model_dump(mode="json"), state_of("factors", "market")]
    )[:12]
    kept = folder / "markets" / f"seed-{seed:03d}-{name}.pickle"
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        say(f"seed {seed}: simulating {size.days:,} days x {size.names:,} names, once")
        unfinished = kept.with_suffix(".unfinished")
        unfinished.write_bytes(pickle.dumps(build_planted_market(config, PLANTS)))
        unfinished.replace(kept)
    market: SyntheticMarket = pickle.loads(kept.read_bytes())
    return market


def objection(alphas: tuple[Alpha, ...]) -> str:
    """Say why a market may not be used, or nothing."""
    alive = [alpha for alpha in alphas if alpha.alive]
    new = [alpha for alpha in alive if not alpha.known]
    low, high = ALIVE
    if not low <= len(alive) <= high:
        return f"{len(alive)} alphas live in the sealed span, {low} to {high} are asked"
    if len(new) < LEAST_NEW * len(alive):
        return f"{len(new)} of {len(alive)} alphas are in no library or list, a third is asked"
    if not any(alpha.counts for alpha in alive):
        return f"no alpha that lives in the sealed span has a t of {LEAST_T:.0f} on search days"
    return ""


def life_in(window: Window, plant: PlantedAlpha) -> float:
    """Return the mean share of its strength that an alpha has on the days of a window."""
    days = np.arange(window.start, window.stop)
    fading = 1.0 if plant.half_life_days is None else 0.5 ** ((days - plant.first_day) / plant.half_life_days)
    return float(np.mean(np.where((days >= plant.first_day) & (days < plant.end_day), fading, 0.0)))


def told(seed: int, world: World) -> str:
    """Return a table of what was planted."""
    living = sum(alpha.alive for alpha in world.alphas)
    lines = [
        f"seed {seed}: {len(world.counted)} alphas to be found of {living} that live",
        "  RankIC  search t  life in the sealed span",
    ]
    for alpha in sorted(world.alphas, key=lambda each: -each.life * each.rank_ic):
        asked = "found?" if alpha.counts else "left out: faint on search" if alpha.alive else "not alive"
        origin = "known" if alpha.known else "new"
        lines.append(f"  {alpha.rank_ic:6.3f}  {alpha.t:8.1f}  {alpha.life:6.2f}  {origin:6} {asked:26} {alpha.text}")
    return "\n".join(lines)


def say(text: str) -> None:
    """Tell progress."""
    print(text, file=sys.stderr, flush=True)


def _alpha(plant: PlantedAlpha, world: World, known: bool) -> Alpha:
    """Measure a planted alpha: its life on sealed days, and what its own formula shows on search days."""
    life = life_in(world.windows.sealed, plant)
    t = world.ground().score(parse(plant.text)).t
    alive = life >= LEAST_LIFE
    fate = (plant.first_day, plant.end_day, plant.half_life_days)
    return Alpha(plant.text, plant.rank_ic, *fate, life, t, known, alive, alive and t >= LEAST_T)
