"""A real QuickFIX on either side of our session; `make fix` builds it once and runs this."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .processes import check_books, read_record, serve_venue, start_client
from .test_venue_process import kill_at_random

pytest.importorskip("quickfix", reason="QuickFIX is not installed: make fix builds it")
pytestmark = pytest.mark.slow

ORDERS = int(os.environ.get("FIX_ORDERS", "10000"))
KILLS = int(os.environ.get("FIX_KILLS", "20"))
PEER = Path(__file__).with_name("quickfix_peer.py")


@pytest.mark.parametrize("begin", ["FIX.4.4", "FIXT.1.1"])
def test_a_quickfix_client_with_its_dictionary_trades_at_our_venue(tmp_path: Path, begin: str) -> None:
    """QuickFIX checks each of our messages against its own dictionary; it rejects none, and logs out in peace."""
    with serve_venue(tmp_path / "venue", "--partial-fills", "--rejects", "20%", "--seed", "2") as venue:
        words = [sys.executable, str(PEER), "desk", str(tmp_path / "desk"), str(venue.port), begin]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        assert venue.stop() == 0
    kinds = done.stdout.split()
    assert {"8/0", "8/F", "8/8", "8/4", "9", "r", "j"} <= set(kinds)
    assert not [kind for kind in kinds if kind == "3"], "a message was rejected"


def start_acceptor(folder: Path, port: int) -> subprocess.Popen[str]:
    with open(folder.with_suffix(".log"), "a") as log:
        words = [sys.executable, str(PEER), "venue", str(folder), str(port), "FIX.4.4"]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_our_client_and_a_quickfix_acceptor_that_is_killed(tmp_path: Path) -> None:
    port, chance = free_port(), random.Random(3)
    process = start_acceptor(tmp_path / "venue", port)
    client = start_client(tmp_path / "desk", port, 1000)
    try:
        for _ in range(5):
            time.sleep(1 + chance.random())
            if chance.random() < 0.5:
                process.kill()
                process.communicate()
                process = start_acceptor(tmp_path / "venue", port)
            elif client.poll() is None:
                client.send_signal(signal.SIGKILL)
                client.wait()
                client = start_client(tmp_path / "desk", port, 1000)
        assert client.wait(timeout=300) == 0, (tmp_path / "desk.client.log").read_text()[-2000:]
    finally:
        client.kill()
        client.wait()
        process.kill()
        process.communicate()
    there = (tmp_path / "venue/orders.txt").read_text().split()
    record = read_record(tmp_path / "desk")
    unsent = {str(one["order"]) for one in record if str(one.get("reason", "")).startswith("not sent")}
    assert len(there) == len(set(there))
    assert set(there) | unsent == {f"order-{number}" for number in range(1000)}
    assert not set(there) & unsent


def test_ten_thousand_orders_over_quickfix_with_kills_of_either_side(tmp_path: Path) -> None:
    """Our venue, a QuickFIX initiator: each order is once at the venue or recorded as unsent."""
    began = time.monotonic()
    books = kill_at_random(tmp_path, ORDERS, KILLS, "quickfix", seed=20, batch=100)
    print(f"{ORDERS} orders, {KILLS} kills: {books}, {time.monotonic() - began:.0f} s")
    assert sum(books.values()) == ORDERS


def test_the_same_over_our_own_session(tmp_path: Path) -> None:
    books = kill_at_random(tmp_path, ORDERS, KILLS, "own", seed=21, batch=100)
    print(f"{ORDERS} orders, {KILLS} kills, our own session: {books}")
    assert sum(books.values()) == ORDERS


def test_a_quickfix_link_meets_rejects_and_malformed_messages(tmp_path: Path) -> None:
    with serve_venue(tmp_path / "venue", "--rejects", "20%", "--malformed", "20%", "--seed", "5") as venue:
        client = start_client(tmp_path / "desk", venue.port, 200, "quickfix")
        assert client.wait(timeout=300) == 0, (tmp_path / "desk.client.log").read_text()[-2000:]
        assert venue.stop() == 0
        check_books(tmp_path / "desk", venue, 200)
