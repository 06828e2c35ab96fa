"""A desk in a process of its own: each order and each report is on its record before anything is done about it.

client.py FOLDER PORT ORDERS ENGINE BATCH, where ENGINE is own or quickfix; started again, it goes on.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from alphaloom.execution import ChildOrder
from alphaloom.execution.fix import TRADING_RESENT, FixConnection, FixLink, FixVenue, SessionSettings

PATIENCE_SECONDS = 120
"""A venue that was killed may take a minute to start again on a busy machine."""
ENDS = ("rejected", "expired", "cancelled", "filled")


def clock_us() -> int:
    return time.time_ns() // 1000


def make_link(folder: Path, port: int, engine: str) -> FixLink:
    settings = SessionSettings("FIX.4.4", "DESK", "VENUE", True, 2, TRADING_RESENT)
    if engine == "own":
        return FixConnection("127.0.0.1", port, settings, folder / "session", clock_us)
    from alphaloom.execution.fix.quickfix_session import QuickFixLink

    return QuickFixLink("127.0.0.1", port, settings, folder / "quickfix")


class Desk:
    """Sends orders in batches, and keeps what it did and heard."""

    def __init__(self, folder: Path, venue: FixVenue, orders: int, batch: int) -> None:
        folder.mkdir(exist_ok=True)
        path = folder / "record.jsonl"
        path.touch()
        os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
        known = [json.loads(line) for line in path.read_bytes().splitlines()]
        self.sent = [one["intent"] for one in known if "intent" in one]
        self.ended = {one["order"] for one in known if one.get("ends")}
        self.seen = {one["exec_id"] for one in known if "exec_id" in one}
        self.file = path.open("a")
        self.venue, self.orders, self.batch = venue, orders, batch
        # A crash between the record and the session leaves an order without a number: it is sent now, or was sent.
        self.pending = [id for id in self.sent if id not in self.ended]

    def write(self, *rows: Mapping[str, object]) -> None:
        self.file.writelines(json.dumps(row) + "\n" for row in rows)
        self.file.flush()
        os.fsync(self.file.fileno())

    def send(self) -> None:
        begun = len(self.sent)
        waiting = begun - len(self.ended)  # a desk that knows its limits has so many under way and no more
        if not self.pending and begun < self.orders and waiting <= self.batch:
            self.pending = [f"order-{number}" for number in range(begun, min(begun + self.batch, self.orders))]
            self.write(*({"intent": id} for id in self.pending))
            self.sent += self.pending
        self.venue.send([ChildOrder(id, "p", "AAA", "buy", 10, "market", None, clock_us()) for id in self.pending])
        self.pending = []

    def hear(self) -> bool:
        """Record what the venue said; return whether it said something."""
        reports = self.venue.read_reports(0.02 if len(self.sent) < self.orders else 0.5)
        new = {report.exec_id: report for report in reports if report.exec_id not in self.seen}
        rows = [{**one.record(), "ends": one.kind in ENDS} for one in new.values()]
        self.write(*rows)
        self.seen |= set(new)
        self.ended |= {one.order for one in new.values() if one.kind in ENDS}
        return bool(reports)


def main() -> None:
    folder, engine = Path(sys.argv[1]), sys.argv[4]
    port, orders, batch = (int(sys.argv[place]) for place in (2, 3, 5))
    folder.mkdir(exist_ok=True)
    desk = Desk(folder, FixVenue("simulated", make_link(folder, port, engine), clock_us), orders, batch)
    last = time.monotonic()
    while desk.pending or len(desk.ended) < orders:
        desk.send()
        last = time.monotonic() if desk.hear() else last
        if time.monotonic() - last > PATIENCE_SECONDS:
            raise SystemExit(f"nothing comes any more: {len(desk.ended)} of {orders} ended")
    desk.venue.close()


if __name__ == "__main__":
    main()
