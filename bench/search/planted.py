"""Planted markets: what each method finds of alphas that were drawn from the grammar.

Two tables: at equal evaluations, and at the CPU seconds that Alphaloom took on the same market. What is kept is not
searched again, so the same command goes on after an interruption.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..engine.environments import SKIPPED, default_folder
from .cells import Cells
from .market import PLANTS, Size, say, told, worlds
from .methods.campaign import ABLATIONS, NAME, Alphaloom
from .methods.method import Allowance, Method
from .methods.oracle import Oracle
from .methods.outside import boosted, genetic
from .methods.sampled import Sampled
from .methods.skeletons import Skeletons
from .methods.textbook import Textbook
from .picture import draw
from .promises import kept
from .scoring import Truth
from .table import table
from .world import World

__all__ = ["FOLDER", "able", "main", "searches"]

FOLDER = Path(tempfile.gettempdir()) / "alphaloom-search"
Rows = dict[str, list[dict[str, Any]]]
ROUNDED_S = 10
"""CPU seconds are given to rivals in tens, rounded up."""


def main(given: Sequence[str]) -> int:
    """Search every market by every method, print what each found, and return 0 if what is promised holds."""
    options = arguments(given)
    size, equal, timed = Size(options.days, options.names), Rows(), Rows()
    for seed, world in worlds(options.seeds, size, options.folder, options.first):
        print(told(seed, world) + "\n", flush=True)
        for row in searched(world, seed, options):
            equal.setdefault(row["method"], []).append(row)
        for row in in_time(world, seed, options, equal):
            timed.setdefault(row["method"], []).append(row)
    holds = [shown(f"at {options.evaluations:,} evaluations", equal, options, size)]
    if timed:
        holds.append(shown("at the CPU seconds of Alphaloom", timed, options, size))
    if options.json:
        options.json.write_text(json.dumps({"evaluations": equal, "cpu": timed}, indent=1, sort_keys=True))
    if options.picture:
        options.picture.write_text(draw(equal, NAME))
    return 0 if all(holds) else 1


def searched(world: World, seed: int, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield one row for each method at equal evaluations."""
    truth, cells = Truth.of(world), Cells(options.folder)
    oracles: list[Method] = [Oracle(world.alphas), Oracle(world.alphas, living=True)]
    own: list[Method] = [Alphaloom(overrides=tuple(options.set))]
    if options.ablation:
        own += [Alphaloom(f"{NAME}, {name}", (*options.set, *said)) for name, said in ABLATIONS.items()]
    others = [] if options.ablation else searches(options.environments)
    for method in able([*oracles, *others, *own], options.method):
        row = cells.row(world, truth, method, Allowance(options.evaluations), seed)
        say(table({method.name: [row]}).splitlines()[-1])
        yield row


def in_time(world: World, seed: int, options: argparse.Namespace, equal: Rows) -> Iterator[dict[str, Any]]:
    """Yield one row for each method at the CPU seconds of Alphaloom; who looks at a fixed list is not asked again."""
    spent = next((row["cpu_s"] for row in equal.get(NAME, ()) if row["seed"] == seed), None)
    if spent is None or options.ablation or options.no_cpu:
        return
    yield from (rows[-1] for name, rows in equal.items() if name == NAME or name.startswith("oracle"))
    truth, cells = Truth.of(world), Cells(options.folder)
    allowance = Allowance(options.evaluations, float(math.ceil(spent / ROUNDED_S) * ROUNDED_S))
    for method in able(searches(options.environments), options.method):
        asked = Allowance(options.evaluations) if method.fixed else allowance
        row = cells.row(world, truth, method, asked, seed)
        say(table({method.name: [row]}).splitlines()[-1])
        yield row


def searches(environments: Path) -> list[Method]:
    """Return the rivals."""
    return [Textbook(), Skeletons(), Sampled(), genetic(environments), boosted(environments)]


def able(methods: Sequence[Method], asked: Sequence[str]) -> list[Method]:
    """Return the methods whose name holds one of the asked words; those that cannot run are told."""
    wanted = [method for method in methods if not asked or any(word in method.name for word in asked)]
    for each in wanted:
        if reason := each.missing():
            say(f"{each.name}: left out: {' '.join(reason.split())}")
    return [method for method in wanted if not method.missing()]


def shown(title: str, rows: Mapping[str, Sequence[Mapping[str, Any]]], options: argparse.Namespace, size: Size) -> bool:
    """Print one table with what is promised of it; return whether all of that holds."""
    low, high = PLANTS.rank_ic
    covered = 1 - 0.5 ** (options.seeds - 1)
    print(
        f"{title}: {options.seeds} markets of {size.days:,} days x {size.names:,} names, "
        f"alphas of RankIC {low} to {high}"
    )
    print(
        f"medians over the seeds; in brackets the lowest and the highest, which cover the median with {covered:.0%}\n"
    )
    print(table(rows) + f"\n\nnot run: AlphaGen ({SKIPPED['AlphaGen']})")
    promises = kept(rows)
    for holds, text in promises:
        print(f"{'holds' if holds else 'DOES NOT HOLD'}: {text}")
    print(flush=True)
    return all(holds for holds, _ in promises)


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.search planted", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many markets")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--days", type=int, default=2520, help="of a market")
    parser.add_argument("--names", type=int, default=500, help="in a market")
    parser.add_argument("--evaluations", type=int, default=2000, help="that each method may spend")
    parser.add_argument("--method", action="append", default=[], help="only methods whose name holds this")
    parser.add_argument(
        "--set", action="append", default=[], help="a setting of Alphaloom's campaigns: agents.rounds=40"
    )
    parser.add_argument("--ablation", action="store_true", help="Alphaloom with parts left out, instead of rivals")
    parser.add_argument("--no-cpu", action="store_true", help="leave out the table at equal CPU time")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where markets and answers are kept")
    parser.add_argument("--environments", type=Path, default=default_folder(), help="where rivals are installed")
    parser.add_argument("--json", type=Path, help="write every row here")
    parser.add_argument("--picture", type=Path, help="draw recall and correlation here, as SVG")
    return parser.parse_args(given)
