"""Real processes for tests: `alphaloom serve venue`, and a desk that trades with it and can be killed at any moment."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alphaloom.execution.fix import decode
from alphaloom.execution.fix.journal import LineJournal

CLIENT = Path(__file__).with_name("client.py")


class Venue:
    """The command, started again at the same port after a kill."""

    def __init__(self, folder: Path, *options: str, port: int = 0) -> None:
        self.folder, self.options, self.port = folder, options, port
        self.process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "alphaloom", "serve", "venue", "--folder", str(self.folder)]
        with open(self.folder.with_suffix(".log"), "a") as log:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port), *self.options], stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout is not None
        found = re.search(r"127\.0\.0\.1:(\d+)", self.process.stdout.readline())
        assert found, self.folder.with_suffix(".log").read_text()
        self.port = int(found[1])

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=10)
        return self.process.returncode

    def count_orders(self) -> Counter[str]:
        """Return how often each ClOrdID is in the venue's journal; the venue must have ended."""
        with LineJournal(self.folder / "orders.journal") as journal:
            texts = [line.split(" ", 3)[3] for line in journal.lines]
        messages = [decode(text.encode("latin-1")) for text in texts if text != "-"]
        return Counter(message.get(11) for message in messages if message.kind == "D")


@contextmanager
def serve_venue(folder: Path, *options: str) -> Iterator[Venue]:
    """Serve a venue until the end of the block."""
    venue = Venue(folder, *options)
    try:
        yield venue
    finally:
        if venue.process is not None and venue.process.poll() is None:
            venue.kill()


def start_client(folder: Path, port: int, orders: int, engine: str = "own", batch: int = 50) -> subprocess.Popen[bytes]:
    """Start a desk that sends so many orders in all, those of earlier starts included."""
    words = [str(folder), str(port), str(orders), engine, str(batch)]
    with open(folder.with_suffix(".client.log"), "ab") as log:
        return subprocess.Popen([sys.executable, str(CLIENT), *words], stdout=log, stderr=log, env=os.environ)


def read_record(folder: Path) -> list[dict[str, object]]:
    """Return the lines of a client's record; a torn last one was never acted upon."""
    lines = (folder / "record.jsonl").read_text().split("\n")[:-1]
    return [json.loads(line) for line in lines]


def check_books(folder: Path, venue: Venue, orders: int) -> dict[str, int]:
    """Check that each recorded order is once at the venue or recorded as unsent; return how many are which."""
    record = read_record(folder)
    sent = [str(one["intent"]) for one in record if "intent" in one]
    unsent = {str(one["order"]) for one in record if str(one.get("reason", "")).startswith("not sent")}
    there = venue.count_orders()
    assert len(sent) == len(set(sent)) == orders
    assert max(there.values(), default=1) == 1, [id for id, count in there.items() if count > 1]
    assert set(there) | unsent == set(sent), (len(there), len(unsent), len(sent))
    assert not set(there) & unsent
    ended = {str(one["order"]) for one in record if one.get("ends")}
    assert ended == set(sent), sorted(set(sent) - ended)[:5]
    return {"at the venue": len(there), "unsent": len(unsent)}
