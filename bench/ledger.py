"""What a record costs in PostgreSQL beside the file, in the same run: python -m bench.ledger postgresql://USER@HOST/DATABASE.

Wall time, since both wait for a disk: blocks of either in turns, medians of the blocks. The database must be an empty
one.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from alphaloom.ledger import Ledger, Look, Run, WindowKey

BLOCKS, EACH = 9, 40
BODY = {"text": "rank(ts_std(returns, 30)) * -1", "figures": [0.0125] * 40}
NAMES = tuple(f"S{index:03d}" for index in range(500))
WINDOW = WindowKey("data", "2019-01-01", "2020-12-31", NAMES)
Deed = Callable[[Ledger, str], object]

DEEDS: dict[str, Deed] = {
    "write a record": lambda ledger, key: ledger.events.record("one", "note", key, BODY),
    "read a record": lambda ledger, key: ledger.events.get("one", "note", key),
    "store 4 KB": lambda ledger, key: ledger.objects.put(key.encode() * 500),
    "count a look": lambda ledger, key: ledger.trials.open(Look("one", key, WINDOW)),
}


def timed(ledger: Ledger, deed: Deed, block: int) -> float:
    """Return milliseconds of one deed, the mean of a block."""
    began = time.perf_counter()
    for index in range(EACH):
        deed(ledger, f"{block:03d}/{index:04d}")
    return (time.perf_counter() - began) / EACH * 1000


def table(file: Ledger, served: Ledger) -> Iterator[str]:
    """Yield the table, a line for each deed."""
    yield "| | file, ms | PostgreSQL, ms | times |"
    yield "|---|---|---|---|"
    for name, deed in DEEDS.items():
        pairs = [(timed(file, deed, block), timed(served, deed, block)) for block in range(BLOCKS)]
        mine, theirs = (median(pair[side] for pair in pairs) for side in (0, 1))
        yield f"| {name} | {mine:.2f} | {theirs:.2f} | {theirs / mine:.1f} |"


def main(address: str) -> None:
    """Print the table."""

    def clock() -> datetime:
        return datetime(2026, 1, 2, tzinfo=UTC)

    with tempfile.TemporaryDirectory() as folder:
        places = (Path(folder) / "file", ""), (Path(folder) / "served", address)
        ledgers = [Ledger.open(place, clock=clock, address=where) for place, where in places]
        for ledger in ledgers:
            ledger.runs.start(Run("one", {}, 1, "data", "2026"))
        for line in table(*ledgers):
            print(line, flush=True)
        for ledger in ledgers:
            ledger.close()


if __name__ == "__main__":
    main(sys.argv[1])
