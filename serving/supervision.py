"""Start a model server, wait until /health answers, watch it, and end it with all its processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .errors import PortTaken, ServingError

POLL_S, ASK_S = 0.1, 2.0
LAST_LINES, LAST_BYTES, MAX_LOG_CHARS_SHOWN = 20, 32_768, 100
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Say = Callable[[str], None]


@dataclass(frozen=True)
class ServerLaunch:
    """The launch of a server: command, address, log and time limits."""

    command: Sequence[str]
    environment: Mapping[str, str]
    """The whole environment of the process."""
    host: str
    port: int
    log: Path
    deadline_s: float = 300.0
    grace_s: float = 30.0
    """Seconds between SIGINT and SIGKILL."""
    notice_every_s: float = 10.0
    """Seconds between notices that it is still starting."""

    @property
    def address(self) -> str:
        """Return the address for requests: that of this machine if it listens on all interfaces."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


class Stop:
    """The signal that requested the end; a plain attribute, since a handler may interrupt the holder of a lock."""

    signal = 0

    def record(self, number: int, _: object) -> None:
        """Record a signal."""
        self.signal = number


def supervise(launch: ServerLaunch, say: Say) -> None:
    """Run the server until a signal requests the end; raise when it ends by itself or is not ready in time."""
    with _claim_port(launch.port), _catch_signals() as stop, launch.log.open("wb") as log:
        _check_port_free(launch)
        process = _start_server(launch, log)
        say(f"Starting as process {process.pid}; its log is {launch.log}")
        try:
            if _wait_until_well(launch, process, stop, say):
                say(f"Ready at {launch.address}/v1 (process {process.pid}). Ctrl-C ends it.")
                _watch(launch, process, stop)
        finally:
            _end_server(process, launch.grace_s, say)


@contextlib.contextmanager
def _claim_port(port: int) -> Iterator[None]:
    """Hold a lock on a port: a server binds its port only after minutes, so until then the port looks free."""
    place = Path(tempfile.gettempdir()) / f"alphaloom-{os.getuid()}-port-{port}.lock"
    handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PortTaken(
                f"another `alphaloom models serve` has port {port}",
                field="--port",
                got=str(port),
                hint="Choose another port.",
            ) from None
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def _catch_signals() -> Iterator[Stop]:
    stop = Stop()
    handlers = {number: signal.signal(number, stop.record) for number in STOP_SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _check_port_free(launch: ServerLaunch) -> None:
    """Refuse a port on which a program listens, or that this account may not bind."""
    try:
        address = socket.getaddrinfo(launch.host, launch.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(address[0], address[1]) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address[4])
    except OSError as error:
        raise PortTaken(
            f"the server cannot listen at {launch.host}:{launch.port}: {error.strerror or error}",
            field="--port",
            got=f"{launch.host}:{launch.port}",
            hint="Stop what listens there, or choose another port.",
        ) from None


def _start_server(launch: ServerLaunch, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the server in a process group of its own, so that Ctrl-C reaches it only through this process."""
    try:
        return subprocess.Popen(
            launch.command,
            env=launch.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise ServingError(
            f"{launch.command[0]} cannot be started: {error.strerror or error}", field="--vllm", got=launch.command[0]
        ) from None


def _wait_until_well(launch: ServerLaunch, process: subprocess.Popen[bytes], stop: Stop, say: Say) -> bool:
    """Wait until /health answers; return False where a signal came first."""
    started = last_notice = time.monotonic()
    while not stop.signal:
        _check_alive(launch, process)
        if _is_well(launch.address):
            _check_alive(launch, process)
            return True
        now = time.monotonic()
        if now - started > launch.deadline_s:
            raise ServingError(
                f"the server was not well within {launch.deadline_s:g} s, and was ended."
                f"{_describe_log_tail(launch.log)}",
                code="server_failed",
                exit_code=3,
                field="--deadline",
                hint=f"Its whole log is {launch.log}; a large model may need longer.",
            )
        if now - last_notice >= launch.notice_every_s:
            last_notice = now
            last_line = "".join(_read_tail(launch.log, 1))[:MAX_LOG_CHARS_SHOWN]
            say(f"Starting: {now - started:.0f} of {launch.deadline_s:g} s. {last_line}".rstrip())
        time.sleep(POLL_S)
    return False


def _watch(launch: ServerLaunch, process: subprocess.Popen[bytes], stop: Stop) -> None:
    while not stop.signal:
        _check_alive(launch, process)
        time.sleep(POLL_S)


def _check_alive(launch: ServerLaunch, process: subprocess.Popen[bytes]) -> None:
    code = process.poll()
    if code is None:
        return
    how = f"by signal {-code}" if code < 0 else f"with code {code}"
    raise ServingError(
        f"the server ended {how}.{_describe_log_tail(launch.log)}",
        code="server_failed",
        exit_code=3,
        hint=f"Its whole log is {launch.log}",
    )


def _is_well(address: str) -> bool:
    """Return whether /health answers 200; the request never uses a proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{address}/health", timeout=ASK_S) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError, ValueError):
        return False


def _end_server(process: subprocess.Popen[bytes], grace_s: float, say: Say) -> None:
    """End the process group: SIGINT, as vLLM expects, then SIGKILL for all that is left after the grace."""
    if process.poll() is None:
        _send_signal(process, signal.SIGINT)
        try:
            process.wait(grace_s)
        except subprocess.TimeoutExpired:
            say(f"The server did not end within {grace_s:g} s after SIGINT: it is killed.")
    _send_signal(process, signal.SIGKILL)  # workers that outlive the server would keep its memory
    process.wait()


def _send_signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _describe_log_tail(log: Path) -> str:
    lines = _read_tail(log, LAST_LINES)
    return (
        " The last lines of its log:\n" + "\n".join(f"  | {line}" for line in lines) if lines else " Its log is empty."
    )


def _read_tail(log: Path, count: int) -> list[str]:
    """Return the last lines of a log, without control characters."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - LAST_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()[-count:]
    return ["".join(character if character.isprintable() else " " for character in line)[:400] for line in lines]
