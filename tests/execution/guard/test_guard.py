"""The guard cancels what another session has open, again what comes after, and rests once the halt is released."""

import itertools
import json
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

import pytest

from alphaloom.desk.cli.main import run_command
from alphaloom.execution import ChildOrder, Halt, HaltSwitch
from alphaloom.execution.fix import (
    TRADING_RESENT,
    FixConnection,
    FixMessage,
    FixVenue,
    Outgoing,
    SessionSettings,
    journal,
)
from alphaloom.execution.fix.venue import AcceptorSettings, Exchange, ExchangeSettings, VenueAcceptor, VenueFaults
from alphaloom.execution.guard import Guard, GuardAnswer, keep_answer, list_answers
from alphaloom.execution.guard.guard import ASK_AGAIN_US

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


@pytest.fixture(params=[True, False], ids=["mass cancels", "one by one"])
def mass_cancels(request: pytest.FixtureRequest) -> bool:
    """Return whether the venue serves mass cancels."""
    return bool(request.param)


@pytest.fixture
def port(tmp_path: Path, mass_cancels: bool) -> Iterator[int]:
    """Serve a venue that knows the guard, and give its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    exchange = Exchange(ExchangeSettings(0, guard="GUARD", mass_cancels=mass_cancels))
    settings = AcceptorSettings(0, VenueFaults(0, 0, 0), cancel_on_disconnect=False)
    venue = VenueAcceptor(listener, tmp_path / "venue", exchange, settings, read_clock_us, lambda text: None)
    thread = Thread(target=venue.run)
    thread.start()
    yield listener.getsockname()[1]
    venue.stop()
    thread.join()
    venue.close()


def test_a_halt_ends_what_is_open_and_what_comes_after(port: int, tmp_path: Path, mass_cancels: bool) -> None:
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
        assert answers[0].one_by_one is not mass_cancels
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


@dataclass
class ScriptedLink:
    """A `FixLink` to a venue whose answers the test writes: they are rare, or those of another venue than ours."""

    sent: dict[str, Outgoing] = field(default_factory=dict)
    inbox: list[FixMessage] = field(default_factory=list)
    withdrawn: frozenset[str] = frozenset()
    ready: bool = True

    def say(self, kind: str, *fields: tuple[int, str]) -> None:
        self.inbox.append(FixMessage("FIX.4.4", kind, fields))

    def send(self, messages: Sequence[Outgoing]) -> None:
        self.sent.update((message.note, message) for message in messages)

    def receive(self, timeout_s: float) -> list[FixMessage]:
        messages, self.inbox = self.inbox, []
        return messages

    def find(self, note: str) -> FixMessage | None:
        kept = self.sent.get(note)
        return FixMessage("FIX.4.4", kept.kind, kept.fields) if kept else None

    def find_number(self, number: int) -> str:
        return ""

    def wait_until_ready(self, timeout_s: float) -> bool:
        return self.ready

    def confirm(self) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.mark.parametrize("kind", ["j", "3"])
def test_an_order_whose_cancel_is_rejected_is_asked_for_again_until_the_venue_has_none(
    tmp_path: Path, kind: str
) -> None:
    link, answers, times = ScriptedLink(), list[GuardAnswer](), itertools.count(step=ASK_AGAIN_US + 1)
    with HaltSwitch(tmp_path) as switch:
        guard = Guard(switch, link, lambda: next(times), answers.append)
        for order in ("a", "b"):
            link.say("8", (115, "DESK"), (11, order), (150, "0"), (55, "AAA"), (54, "1"), (151, "5"))
        guard.step()
        switch.set(Halt("test", "ann", 7))
        guard.step()
        assert [message.kind for message in link.sent.values()] == ["q"]
        link.say(kind, (372, "q"), (380, "3"))
        guard.step()
        first = {message.fields[1][1]: message for message in link.sent.values() if message.kind == "F"}
        assert [message.fields[0] for message in first.values()] == [(115, "DESK")] * 2
        link.say("8", (115, "DESK"), (11, first["a"].note), (41, "a"), (150, "4"), (151, "0"))
        link.say("9", (11, first["b"].note), (41, "b"), (102, "3"))
        guard.step()
        assert (guard.open_orders, answers) == (1, [])
        guard.step()
        *_, again = link.sent.values()
        assert (again.kind, again.fields[1]) == ("F", (41, "b"))
        assert again.note != first["b"].note
        link.say("9", (11, again.note), (41, "b"), (102, "1"))
        guard.step()
    assert guard.open_orders == 0
    assert [(answer.cancelled, answer.one_by_one) for answer in answers] == [(1, True)]


def test_a_session_that_is_down_gets_one_request_and_another_when_it_is_up(tmp_path: Path) -> None:
    link, times = ScriptedLink(ready=False), itertools.count(step=ASK_AGAIN_US + 1)
    with HaltSwitch(tmp_path) as switch:
        guard = Guard(switch, link, lambda: next(times), lambda answer: None)
        switch.set(Halt("test", "ann", 7))
        for _ in range(5):
            guard.step()
        assert [message.kind for message in link.sent.values()] == ["q"]
        link.ready = True
        guard.step()
    assert [message.kind for message in link.sent.values()] == ["q", "q"]


@pytest.mark.parametrize("mass_cancels", [True], indirect=True)
def test_a_kill_waits_for_the_disk_a_few_times_however_many_orders_are_open(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trader, link = FixVenue("test", connect("ONE", port, tmp_path), read_clock_us), connect("GUARD", port, tmp_path)
    answers, waits, sync = list[GuardAnswer](), list[int](), journal._sync

    def count(handle: int) -> None:
        waits.append(handle)
        sync(handle)

    with HaltSwitch(tmp_path) as switch:
        guard = Guard(switch, link, read_clock_us, answers.append)
        send(trader, *(str(number) for number in range(200)))
        run_until(guard, lambda: guard.open_orders == 200)
        monkeypatch.setattr(journal, "_sync", count)
        switch.set(Halt("test", "ann", 7))
        run_until(guard, lambda: bool(answers))
    assert answers[0].cancelled == 200
    assert 3 <= len(waits) <= 8  # the guard's request, the venue's journal, and the reports of each session
    link.close()
    trader.close()


def test_a_drill_is_measured_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--workspace", str(tmp_path), "--json"]
    assert run_command(["drill", "kill", "--orders", "30", "--times", "2", *place]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["orders"], told["drills"]) == (30, 2)
    assert 0 < told["p50_ms"] <= told["p99_ms"] == told["most_ms"]
    kept = json.loads(Path(told.pop("kept")).read_text())
    assert kept == told
    assert run_command(["drill", "kill", "--orders", "30", "--times", "1", "--one-by-one", *place]) == 0
    assert json.loads(capsys.readouterr().out)["one_by_one"] is True
