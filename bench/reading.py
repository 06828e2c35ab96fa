"""Measure the seconds and the memory of reading 1.2 million rows of prices, beside pandas reading the same file.

python -m bench.reading                    makes a tidy file of 500 symbols and 2,400 days, as CSV and as Parquet
python -m bench.reading --file prices.csv  reads your file

Each reading is a process of its own. Seconds are those of the call, after the imports, the median of five processes;
beside them is the CPU time of all threads, which a busy machine changes less. Memory is the largest resident size of
the process. pandas reads a table with its dates; Alphaloom reads, checks every cell and builds the panel.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

READERS = {
    "pandas": """
import pandas as pd
def read(path):
    return pd.read_csv(path, parse_dates=["date"]) if path.endswith(".csv") else pd.read_parquet(path)
""",
    "alphaloom": """
from pathlib import Path
import alphaloom.market.load
from alphaloom.market import PanelSource, read_panel
def read(path):
    return read_panel(PanelSource(Path(path)))
""",
}
MEASURE = """
import json, resource, sys, time
started, used = time.perf_counter(), time.process_time()
kept = read(sys.argv[1])
seconds, used = time.perf_counter() - started, time.process_time() - used
print(json.dumps([seconds, used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def make_files(folder: Path, days: int, symbols: int) -> list[Path]:
    """Write a tidy file of prices in cents, as CSV and as Parquet."""
    import pandas as pd

    draw = np.random.default_rng(1)
    shape = (days, symbols)
    close = np.round(np.maximum(50 * np.exp(np.cumsum(draw.normal(0, 0.02, shape), axis=0)), 0.05), 2)
    opens = np.round(close * np.exp(draw.normal(0, 0.005, shape)), 2)
    frame = pd.DataFrame(
        {
            "date": np.repeat(pd.bdate_range("2008-01-01", periods=days).to_numpy(), symbols),
            "symbol": np.tile([f"S{place:04d}" for place in range(symbols)], days),
            "open": opens.ravel(),
            "high": np.round(np.maximum(opens, close) * 1.01, 2).ravel(),
            "low": np.maximum(np.round(np.minimum(opens, close) * 0.99, 2), 0.01).ravel(),
            "close": close.ravel(),
            "volume": draw.integers(10_000, 5_000_000, shape).ravel(),
        }
    )
    paths = [folder / "prices.csv", folder / "prices.parquet"]
    frame.to_csv(paths[0], index=False)
    frame.to_parquet(paths[1], index=False)
    return paths


def measure(reader: str, path: Path, processes: int) -> list[float]:
    """Return the median seconds, CPU seconds and peak memory in MB of some processes."""
    command = [sys.executable, "-c", READERS[reader] + MEASURE, str(path)]
    runs = [
        json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(processes)
    ]
    return [statistics.median(figures) for figures in zip(*runs, strict=True)]


def print_file(path: Path, processes: int) -> None:
    """Print what reading a file takes, beside pandas."""
    found = {reader: measure(reader, path, processes) for reader in READERS}
    figures = (
        f"{reader} {wall:.2f} s ({cpu:.2f} s CPU), {memory:.0f} MB" for reader, (wall, cpu, memory) in found.items()
    )
    times, of_cpu, memory = (own / other for own, other in zip(found["alphaloom"], found["pandas"], strict=True))
    print(f"{path.name}, {path.stat().st_size / 1e6:.0f} MB: {'; '.join(figures)}; ", end="")
    print(f"{times:.1f} times the time, {of_cpu:.1f} times the CPU, {memory:.1f} times the memory")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--days", type=int, default=2400)
    parser.add_argument("--symbols", type=int, default=500)
    parser.add_argument("--processes", type=int, default=5)
    given = parser.parse_args(arguments)
    if given.file:
        print_file(given.file, given.processes)
        return
    with tempfile.TemporaryDirectory() as folder:
        for path in make_files(Path(folder), given.days, given.symbols):
            print_file(path, given.processes)


if __name__ == "__main__":
    main()
