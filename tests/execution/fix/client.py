"""A desk in a process of its own: each order and each report is on its record before anything is done about it.

client.py FOLDER PORT ORDERS ENGINE BATCH, where ENGINE is own or quickfix; started again, it goes on.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from alphaloom.execution import ChildOrder
from alphaloom.execution.fix import TRADING_RESENT, FixConnection, FixLink, FixVenue, SessionSettings

PATIENCE_SECONDS = 30


def clock_us() -> int:
    return time.time_ns() // 1000


def make_link(folder: Path, port: int, engine: str) -> FixLink:
    settings = SessionSettings("FIX.4.4", "DESK", "VENUE", True, 2, TRADING_RESENT)
    if engine == "own":
        return FixConnection("127.0.0.1", port, settings, folder / "session", clock_us)
    from alphaloom.execution.fix.quickfix_session import QuickFixLink

    return QuickFixLink("127.0.0.1", port, settings, folder / "quickfix")


def main() -> None:
    folder, port, orders, engine, batch = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
    folder.mkdir(exist_ok=True)
    path = folder / "record.jsonl"
    path.touch()
    whole = path.read_bytes()
    os.truncate(path, whole.rfind(b"\n") + 1)
    known = [json.loads(line) for line in path.read_bytes().splitlines()]
    sent = [one["intent"] for one in known if "intent" in one]
    ended = {one["order"] for one in known if one.get("ends")}
    seen = {one["exec_id"] for one in known if "exec_id" in one}
    with path.open("a") as file:

        def write(*rows: dict[str, object]) -> None:
            file.writelines(json.dumps(row) + "\n" for row in rows)
            file.flush()
            os.fsync(file.fileno())

        venue = FixVenue("simulated", make_link(folder, port, engine), clock_us)
        # A crash between the record and the session leaves an order that has no number: it is sent now, or was sent.
        pending = [id for id in sent if id not in ended]
        last = time.monotonic()
        while len(sent) < orders or pending or len(ended) < orders:
            if not pending and len(sent) < orders:
                pending = [f"order-{number}" for number in range(len(sent), min(len(sent) + batch, orders))]
                write(*({"intent": id} for id in pending))
                sent += pending
            venue.send([ChildOrder(id, "p", "AAA", "buy", 10, "market", None, clock_us()) for id in pending])
            pending = []
            for report in venue.read_reports(0.02 if len(sent) < orders else 0.5):
                last = time.monotonic()
                if report.exec_id in seen:
                    continue
                seen.add(report.exec_id)
                ends = report.kind in ("rejected", "expired", "cancelled", "filled")
                write({**report.record(), "ends": ends})
                ended |= {report.order} if ends else set()
            if time.monotonic() - last > PATIENCE_SECONDS:
                raise SystemExit(f"nothing comes any more: {len(ended)} of {orders} ended")
        venue.close()


if __name__ == "__main__":
    main()
