"""The venue as a real process, with faults, drop copies, and kills of either side."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from alphaloom.desk.cli.main import run_command
from alphaloom.execution import ChildOrder, ExecutionReport, Side
from alphaloom.execution.fix import (
    TRADING_RESENT,
    FixConnection,
    FixError,
    FixVenue,
    FixVersion,
    SessionSettings,
    read_report,
    reconcile_drop_copy,
)

from .processes import Venue, check_books, read_record, serve_venue, start_client

pytestmark = pytest.mark.integration


VERSIONS: dict[str, FixVersion] = {"OLD": "FIX.4.4", "NEW": "FIX.5.0SP2"}


def clock_us() -> int:
    return time.time_ns() // 1000


def connect(folder: Path, venue: Venue, name: str = "DESK", version: FixVersion = "FIX.4.4") -> FixConnection:
    settings = SessionSettings(version, name, "VENUE", True, 5, TRADING_RESENT)
    return FixConnection("127.0.0.1", venue.port, settings, folder / f"{name}.session", clock_us)


def make_order(id: str, side: Side = "buy", limit_e4: int | None = None) -> ChildOrder:
    return ChildOrder(id, "parent", "AAA", side, 100, "limit" if limit_e4 else "market", limit_e4, clock_us())


def read_until(venue: FixVenue, count: int, seconds: float = 15) -> list[ExecutionReport]:
    """Return reports until there are so many final ones or complete fills."""
    found: dict[str, ExecutionReport] = {}
    end = time.monotonic() + seconds
    while time.monotonic() < end and len({one.order for one in found.values() if one.kind != "accepted"}) < count:
        found |= {report.exec_id: report for report in venue.read_reports(0.2)}
    return list(found.values())


def kill_at_random(folder: Path, orders: int, kills: int, engine: str, seed: int, batch: int = 50) -> dict[str, int]:
    """Trade so many orders while either side is killed at random moments, and check the books."""
    chance, done = random.Random(seed), 0
    (folder / "desk").mkdir()
    with serve_venue(folder / "venue", "--keep-orders") as venue:
        words = (folder / "desk", venue.port, orders, engine, batch)
        client = start_client(*words)
        try:
            while done < kills and wait_for_rows(folder, client, chance.randint(1, max(orders // kills, 2))):
                time.sleep(chance.random() * 0.05)
                done += 1
                client = kill_one(chance.random() < 0.5, venue, client, lambda: start_client(*words))
            assert client.wait(timeout=900) == 0, (folder / "desk.client.log").read_text()[-2000:]
        finally:
            client.kill()
            client.wait()
        assert done == kills
        assert venue.stop() == 0
        return check_books(folder / "desk", venue, orders)


def kill_one(
    the_venue: bool, venue: Venue, client: subprocess.Popen[bytes], start: Callable[[], subprocess.Popen[bytes]]
) -> subprocess.Popen[bytes]:
    """Kill the venue or the client, start it again, and return the client."""
    if the_venue:
        venue.kill()
        venue.start()
        return client
    client.send_signal(signal.SIGKILL)
    client.wait()
    return start()


def wait_for_rows(folder: Path, client: subprocess.Popen[bytes], count: int) -> bool:
    """Wait until the client has written so many rows more; return whether it still runs."""
    goal = _count_lines(folder) + count
    while client.poll() is None and _count_lines(folder) < goal:
        time.sleep(0.005)
    return client.poll() is None


def _count_lines(folder: Path) -> int:
    path = folder / "desk/record.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_orders_of_both_versions_with_parts_and_a_drop_copy(tmp_path: Path) -> None:
    with serve_venue(tmp_path / "venue", "--partial-fills", "--drop-copy", "COPY", "--latency-ms", "20") as process:
        own: list[ExecutionReport] = []
        for name, version in VERSIONS.items():
            venue = FixVenue("v", connect(tmp_path, process, name, version), clock_us)
            venue.send([make_order(f"{name}-{n}", "buy" if n % 2 else "sell") for n in range(5)])
            venue.send([make_order(f"{name}-rest", limit_e4=10_000), make_order(f"{name}-cut", limit_e4=10_000)])
            venue.cancel([f"{name}-cut", "never sent"])
            reports = read_until(venue, 6)
            venue.cancel_all()
            reports += read_until(venue, 1)
            own += reports
            filled = [one for one in reports if one.kind == "filled"]
            assert sum(one.shares for one in filled) == 500
            assert len(filled) > 5
            assert {one.order for one in reports if one.kind == "cancelled"} == {f"{name}-rest", f"{name}-cut"}
            venue.close()
        copy_link = connect(tmp_path, process, "COPY")
        copied: list[ExecutionReport] = []
        while len(copied) < len(own):
            messages = copy_link.receive(2)
            assert messages
            copied += [report for report in map(read_report, messages) if report is not None]
        copy_link.confirm()
        copy_link.close()
        assert reconcile_drop_copy(own, copied) == ()
        assert process.stop() == 0
    fill = next(one for one in copied if one.kind == "filled")
    rest = [one for one in own if one.exec_id != fill.exec_id]
    (missing,) = reconcile_drop_copy(rest, copied)
    assert (missing.kind, missing.exec_id, missing.own) == ("fill only at the venue", fill.exec_id, None)
    (other,) = reconcile_drop_copy([*rest, replace(fill, shares=fill.shares + 1)], copied)
    assert (other.kind, other.record()["order"]) == ("another fill", fill.order)
    (ours,) = reconcile_drop_copy([*own, replace(fill, exec_id="E-x")], copied)
    assert ours.kind == "fill only in our records"
    assert fill.order in other.reason


def test_everything_that_goes_wrong_on_demand_at_once(tmp_path: Path) -> None:
    faults = ("--rejects", "20%", "--disconnects", "4%", "--malformed", "30%", "--seed", "5", "--latency-ms", "1")
    with serve_venue(tmp_path / "venue", *faults) as process:
        client = start_client(tmp_path / "desk", process.port, 100, batch=10)
        assert client.wait(timeout=150) == 0, (tmp_path / "desk.client.log").read_text()[-2000:]
        assert process.stop() == 0
        assert check_books(tmp_path / "desk", process, 100)["at the venue"] > 50
    reasons = [str(one["reason"]) for one in read_record(tmp_path / "desk") if one.get("kind") == "rejected"]
    assert 5 <= reasons.count("rejected on demand") <= 40
    log = (tmp_path / "venue.log").read_text()
    assert "breaks on demand" in log
    assert "Traceback" not in log


def test_kills_of_either_side_leave_each_order_once_or_unsent(tmp_path: Path) -> None:
    assert sum(kill_at_random(tmp_path, 1_000, 4, "own", seed=1).values()) == 1_000


def test_a_lost_session_loses_its_orders_unless_they_are_kept(tmp_path: Path) -> None:
    for option, kinds in (((), ["accepted", "cancelled"]), (("--keep-orders",), ["accepted"])):
        folder = tmp_path / "-".join(["f", *option])
        folder.mkdir()
        with serve_venue(folder / "venue", *option) as process:
            first = connect(folder, process)
            venue = FixVenue("v", first, clock_us)
            venue.send([make_order("rest", limit_e4=10_000)])
            assert [one.kind for one in venue.read_reports(5)] == ["accepted"]
            first._drop()
            again = read_until(venue, 1, seconds=5 if kinds[1:] else 0.5)
            assert [one.kind for one in again] == kinds[1:]
            venue.close()


def test_an_order_in_the_journal_is_not_asked_for_again(tmp_path: Path) -> None:
    """A kill between the journal and the session's own file: the number of what was taken counts."""
    with serve_venue(tmp_path / "venue") as process:
        link = connect(tmp_path, process)
        venue = FixVenue("v", link, clock_us)
        venue.send([make_order("a")])
        assert read_until(venue, 1)
        process.kill()
        path = tmp_path / "venue/sessions/DESK.journal"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(line for line in lines if line[9:10] != b"I"))
        process.start()
        venue.send([make_order("b")])
        orders = {report.order for report in read_until(venue, 1)}
        venue.close()
        assert process.stop() == 0
        assert process.count_orders() == {"a": 1, "b": 1}
    assert orders == {"b"}
    assert link.withdrawn == set()


