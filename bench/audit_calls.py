"""What it costs to record calls: microseconds for the caller, lines a second, time to the disk, and what kill -9 loses.

    python -m bench.audit_calls [FOLDER]

FOLDER lies on the disk to be measured; the system's folder for temporary files by default. Wall time throughout, since
all of it waits for a disk; the raw cost of a sync of that disk is printed beside.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from alphaloom.ledger.calls import CallLog, CallOutcome, ToolCall, read_latest, verify_calls
from tests.mcp_servers.started import now, share

CALL = ToolCall(
    "1a2b3c4d", "market", "preview_panel", CallOutcome.OK, arguments="a" * 64, rows=20, bytes=4_096, result="b" * 64,
    duration_ms=12.345,
)  # fmt: skip  # a table
SPARSE_SECONDS, BURST, THREADS, KILLS = 5.0, 50_000, 200, 15
WRITE = """
import sys, time
from datetime import UTC, datetime
from pathlib import Path
from alphaloom.ledger.calls import CallLog, CallOutcome, ToolCall
log = CallLog.open(Path(sys.argv[1]), clock=lambda: datetime.now(UTC))
while True:
    number = log.append(ToolCall("stdio", "market", "tool", CallOutcome.OK))
    sys.stdout.write(f"{number} {time.monotonic()}\\n")
    sys.stdout.flush()
    time.sleep(0.001)
"""


def row(what: str, values: list[float], unit: str, scale: float) -> str:
    """Return a line of the table: median, 99 % and the largest."""
    figures = (share(values, 0.5), share(values, 0.99), max(values))
    return f"| {what} | {' | '.join(f'{value * scale:.1f}' for value in figures)} | {unit} |"


def raw_sync(folder: Path) -> list[float]:
    """Return seconds of single syncs of 500 bytes each."""
    spans = []
    with (folder / "raw").open("wb", buffering=0) as file:
        for _ in range(300):
            file.write(b"x" * 500)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            spans.append(time.perf_counter() - began)
    return spans


def sparse(folder: Path) -> tuple[list[float], list[float]]:
    """Return seconds of appends and of ways to the disk, at some hundred calls a second, as a busy server has."""
    appends, ways = [], []
    waiting: list[tuple[int, float]] = []
    with CallLog.open(folder, clock=now) as log:
        end = time.perf_counter() + SPARSE_SECONDS
        while time.perf_counter() < end:
            began = time.perf_counter()
            number = log.append(CALL)
            appends.append(time.perf_counter() - began)
            waiting.append((number, began))
            for _ in range(5):
                time.sleep(0.0005)
                at, durable = time.perf_counter(), log.durable
                ways += [at - began for number, began in waiting if number <= durable]
                waiting = [call for call in waiting if call[0] > durable]
    return appends, ways


def burst(folder: Path, threads: int) -> float:
    """Return lines a second from the first append to the last line on the disk."""
    with CallLog.open(folder, clock=now) as log, ThreadPoolExecutor(threads) as pool:
        began = time.perf_counter()
        list(pool.map(lambda count: [log.append(CALL) for _ in range(count)], [BURST // threads] * threads))
        log.flush(60)
        return BURST // threads * threads / (time.perf_counter() - began)


def killed(folder: Path) -> float:
    """Return how many seconds before its death a killed process made the oldest call that is not on record."""
    with subprocess.Popen([sys.executable, "-c", WRITE, str(folder)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(300)]
        process.kill()
        at = time.monotonic()
        told += [line for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        process.communicate()
    kept = max((int(call["sequence"]) for call in read_latest(folder, 1)), default=0)
    assert not verify_calls(folder).findings
    lost = [float(line.split()[1]) for line in told if int(line.split()[0]) > kept]
    return at - min(lost) if lost else 0.0


def table(folder: Path) -> Iterator[str]:
    """Yield the table, a line for each measure."""
    appends, ways = sparse(folder / "sparse")
    yield "| | median | 99 % | largest | |"
    yield "|---|---|---|---|---|"
    yield row("append, for the caller", appends, "microseconds", 1e6)
    yield row("from append to the disk", ways, "ms", 1e3)
    yield row("one sync of this disk, for comparison", raw_sync(folder), "ms", 1e3)
    yield row(f"lost by kill -9, {KILLS} times", [killed(folder / f"kill{n}") for n in range(KILLS)], "ms", 1e3)
    rates: dict[str, Callable[[], float]] = {
        "one thread": lambda: burst(folder / "one", 1),
        f"{THREADS} threads": lambda: burst(folder / "many", THREADS),
    }
    for name, rate in rates.items():
        yield f"{BURST:,} lines from {name}: {rate():,.0f} lines a second on the disk"
    began = time.perf_counter()
    calls = verify_calls(folder / "one").calls
    yield f"verified: {calls / (time.perf_counter() - began):,.0f} lines a second"


def main(place: str | None) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory(dir=place) as folder:
        for line in table(Path(folder)):
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
