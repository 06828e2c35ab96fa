"""Planted markets: what each method finds of alphas that were drawn from the grammar, at equal evaluations."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .cells import Cells
from .market import PLANTS, Size, say, told, worlds
from .methods.campaign import Alphaloom
from .methods.method import Allowance, Method
from .methods.oracle import Oracle
from .methods.outside import boosted, genetic
from .methods.sampled import Sampled
from .methods.skeletons import Skeletons
from .methods.textbook import Textbook
from .scoring import Truth
from .table import table
from .world import World

__all__ = ["main"]

FOLDER = Path(tempfile.gettempdir()) / "alphaloom-search"


def main(given: Sequence[str]) -> int:
    """Search every market by every method, and print what each found."""
    options = arguments(given)
    size, cells = Size(options.days, options.names), Cells(options.folder)
    rows: dict[str, list[dict[str, Any]]] = {}
    for seed, world in worlds(options.seeds, size, options.folder, options.first):
        print(told(seed, world) + "\n", flush=True)
        truth = Truth.of(world)
        for method in methods(world, options.method, tuple(options.set)):
            row = cells.row(world, truth, method, Allowance(options.evaluations), seed)
            rows.setdefault(method.name, []).append(row)
            say(table({method.name: [row]}).splitlines()[-1])
    low, high = PLANTS.rank_ic
    print(f"{options.seeds} markets of {size.days:,} days x {size.names:,} names, alphas of RankIC {low} to {high}, ")
    print(f"{options.evaluations:,} evaluations: medians, in brackets the lowest and the highest\n")
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0


def methods(world: World, asked: Sequence[str], given: tuple[str, ...] = ()) -> list[Method]:
    """Return the methods, those whose name holds one of the asked words; those that cannot run are told."""
    known: list[Method] = [
        Oracle(world.alphas), Oracle(world.alphas, living=True), Textbook(), Skeletons(), Sampled(), genetic(), boosted(),
        Alphaloom(overrides=given),
    ]  # fmt: skip
    wanted = [each for each in known if not asked or any(word in each.name for word in asked)]
    for each in wanted:
        if reason := each.missing():
            say(f"{each.name}: left out, {reason}")
    return [each for each in wanted if not each.missing()]


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search planted", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many markets")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--days", type=int, default=2520, help="of a market")
    parser.add_argument("--names", type=int, default=500, help="in a market")
    parser.add_argument("--evaluations", type=int, default=2000, help="that each method may spend")
    parser.add_argument("--method", action="append", default=[], help="only methods whose name holds this")
    parser.add_argument(
        "--set", action="append", default=[], help="a setting of Alphaloom's campaigns: agents.rounds=40"
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where markets and answers are kept")
    parser.add_argument("--json", type=Path, help="write every row here")
    return parser.parse_args(given)
