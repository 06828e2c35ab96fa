"""Time the scoring of a factor beside pandas, bottleneck and alphalens, each in an environment of its own.

python -m bench.evidence scoring --setup     install the rivals, once
python -m bench.evidence scoring             2,520 days x 1,000 names

Ours makes the whole sheet: RankIC, IC, ICIR, Newey-West t, fifths, turnover, the long-short before and after costs,
coverage and years; decay at four horizons is timed apart. Alphalens leaves out names that stop trading, so its RankIC
differs. CPU time of one thread, median of several runs; RankIC is compared day by day.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from alphaloom.evidence import EvidenceSettings
from alphaloom.evidence.scoring.rank_ic import daily_statistics
from alphaloom.evidence.scoring.scorer import Scorer
from alphaloom.evidence.windows import Window
from alphaloom.market import Panel, SyntheticConfig, simulate

from ..engine.environments import NUMPY, default_folder, install, python_of

PACKAGES = ("alphalens-reloaded==0.5.1", "Bottleneck==1.6.0", "pandas==2.3.3", NUMPY)
ENVIRONMENT = "scoring"
RIVAL = Path(__file__).parents[1] / "rivals" / "scoring.py"
WAYS = {
    "bottleneck": ("numpy with bottleneck", "RankIC only"),
    "wide": ("pandas, wide ranks", "RankIC only"),
    "grouped": ("pandas, groupby and Spearman", "RankIC only"),
    "alphalens": ("alphalens", "IC, fifths, turnover"),
}


@dataclass(frozen=True)
class Timed:
    """Median CPU milliseconds of one way, and its largest distance from our RankIC on any day."""

    name: str
    does: str
    cpu_ms: float
    apart: float


def main(given: Sequence[str]) -> int:
    """Measure and print; or install the rivals."""
    options = arguments(given)
    folder = Path(options.environments or default_folder())
    if options.setup:
        install(folder, {ENVIRONMENT: PACKAGES})
        return 0
    panel = simulate(SyntheticConfig(seed=0, days=options.days, names=options.names)).panel
    window = Window("search", 0, panel.days, str(panel.dates[0]), str(panel.dates[-1]))
    scorer = Scorer(panel, EvidenceSettings(returns="raw"))
    values = drawn(panel)
    with tempfile.TemporaryDirectory() as place:
        hand_over(scorer, values, window, Path(place))
        rows = own(scorer, values, window, options.repeats)
        daily = scorer.daily_rank_ic(values, window)
        rows += [row for way in WAYS if (row := rival(way, folder, Path(place), options.repeats, daily))]
    show(rows, panel)
    return 0


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.evidence scoring", description=__doc__)
    parser.add_argument("--setup", action="store_true", help="install the rivals in an environment of their own")
    parser.add_argument("--days", type=int, default=2520, help="days of the panel")
    parser.add_argument("--names", type=int, default=1000, help="names of the panel")
    parser.add_argument("--repeats", type=int, default=7, help="runs of which the median is taken; alphalens runs once")
    parser.add_argument("--environments", help="where rivals are installed; the user's cache unless given")
    return parser.parse_args(given)


def drawn(panel: Panel) -> NDArray[np.float32]:
    """Draw a factor: normal, one cell in a hundred missing, none outside the universe."""
    rng = np.random.default_rng(1)
    values = rng.standard_normal(panel.universe.shape, dtype=np.float32)
    values[(rng.random(values.shape) < 0.01) | ~panel.universe] = np.nan
    return values


def hand_over(scorer: Scorer, values: NDArray[np.float32], window: Window, place: Path) -> None:
    """Write what the rivals read; the price of a day is the next day's open, so that all foretell the same return."""
    opened = scorer.panel.fields["open"]
    price = np.full(opened.shape, np.nan)
    price[:-1] = opened[1:]
    for name, array in (("values", values), ("label", scorer.target(window).label), ("price", price)):
        np.save(place / f"{name}.npy", array)


def own(scorer: Scorer, values: NDArray[np.float32], window: Window, repeats: int) -> list[Timed]:
    """Time our sheet, whole and without the decay."""
    target = scorer.target(window)

    def without() -> object:
        return daily_statistics(values, target.label, target.orders, target.returns)

    whole = median(lambda: scorer.score(values, window), repeats)
    decay = median(lambda: daily_statistics(values, target.label, target.orders, target.returns, target.thin), repeats)
    return [
        Timed("alphaloom", "the sheet but for decay", whole - decay + median(without, repeats), 0.0),
        Timed("alphaloom", "the sheet, decay at four horizons", whole, 0.0),
    ]


def median(run: Callable[[], object], repeats: int) -> float:
    """Return the median CPU time of some runs after one that is not counted, in milliseconds."""
    run()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(1e3 * (time.process_time() - start))
    return statistics.median(times)


def rival(way: str, folder: Path, place: Path, repeats: int, daily: NDArray[np.float64]) -> Timed | None:
    """Run one rival in its environment; None where it is not installed."""
    python = python_of(folder / ENVIRONMENT)
    if not Path(python).exists():
        print(f"{way}: is not installed: python -m bench.evidence scoring --setup", file=sys.stderr)
        return None
    times = 1 if way == "alphalens" else min(repeats, 3)
    one_thread = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    done = subprocess.run(
        [python, RIVAL, way, place, str(times)],
        capture_output=True,
        text=True,
        env=os.environ | one_thread,
        check=False,
    )
    if done.returncode:
        print(f"{way}: failed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    found = np.load(place / f"{way}.npy")
    apart = float(np.nanmax(np.abs(found - daily)))
    return Timed(*WAYS[way], statistics.median(json.loads(done.stdout.splitlines()[-1])["cpu_ms"]), apart)


def show(rows: Sequence[Timed], panel: Panel) -> None:
    """Print the table."""
    print(f"one factor on {panel.days:,} days x {panel.names:,} names, CPU time of one thread\n")
    print(f"{'':30} {'computes':34} {'CPU ms':>9} {'ratio':>8}   RankIC apart by")
    for row in rows:
        print(f"{row.name:30} {row.does:34} {row.cpu_ms:9.1f} {row.cpu_ms / rows[0].cpu_ms:7.1f}x   {row.apart:.0e}")
