"""What the log of the record costs: python -m bench.record [CAMPAIGNS].

Two figures: the time to verify 70,000 leaves, and that of the demo campaign, cut to 100 evaluations, with the log and
without it, in turns, each in a process and a workspace of its own, after one that warms the caches. The log is taken
off by a ledger whose leaves are not written. The fastest of each kind counts: other work on the machine only adds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from alphaloom.ledger import Attempt, Ledger, Run
from alphaloom.ledger.log import KeyFolder, verify_workspace
from alphaloom.ledger.log.leaves import LoggedTransaction

LEAVES, BATCH = 70_000, 100
CAMPAIGNS = 3
WITHOUT_LOG = """
from alphaloom.ledger.log import leaves
def append(self, table, row):
    number = leaves.TABLE_KEYS[table][0][0]
    marks = ", ".join("?" * len(row))
    statement = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks}) ON CONFLICT DO NOTHING RETURNING {number}"
    return bool(self._session.execute(statement, tuple(row.values())).fetchall())
leaves.LoggedTransaction.append = append
"""
CAMPAIGN = """
import sys
from alphaloom.desk.cli.main import run_command
sys.exit(run_command(["run", "--workspace", sys.argv[1], "--set", "budget.evaluations=100", "--json"]))
"""


def add_all(ledger: Ledger, attempts: list[Attempt], session: LoggedTransaction) -> None:
    """Add records in one transaction."""
    for attempt in attempts:
        ledger.attempts.put(session, attempt)


def measure_verification(folder: Path) -> tuple[float, float, int]:
    """Return the wall and processor seconds to verify a record of 70,000 leaves, and its number of checkpoints."""
    keys, at = KeyFolder(folder / "keys"), datetime(2026, 1, 2, tzinfo=UTC)
    with Ledger.open(folder / "w", clock=lambda: at, keys=keys) as ledger:
        ledger.runs.start(Run("one", {}, 1, "data", "2026-01-02"))
        database = ledger._database
        for first in range(0, LEAVES, BATCH):
            at += timedelta(seconds=1)
            attempts = [
                Attempt("one", f"key {first + place:06d}", "h1", "rank(ts_std(returns, 30)) * -1", None, "parse", "")
                for place in range(min(BATCH, LEAVES - first))
            ]
            database.write(partial(add_all, ledger, attempts))
            ledger.signer.sign()
    began, worked = time.perf_counter(), time.process_time()
    reading = verify_workspace(folder / "w", keys)
    took, worked = time.perf_counter() - began, time.process_time() - worked
    assert not reading.findings, reading.findings
    return took, worked, reading.checkpoints


def time_campaign(folder: Path, before: str) -> tuple[float, float]:
    """Return the wall and processor seconds of one campaign in a process of its own."""
    began, worked = time.perf_counter(), _sum_child_times()
    command = [sys.executable, "-c", before + CAMPAIGN, str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began, _sum_child_times() - worked


def _sum_child_times() -> float:
    times = os.times()
    return times.children_user + times.children_system


def main(campaigns: int) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        took, worked, checkpoints = measure_verification(folder)
        print(f"{LEAVES:,} leaves, {checkpoints:,} checkpoints: verified in {took:.2f} s (processor {worked:.2f} s)")
        time_campaign(folder / "warm", "")
        pairs = [
            (time_campaign(folder / f"with {turn}", ""), time_campaign(folder / f"without {turn}", WITHOUT_LOG))
            for turn in range(campaigns)
        ]
        for place, what in enumerate(("wall", "processor")):
            on, off = (min(pair[side][place] for pair in pairs) for side in (0, 1))
            print(f"demo campaign, {what}: {on:.2f} s with the log, {off:.2f} s without, {on / off - 1:+.1%}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else CAMPAIGNS)
