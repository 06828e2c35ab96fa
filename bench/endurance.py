"""A long campaign: memory of the process, size of the checkpoints and time of an evaluation, as its history grows.

`python -m bench.endurance` runs 10,000 evaluations on a small synthetic market, offline, and prints a line at
every thousandth. Ends with 1 if the checkpoints pass 50 MB, or memory or time of an evaluation grows after the first
quarter.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from alphaloom.campaign import Campaign, Progress, Settings
from alphaloom.ledger import read_settings

MOST_CHECKPOINT_MB = 50.0
MOST_GROWTH = 1.15
"""Memory at the end over memory after the first quarter, by when the engine's cache (256 MB) is full."""
MOST_SLOWDOWN = 1.5
"""CPU time of the last quarter's evaluations over that of the second; a machine that is shared wavers by a third."""
PER_ROUND = 25
"""Fewest evaluations of a late round; the rest of its hundred proposals are refused or known."""


@dataclass(frozen=True)
class Line:
    """What stands at one moment: evaluations, MB of memory and of files, milliseconds of CPU since the last line."""

    evaluations: int
    memory: float
    checkpoints: float
    ledger: float
    each: float

    def text(self) -> str:
        """Return the line of the table."""
        figures = f"{self.memory:>9.0f} {self.checkpoints:>12.2f} {self.ledger:>9.1f} {self.each:>12.1f}"
        return f"{self.evaluations:>11,} {figures}"


@dataclass
class Watch:
    """Takes a line whenever so many evaluations were made since the last one."""

    workspace: Path
    every: int
    lines: list[Line] = field(default_factory=list)
    at: tuple[int, float] = (0, 0.0)

    def __call__(self, progress: Progress) -> None:
        """Look at a moment of the campaign."""
        if progress.phase != "searching" or progress.counts.scored < self.at[0] + self.every * bool(self.at[1]):
            return
        count, cpu = progress.counts.scored, time.process_time()
        made = count - self.at[0]
        if self.at[1]:
            self._take(count, (cpu - self.at[1]) / made * 1e3)
        self.at = (count, cpu)

    def _take(self, count: int, each: float) -> None:
        files = (size(self.workspace, "runs/*/checkpoints.sqlite*"), size(self.workspace, "ledger.sqlite*"))
        self.lines.append(Line(count, memory(), *files, each))
        print(self.lines[-1].text(), flush=True)


def memory() -> float:
    """Return the resident memory of this process, MB; its peak where the system does not tell more."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def size(folder: Path, pattern: str) -> float:
    """Return the size of some files, MB."""
    return sum(path.stat().st_size for path in folder.glob(pattern)) / 1e6


def settings(evaluations: int) -> Settings:
    """Return a campaign of so many evaluations on 420 days of 60 names."""
    return read_settings(
        None,
        Settings,
        [
            "market.synthetic.days=420",
            "market.synthetic.names=60",
            "evidence.windows.min_sealed_days=40",
            f"agents.rounds={-(-evaluations // PER_ROUND)}",
            f"budget.evaluations={evaluations}",
            "models.budget.calls=1000000",
            "models.budget.tokens=100000000000",
        ],
    )


def faults(lines: list[Line]) -> list[str]:
    """Say what grew that must not."""
    quarter, half = lines[len(lines) // 4], lines[len(lines) // 4 : len(lines) // 2]
    last = lines[-max(1, len(lines) // 4) :]
    found = []
    if max(line.checkpoints for line in lines) > MOST_CHECKPOINT_MB:
        found.append(f"checkpoints pass {MOST_CHECKPOINT_MB:.0f} MB")
    if lines[-1].memory > MOST_GROWTH * quarter.memory:
        found.append(f"memory grew from {quarter.memory:.0f} to {lines[-1].memory:.0f} MB")
    if mean(last) > MOST_SLOWDOWN * mean(half or lines[:1]):
        found.append(f"an evaluation took {mean(half or lines[:1]):.1f} ms and takes {mean(last):.1f} ms")
    return found


def mean(lines: list[Line]) -> float:
    """Return the mean milliseconds of an evaluation."""
    return sum(line.each for line in lines) / len(lines)


def main() -> int:
    """Run the campaign and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--evaluations", type=int, default=10_000)
    parser.add_argument("--workspace", type=Path, help="kept; otherwise a temporary folder")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        watch = Watch(given.workspace or Path(folder), max(1, given.evaluations // 10))
        print("evaluations MB memory MB checkpoint MB ledger ms CPU each", flush=True)
        began = time.process_time()
        result = Campaign(settings(given.evaluations), watch.workspace).run(watch)
        searched = time.process_time() - began
        print(f"{result.record['evaluations']:,} evaluations, {result.trials} trials, {searched:.0f} s of CPU in all")
        print(f"after the close: {memory():.0f} MB of memory, checkpoints {watch.lines[-1].checkpoints:.2f} MB")
    found = faults(watch.lines)
    print("; ".join(found) or "flat")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
