"""Coverage: how much of planted formulas others explain, by how these are chosen. No return is looked at.

What is like nothing that was scored cannot be forecast. So before promise counts, formulas are worth scoring for what
they tell of the rest. Three ways to choose one of sixteen random formulas, again and again, are held against each
other.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from alphaloom.factors import Expression, FactorError, express, parse
from alphaloom.factors.space.search_space import sample_plain, select_fields
from alphaloom.search.surrogate.candidate_pool import CandidatePool
from alphaloom.search.surrogate.gaussian_process import GaussianProcess, ScoredFormula, explained_share
from alphaloom.search.surrogate.subsample import SubsampledPanel

from .market import Size, worlds
from .planted import FOLDER
from .world import World

__all__ = ["WAYS", "explained", "main"]

Frame = NDArray[np.float64]
POOL = 16
"""Random formulas of which one is chosen."""
AT = (50, 100, 200, 400)

Way = Callable[[GaussianProcess, NDArray[np.float32]], Frame]
"""Returns the worth of each formula of a pool ``[M, cells]``."""
WAYS: dict[str, Way] = {
    "the first": lambda _, ranks: -np.arange(len(ranks), dtype=np.float64),
    "the most unlike": lambda basis, ranks: -explained_share(basis.decorrelate(basis.across(ranks))),
    "the most telling": lambda basis, ranks: basis.measure_information(ranks, basis.decorrelate(basis.across(ranks))),
}


def main(given: Sequence[str]) -> int:
    """Choose formulas on every market in every way, and print what they explain of its planted ones."""
    options = arguments(given)
    found: dict[str, list[list[float]]] = {name: [] for name in WAYS}
    for seed, world in worlds(options.seeds, Size(options.days, options.names), options.folder):
        for name, way in WAYS.items():
            found[name].append(explained(world, way, seed, options.at))
    print(f"share of the ranks of planted formulas explained, mean of {options.seeds} markets, one of {POOL} chosen\n")
    print(f"{'chosen:':18}" + "".join(f"{count:>8,}" for count in options.at))
    for name, rows in found.items():
        print(f"{name:18}" + "".join(f"{share:8.2f}" for share in np.mean(rows, axis=0)))
    return 0


def explained(world: World, way: Way, seed: int, at: Sequence[int]) -> list[float]:
    """Return how much of a market's planted formulas is explained after so many choices."""
    thin, fields = SubsampledPanel(world.panel, world.windows.search), tuple(world.panel.fields)
    population, drawn = CandidatePool(thin, fields), _drawn(fields, seed)
    formulas = [parse(alpha.text, fields=fields) for alpha in world.alphas]
    planted = np.array([look.ranks for look in thin.fingerprint(formulas)])
    basis, told = GaussianProcess(), []
    for count in range(1, max(at) + 1):
        pool = [next(drawn) for _ in range(POOL)]
        ranks = np.array([look.ranks for look in thin.fingerprint(pool)])
        basis = basis.with_references(population.get_reference_ranks(count - 1))
        worth = np.where(ranks.any(axis=1), way(basis, ranks), -np.inf)
        best = int(worth.argmax())
        basis = basis.with_formulas([pool[best].id], [ScoredFormula(pool[best], 0.0, 0.0)], ranks[best : best + 1])
        if count in at:
            told.append(float(explained_share(basis.decorrelate(basis.across(planted))).mean()))
    return told


def _drawn(fields: Sequence[str], seed: int) -> Iterator[Expression]:
    """Yield formulas of the plain part of the language, each once."""
    rng, seen = np.random.default_rng([seed, POOL]), set()  # other formulas than the population's
    while True:
        tree = sample_plain(rng, select_fields(fields))
        try:
            one = express(tree, fields=fields) if tree is not None else None
        except FactorError:
            continue
        if one is not None and one.id not in seen:
            seen.add(one.id)
            yield one


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.search coverage", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many markets")
    parser.add_argument("--days", type=int, default=2520, help="of a market")
    parser.add_argument("--names", type=int, default=500, help="in a market")
    parser.add_argument("--at", type=int, nargs="+", default=list(AT), help="numbers of choices")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where markets are kept")
    return parser.parse_args(given)