def test_a_session_that_cannot_be_is_refused_and_a_venue_that_is_gone_sends_nothing(tmp_path: Path) -> None:
    with serve_venue(tmp_path / "venue") as process:
        venue = FixVenue("v", connect(tmp_path, process), clock_us)
        venue.send([make_order("a")])
        read_until(venue, 1)
        venue.close()
        (tmp_path / "DESK.session").unlink()
        with pytest.raises(FixError, match="MsgSeqNum too low"):
            FixVenue("v", connect(tmp_path, process), clock_us).send([make_order("b")])
        raw = socket.create_connection(("127.0.0.1", process.port))
        raw.sendall(b"GET / HTTP/1.1\r\n\r\n")
        raw.settimeout(5)
        assert raw.recv(10) == b""
        raw.close()
        gone = FixVenue("v", connect(tmp_path, process, "GONE"), clock_us)
        began = time.monotonic()
        assert process.stop() == 0
        assert time.monotonic() - began < 2
        gone.send([make_order("c")])
        (report,) = gone.read_reports(0)
        assert (report.kind, report.reason) == ("rejected", "not sent: there is no session")
        gone.close()


def test_mistakes_on_the_command_line_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text("symbol,price\nAAA,10\nAAA,11\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for words, code, text in (
            (["--port", port], 1, "cannot listen"),
            (["--prices", str(prices)], 2, "comes once"),
            (["--rejects", "5.001%"], 2, "no share"),
        ):
            assert run_command(["serve", "venue", *words]) == code
            assert text in capsys.readouterr().err
