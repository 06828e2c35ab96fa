"""Formulas on a Ray cluster: the same bytes as on this machine when a worker is killed, and the CPU that it costs.

`python -m bench.scale` scores a file of 10,000 random formulas with `alphaloom factor score --file`, then runs a
campaign; each once here and once on a local Ray cluster of two workers, one of which is killed in the middle. It
prints seconds and CPU seconds, compares bytes, and ends with 1 where they differ. It needs Ray (`make ray`).
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from alphaloom.factors import sample
from alphaloom.sandbox.cluster import list_descendants

MARKET = "market:\n  synthetic: {days: 500, names: 60}\n"
CAMPAIGN = (
    "evidence.windows.search=0.45", "evidence.windows.selection=0.4", "agents.rounds=4", "agents.hypotheses=5",
    "agents.candidates=6", "agents.steps=2", "budget.evaluations=240", "budget.trials=6",
)  # fmt: skip  # a table
WORKER = "ray::BatchStation"
SAMPLE_SECONDS = 0.1
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class CommandRun:
    """One command with all its processes: seconds, CPU seconds, workers that were killed."""

    seconds: float = 0.0
    killed: int = 0
    cpu: dict[int, float] = field(default_factory=dict)

    @property
    def cpu_seconds(self) -> float:
        """Return the CPU seconds of all processes, those of dead ones up to the last sample."""
        return sum(self.cpu.values())

    def sample(self, root: int) -> list[int]:
        """Read the CPU time of every process and return the workers of the cluster."""
        processes = list_descendants(root)
        for process in processes:
            self.cpu[process] = max(self.cpu.get(process, 0.0), read_cpu_seconds(process))
        return [process for process in processes if WORKER in read_proc(process, "cmdline")]


def read_proc(process: int, name: str) -> str:
    """Return a file of /proc; empty when the process is gone."""
    try:
        return Path(f"/proc/{process}/{name}").read_text(errors="replace")
    except OSError:
        return ""


def read_cpu_seconds(process: int) -> float:
    """Return the CPU seconds of one process, without its children."""
    words = read_proc(process, "stat").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICKS if words else 0.0


def run_alphaloom(arguments: Sequence[str], halfway: Callable[[], bool] | None = None) -> CommandRun:
    """Run a command; with `halfway`, kill a worker once it returns True and both workers are at work."""
    outcome, began = CommandRun(), time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", "alphaloom", *arguments], stdout=subprocess.DEVNULL)
    while process.poll() is None:
        workers = outcome.sample(process.pid)
        if halfway and not outcome.killed and len(workers) == 2 and halfway():
            os.kill(workers[0], signal.SIGKILL)
            outcome.killed += 1
        time.sleep(SAMPLE_SECONDS)
    outcome.seconds = time.monotonic() - began
    if process.returncode:
        raise SystemExit(f"alphaloom {' '.join(arguments)} ended with {process.returncode}")
    return outcome


def count_rows(workspace: Path) -> int:
    """Return the number of rows in the parts of a workspace."""
    names = (re.search(r"-(\d+)\.parquet", path.name) for path in workspace.glob("sheets/*/part-*.parquet"))
    return sum(int(name[1]) for name in names if name)


def count_evaluations(workspace: Path) -> int:
    """Return the number of evaluations that a workspace has recorded."""
    try:
        with closing(sqlite3.connect(f"file:{workspace / 'ledger.sqlite'}?mode=ro", uri=True, timeout=5)) as ledger:
            return int(ledger.execute("SELECT count(*) FROM evaluations").fetchone()[0])
    except sqlite3.Error:
        return 0


def write_formulas(path: Path, count: int) -> None:
    """Write random formulas of the language, one a line."""
    rng = np.random.default_rng(1)
    path.write_text("".join(f"{sample(rng).text}\n" for _ in range(count)))


def compare_file(folder: Path, count: int) -> bool:
    """Score a file here and on the cluster; print both, and return whether the sheets have the same bytes."""
    formulas, campaign = folder / "formulas.txt", folder / "market.yaml"
    write_formulas(formulas, count)
    campaign.write_text(MARKET)
    common = ["factor", "score", "--file", str(formulas), "--campaign", str(campaign)]
    runs = {}
    for name, options in (("here", []), ("ray", ["--executor", "ray"])):
        workspace, out = folder / f"file-{name}", folder / f"{name}.parquet"
        halfway = (lambda at=workspace: count_rows(at) >= count / 2) if options else None
        runs[name] = run_alphaloom([*common, "--workspace", str(workspace), "--out", str(out), *options], halfway)
    same = (folder / "here.parquet").read_bytes() == (folder / "ray.parquet").read_bytes()
    return print_runs(f"file of {count:,} formulas", runs, same=same)


def compare_campaign(folder: Path) -> bool:
    """Run a campaign here and on the cluster; print both, and return whether the results have the same bytes."""
    campaign = folder / "campaign.yaml"
    campaign.write_text(f"name: scale\nseed: 6\n{MARKET}")
    settings = [word for setting in CAMPAIGN for word in ("--set", setting)]
    runs, results = {}, []
    for name, options in (("here", []), ("ray", ["--executor", "ray"])):
        workspace = folder / f"campaign-{name}"
        halfway = (lambda at=workspace: count_evaluations(at) >= 120) if options else None
        runs[name] = run_alphaloom(["run", str(campaign), *settings, "--workspace", str(workspace), *options], halfway)
        results.append(
            [next(workspace.glob(f"runs/*/{file}")).read_bytes() for file in ("results.json", "curves.json")]
        )
    count = count_evaluations(folder / "campaign-ray")
    return print_runs(f"campaign of {count} evaluations", runs, same=results[0] == results[1])


def print_runs(title: str, runs: dict[str, CommandRun], *, same: bool) -> bool:
    """Print the runs of one kind and return whether the bytes are the same and a worker was killed."""
    here, ray = runs["here"], runs["ray"]
    print(f"{title}: {'the same bytes' if same else 'OTHER BYTES'}, {ray.killed} of 2 workers killed")
    for name, run in runs.items():
        print(f"  {name:<5} {run.seconds:6.0f} s   CPU {run.cpu_seconds:6.0f} s")
    print(f"  CPU with Ray over CPU without: {ray.cpu_seconds / here.cpu_seconds:.2f}")
    return same and ray.killed == 1


def main() -> int:
    """Compare both kinds; return 1 if any bytes differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--formulas", type=int, default=10_000)
    count = parser.parse_args().formulas
    with tempfile.TemporaryDirectory(prefix="scale-") as folder:
        holds = [compare_file(Path(folder), count), compare_campaign(Path(folder))]
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
