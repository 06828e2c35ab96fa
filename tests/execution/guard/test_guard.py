"""The guard cancels what another session has open, again what comes after, and rests once the halt is released."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest

from alphaloom.desk.cli.main import run_command
from alphaloom.execution import ChildOrder, Halt, HaltSwitch
from alphaloom.execution.fix import TRADING_RESENT, FixConnection, FixVenue, SessionSettings
from alphaloom.execution.fix.venue import AcceptorSettings, Exchange, ExchangeSettings, VenueAcceptor, VenueFaults
from alphaloom.execution.guard import Guard, GuardAnswer, keep_answer, list_answers

pytestmark = pytest.mark.integration
PATIENCE_S = 30.0


def read_clock_us() -> int:
    return time.time_ns() // 1000


def connect(name: str, port: int, folder: Path) -> FixConnection:
    settings = SessionSettings("FIX.4.4", name, "VENUE", True, 30, TRADING_RESENT)
    return FixConnection("127.0.0.1", port, settings, folder / f"{name}.journal", read_clock_us)


def send(trader: FixVenue, *names: str) -> list[str]:
    """Send bids that nobody takes, wait until the venue has them, and return what was cancelled meanwhile."""
    trader.send([ChildOrder(name, "p", "AAA", "buy", 100, "limit", 10_000, 0) for name in names])
    waiting, cancelled = {*names}, list[str]()
    while waiting:
        for report in trader.read_reports(1.0):
            waiting -= {report.order} if report.kind == "accepted" else set()
            cancelled += [report.order] if report.kind == "cancelled" else []
    return cancelled


def run_until(guard: Guard, done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < end
        guard.step()


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Serve a venue that knows the guard, and give its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    exchange = Exchange(ExchangeSettings(0, guard="GUARD"))
    settings = AcceptorSettings(0, VenueFaults(0, 0, 0), cancel_on_disconnect=False)
    venue = VenueAcceptor(listener, tmp_path / "venue", exchange, settings, read_clock_us, lambda text: None)
    thread = Thread(target=venue.run)
    thread.start()
    yield listener.getsockname()[1]
    venue.stop()
    thread.join()
    venue.close()


def test_a_halt_ends_what_is_open_and_what_comes_after(port: int, tmp_path: Path) -> None:
    traders = [FixVenue("test", connect(name, port, tmp_path), read_clock_us) for name in ("ONE", "TWO")]
    link, answers = connect("GUARD", port, tmp_path), list[GuardAnswer]()
    with HaltSwitch(tmp_path) as switch:
        guard = Guard(switch, link, read_clock_us, answers.append)
        send(traders[0], "a", "b", "c")  # before the guard is there
        run_until(guard, lambda: guard.open_orders == 3)
        send(traders[1], "a", "d")
        run_until(guard, lambda: guard.open_orders == 5)
        switch.set(Halt("test", "ann", 7))
        run_until(guard, lambda: bool(answers))
        assert (answers[0].halted_us, answers[0].cancelled, guard.open_orders) == (7, 5, 0)
        assert answers[0].noticed_us <= answers[0].ended_us
        cancelled = send(traders[0], "late")  # a process that does not read the halt file
        run_until(guard, lambda: len(answers) == 2)
        assert (answers[1].cancelled, guard.open_orders) == (6, 0)
        switch.release(Halt("fine", "ann", 9), "bob")
        guard.step()
        cancelled += send(traders[0], "kept")
        run_until(guard, lambda: guard.open_orders == 1)
        switch.set(Halt("again", "ann", 11))
        run_until(guard, lambda: len(answers) == 3)
        assert (answers[2].halted_us, answers[2].cancelled) == (11, 1)
    cancelled += [report.order for report in traders[0].read_reports(1.0) if report.kind == "cancelled"]
    assert cancelled == ["a", "b", "c", "late", "kept"]
    for answer in answers:
        keep_answer(tmp_path, answer)
    assert list_answers(tmp_path) == answers
    link.close()
    for trader in traders:
        trader.close()


def test_a_drill_is_measured_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--workspace", str(tmp_path), "--json"]
    assert run_command(["drill", "kill", "--orders", "30", "--times", "2", *place]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["orders"], told["drills"]) == (30, 2)
    assert 0 < told["p50_ms"] <= told["p99_ms"] == told["most_ms"]
    kept = json.loads(Path(told.pop("kept")).read_text())
    assert kept == told
