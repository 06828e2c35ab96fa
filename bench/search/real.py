"""Each method searches the first 60 % of a real panel; its combination is tested once on the sealed days.

Nobody knows what is true here, so the combinations' RankIC on sealed days is all there is: with size taken out, since a
list of survivors rewards small names, and as a paired difference to Alphaloom with a block-bootstrap interval. An
interval that holds 0 is a tie. Every look at the sealed days is written to a ledger before it is taken, and numbered in
the table.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from alphaloom.evidence.newey_west import newey_west_t
from alphaloom.evidence.scoring.exposures import neutralise_ranks
from alphaloom.factors import row_rank_correlation
from alphaloom.ledger import Ledger, Opening, Run
from alphaloom.market import PanelSource, load_panel

from ..engine.environments import default_folder
from .cells import Cells, combined_of, on_all_days
from .methods.campaign import NAME, Alphaloom
from .methods.method import Allowance, Method
from .planted import FOLDER, able, searches
from .world import LAG, World, labelled

__all__ = ["difference", "interval", "main", "neutral_rank_ic"]

Series = NDArray[np.float64]
Values = NDArray[np.float32]
SEAL = default_folder().parent / "openings"
DERIVED = {"vwap": "typical", "amount": "close*volume"}
BLOCK = 20
"""Days of a block of the bootstrap: four times the horizon of the labels."""
DRAWS = 4000
TAIL = 0.025


@dataclass(frozen=True)
class Seen:
    """Results of one method on sealed days: daily RankIC (mean over its seeds) and the numbers of its looks."""

    name: str
    daily: Series
    cpu_s: float
    openings: tuple[int, ...]


def main(given: Sequence[str]) -> int:
    """Search, open the seal once for each method and seed, and print the table."""
    options = arguments(given)
    source = PanelSource(options.panel, options.sectors, None, DERIVED, options.panel.stem)
    world = labelled(source.name, load_panel(source))
    sealed = world.windows.sealed
    print(
        f"{world.name}: {world.panel.days:,} days x {world.panel.names:,} names; "
        f"search ends {world.windows.search.last_day}"
    )
    print(
        f"sealed: {sealed.first_day} to {sealed.last_day}, {options.evaluations:,} evaluations, {options.seeds} seeds\n"
    )
    methods = able([Alphaloom(overrides=tuple(options.set)), *searches(options.environments)], options.method)
    with Ledger.open(options.seal, clock=lambda: datetime.now(UTC)) as ledger:
        found = [seen(world, method, options, ledger) for method in methods]
        looks = len(ledger.trials.openings(world.windows.key(sealed)))
    print(table(found, world))
    print(f"\nlooks at sealed days on record in {options.seal}: {looks}; the more, the less a small lead says")
    if options.json:
        told = {result.name: {"daily": result.daily.tolist(), "cpu_s": result.cpu_s} for result in found}
        options.json.write_text(json.dumps(told))
    return 0


def seen(world: World, method: Method, options: argparse.Namespace, ledger: Ledger) -> Seen:
    """Search with every seed, then look at the sealed days; a fixed list is looked at once."""
    cells, series, numbers, spent = Cells(options.folder), [], [], 0.0
    for seed in range(1 if method.fixed else options.seeds):
        allowance = Allowance(options.evaluations)
        cell = cells.cell(world, method, allowance, seed)
        combined = combined_of(world, on_all_days(world, cell.factors)) if cell.combined is None else cell.combined
        numbers.append(opened(world, cells.place(world, method, allowance, seed).name, ledger))
        series.append(neutral_rank_ic(combined, world))
        spent += cell.cpu_s
    return Seen(method.name, np.mean(series, axis=0), spent / len(series), tuple(numbers))


def opened(world: World, who: str, ledger: Ledger) -> int:
    """Write the look into the ledger and return its number; the same look again keeps its number."""
    run = "-".join(re.findall(r"[A-Za-z0-9]+", who))
    if run not in {row.id for row in ledger.runs.all()}:
        ledger.runs.start(Run(run, {}, 0, world.name, datetime.now(UTC).isoformat()))
    return ledger.trials.record_opening(
        Opening(run, world.windows.key(world.windows.sealed), f"benchmark of search: {who}")
    )


def neutral_rank_ic(combined: Values, world: World) -> Series:
    """Return the daily RankIC on sealed days, ``[days]``, with size taken out of the ranks; NaN without labels."""
    window = world.windows.sealed
    nobody = np.full(world.panel.names, -1, dtype=np.int16)
    own = neutralise_ranks(np.ascontiguousarray(window.cut(combined)), [window.cut(world.size)], nobody)
    return row_rank_correlation(own, np.ascontiguousarray(window.cut(world.label)))


def difference(one: Series, other: Series) -> Series:
    """Return the daily difference of two series on days that both have."""
    both = one - other
    return both[~np.isnan(both)]


def interval(daily: Series, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % interval of a mean by the circular block bootstrap: blocks of 20 days, wrapped around the end.

    References
    ----------
    Politis and Romano (1992), A circular block-resampling procedure for stationary data.
    """
    days = len(daily)
    if days < 2 * BLOCK:
        return float("nan"), float("nan")
    starts = np.random.default_rng(seed).integers(0, days, (DRAWS, -(-days // BLOCK)))
    rows = (starts[:, :, None] + np.arange(BLOCK)).reshape(DRAWS, -1)[:, :days] % days
    low, high = np.quantile(daily[rows].mean(axis=1), (TAIL, 1 - TAIL))
    return float(low), float(high)


def table(found: Sequence[Seen], world: World) -> str:
    """Return one line for each method, with its paired difference to Alphaloom where that was run."""
    own = next((result for result in found if result.name == NAME), None)
    head = (
        f"{'':28}{'sealed RankIC':>14}{'t':>7}{'Alphaloom ahead by':>20}{'95 % interval':>20}{'':>8}{'CPU s':>8}  "
        "opening"
    )
    return "\n".join([f"size-neutral, {world.name}", head, *(line(result, own) for result in found)])


def line(each: Seen, own: Seen | None) -> str:
    """Return one line of the table."""
    test = newey_west_t(each.daily, LAG)
    told = f"{each.name:28}{test.mean:14.4f}{test.t:7.1f}"
    if own is None or each is own:
        told += f"{'':48}"
    else:
        ahead = difference(own.daily, each.daily)
        low, high = interval(ahead)
        word = "ahead" if low > 0 else "behind" if high < 0 else "tie"
        told += f"{ahead.mean():20.4f}{f'[{low:.4f}, {high:.4f}]':>20}{word:>8}"
    return told + f"{each.cpu_s:8.0f}  {', '.join(map(str, each.openings))}"


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.search real", description=__doc__)
    parser.add_argument("--panel", type=Path, required=True, help="prices, Parquet or CSV")
    parser.add_argument("--sectors", type=Path, help="sectors, Parquet or CSV")
    parser.add_argument("--seeds", type=int, default=3, help="of each method")
    parser.add_argument("--evaluations", type=int, default=2000, help="that each method may spend")
    parser.add_argument("--method", action="append", default=[], help="only methods whose name holds this")
    parser.add_argument("--set", action="append", default=[], help="a setting of Alphaloom's campaigns")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where answers are kept")
    parser.add_argument("--seal", type=Path, default=SEAL, help="where looks at sealed days are counted")
    parser.add_argument("--environments", type=Path, default=default_folder(), help="where rivals are installed")
    parser.add_argument("--json", type=Path, help="write the daily RankIC here")
    return parser.parse_args(given)
