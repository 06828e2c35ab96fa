"""A server and its children are started, awaited, watched and ended; a small real program stands in for vLLM."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from alphaloom.serving import ServerLaunch, supervise
from alphaloom.serving.errors import PortTaken, ServingError

STAND_IN = Path(__file__).with_name("stand_in.py")
Make = Callable[..., ServerLaunch]


def fails(said: str | None = None) -> pytest.RaisesExc[ServingError]:
    """Expect that a server ends or is never well, and the words."""
    return pytest.raises(ServingError, match=said, check=lambda error: error.code == "server_failed")


@pytest.fixture
def no_network() -> None:
    """Allow what the rest of the room forbids: these tests ask a server of their own, on this machine."""


@pytest.fixture
def launch(tmp_path: Path) -> Make:
    """Return a maker of launches of the stand-in on a free port."""

    def make(fault: str = "", deadline: float = 20.0, grace: float = 10.0) -> ServerLaunch:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [sys.executable, str(STAND_IN), "--model", "tiny", "--host", "127.0.0.1", "--port", str(port)]
        environment = dict(os.environ) | {"STAND_IN": fault, "HTTP_PROXY": "http://127.0.0.1:9"}
        return ServerLaunch(command, environment, "127.0.0.1", port, tmp_path / "server.log", deadline, grace)

    return make


@contextmanager
def signalled(number: signal.Signals, when: threading.Event) -> Iterator[None]:
    """Send this process a signal when an event has come, as a person or a service manager would."""

    def send() -> None:
        if when.wait(20):
            os.kill(os.getpid(), number)

    sender = threading.Thread(target=send)
    sender.start()
    yield
    when.set()
    sender.join()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def until_stopped(launch: ServerLaunch, number: signal.Signals) -> list[str]:
    """Supervise until it is well, then send a signal; return what was said."""
    said: list[str] = []
    well = threading.Event()

    def say(text: str) -> None:
        said.append(text)
        if text.startswith("Ready"):
            well.set()

    with signalled(number, well):
        supervise(launch, say)
    return said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_is_well_and_ends_when_asked(launch: Make, number: signal.Signals) -> None:
    asked = launch()
    handler = signal.getsignal(number)
    said = until_stopped(asked, number)
    assert [line.split()[0] for line in said] == ["Starting", "Ready"]
    assert f"http://127.0.0.1:{asked.port}/v1" in said[1]
    assert "ended by SIGINT" in asked.log.read_text()
    assert not listens(asked.port)
    assert signal.getsignal(number) is handler


def test_one_that_ignores_sigint_is_killed_after_its_grace(launch: Make) -> None:
    asked = launch("deaf", grace=0.5)
    said = until_stopped(asked, signal.SIGTERM)
    assert said[-1] == "The server did not end within 0.5 s after SIGINT: it is killed."
    assert not listens(asked.port)


def test_what_the_server_started_ends_with_it(launch: Make) -> None:
    asked = launch("parent")
    until_stopped(asked, signal.SIGINT)
    child = int(re.findall(r"child (\d+)", asked.log.read_text())[0])
    assert gone(child)


def gone(process: int, seconds: float = 10.0) -> bool:
    """Tell whether a process ends; one that only waits for its parent to hear of it has ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_one_that_dies_at_start_tells_its_last_lines(launch: Make) -> None:
    with fails(r"ended with code 7\. The last lines") as caught:
        supervise(launch("dies"), lambda _: None)
    assert "  | torch.OutOfMemoryError: no memory [31m left" in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert caught.value.exit_code == 3


def test_one_that_dies_while_it_serves_is_noticed(launch: Make) -> None:
    said: list[str] = []
    with fails("ended with code 9"):
        supervise(launch("dies-later"), said.append)
    assert said[-1].startswith("Ready")


def test_one_that_is_never_well_is_ended_at_the_deadline(launch: Make) -> None:
    asked = launch("sick", deadline=1.0)
    with fails(r"not well within 1 s, and was ended"):
        supervise(asked, lambda _: None)
    assert not listens(asked.port)


def test_a_person_may_end_what_is_still_starting(launch: Make) -> None:
    asked, begun = launch("sick"), threading.Event()

    def say(_: str) -> None:
        begun.set()

    with signalled(signal.SIGINT, begun):
        supervise(asked, say)
    assert not listens(asked.port)


def test_progress_is_told_with_the_last_line_of_the_log(launch: Make) -> None:
    said: list[str] = []
    with fails():
        supervise(replace(launch("sick", deadline=1.5), notice_every_s=0.3), said.append)
    assert any(re.match(r"Starting: \d of 1\.5 s\. \S", line) for line in said)


def test_a_port_on_which_something_listens_is_refused(launch: Make) -> None:
    asked = launch()
    with socket.create_server(("127.0.0.1", asked.port)), pytest.raises(PortTaken, match="cannot listen") as caught:
        supervise(asked, lambda _: None)
    assert caught.value.exit_code == 1


def test_a_port_that_another_start_has_claimed_is_refused_before_it_listens(launch: Make) -> None:
    asked = launch("sick", deadline=1.0)
    refused: list[PortTaken] = []

    def again(text: str) -> None:
        if not refused:
            with pytest.raises(PortTaken, match="another `alphaloom models serve`") as caught:
                supervise(asked, lambda _: None)
            refused.append(caught.value)

    with fails():
        supervise(asked, again)
    assert refused


def test_a_command_that_is_not_there_is_said(launch: Make, tmp_path: Path) -> None:
    asked = launch()
    missing = ServerLaunch([str(tmp_path / "vllm")], {}, asked.host, asked.port, asked.log)
    with pytest.raises(ServingError, match="cannot be started: No such file"):
        supervise(missing, lambda _: None)
