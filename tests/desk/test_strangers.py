"""Every listener against strangers that hold all its connections: honest clients are answered, and SIGTERM ends it.

Each server is a process of its own that may have 1,024 descriptors, as `ulimit -n 1024` allows. All is on this machine.
"""

from __future__ import annotations

import resource
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest

from alphaloom.mcp_servers.access import Grant, create_token

from ..mcp_servers.started import ROOT, alphaloom, campaign, environment
from ..serving.gateway.modelled import modelled

pytestmark = pytest.mark.integration

DESCRIPTORS, STRANGERS = 1024, 1100
ANSWER_S, END_S = 2.0, 5.0
"""The promises: how soon an honest client is answered, and how soon SIGTERM ends a server, whatever is held open."""
SLACK = 2.0
"""How much longer a busy machine may take."""
START_S = 120.0
RULES = {
    "market": {"synthetic": {"days": 420, "names": 60, "late_listings": 0.0}},
    "evidence": {"windows": {"min_sealed_days": 40}},
}
LISTED = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
CALL = {"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 3}
LONG = CALL | {"stream": True, "max_tokens": 500, "metadata": {"pause": 0.5}}
HEAD = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
GET = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
Drip = Callable[[int], bytes]


@dataclass(frozen=True)
class Attack:
    """How many strangers connect, what each sends first, and what each sends in every later fifth of a second."""

    first: bytes
    many: int = STRANGERS
    later: bytes = b""


ATTACKS = {
    "silent": Attack(b"G"),
    "half a header": Attack(HEAD + b"X-Half: "),
    "no body": Attack(HEAD + b"Content-Length: 1000\r\n\r\n", 200),
    "drip": Attack(HEAD + b"X-Slow: ", later=b"x"),
    "dripping body": Attack(HEAD + b"Content-Length: 100000\r\n\r\n", later=b"x"),
    "idle": Attack(GET),
    "deaf": Attack(GET * 2000, 100),
}


@dataclass
class Running:
    """A server's process, where it listens, and the path, body and token of an honest call."""

    process: subprocess.Popen[bytes]
    url: str
    path: str
    body: dict[str, object]
    token: str
    log: Path
    verify: ssl.SSLContext | bool = True
    long: dict[str, object] | None = None
    took: list[float] = field(default_factory=list)
    took_to_end: float = 0.0

    @property
    def place(self) -> tuple[str, int]:
        where = httpx2.URL(self.url)
        return where.host, where.port or 0

    def ask(self, within: float = SLACK * ANSWER_S) -> None:
        """Ask once as an honest client does, over a connection of its own."""
        own = {"authorization": f"Bearer {self.token}", "accept": "application/json, text/event-stream"}
        began = time.monotonic()
        answer = httpx2.post(
            self.url + self.path, json=self.body, headers=own, timeout=within, verify=self.verify, trust_env=False
        )
        self.took.append(time.monotonic() - began)
        assert answer.status_code == 200, answer.text


@pytest.fixture(autouse=True)
def descriptors() -> None:
    """Let the strangers of this process have as many connections as they need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * STRANGERS:
        pytest.skip(f"a process may have {hard} descriptors here: too few for {STRANGERS} strangers")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * STRANGERS), hard))


@contextmanager
def process(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command that may have so many descriptors and no more; kill it at the end if it still runs."""
    limited = ["sh", "-c", f'ulimit -n {DESCRIPTORS}; exec "$@"', "sh", *command]
    with log.open("wb") as said, subprocess.Popen(limited, stdout=said, stderr=said, env=environment()) as running:
        try:
            yield running
        finally:
            running.kill()


def said(running: subprocess.Popen[bytes], log: Path, begins: str) -> str:
    """Return the first address that a server prints."""
    end = time.monotonic() + START_S
    while time.monotonic() < end and running.poll() is None:
        words = log.read_text().replace('"', " ").split()
        if (found := next((word for word in words if word.startswith(begins)), "")) and log.read_text().endswith("\n"):
            return "/".join(found.split("/")[:3])
        time.sleep(0.02)
    raise AssertionError(log.read_text())


def token(folder: Path, *scopes: str) -> tuple[str, list[str]]:
    grant = Grant(scopes, datetime(2990, 1, 1, tzinfo=UTC).date())
    made = create_token(folder / "tokens.yaml", grant, now=datetime.now(UTC)).token
    return made, ["--auth", str(folder / "tokens.yaml")]


@contextmanager
def mcp(folder: Path) -> Iterator[Running]:
    made, auth = token(folder, "data:read")
    files = ["--campaign", str(campaign(folder, RULES)), "--workspace", str(folder / "desk")]
    command = [*alphaloom(), "serve", "mcp", "--all", "--http", "127.0.0.1:0", *auth, *files]
    log = folder / "log"
    with process(command, log) as running:
        yield Running(running, said(running, log, "http://"), "/market/mcp", dict(LISTED), made, log)


@contextmanager
def gateway(folder: Path) -> Iterator[Running]:
    made, auth = token(folder, "model:ask")
    log = folder / "log"
    with modelled() as endpoint:
        command = [*alphaloom(), "models", "gate", endpoint.address, "--places", "4", "--listen", "127.0.0.1:0", *auth]
        with process(command, log) as running:
            url = said(running, log, "http://")
            yield Running(running, url, "/v1/chat/completions", dict(CALL), made, log, long=dict(LONG))


@contextmanager
def attested(folder: Path) -> Iterator[Running]:
    log, key = folder / "log", str(folder / "key.pem")
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with modelled() as endpoint:
        command = [sys.executable, str(ROOT / "examples" / "attested_endpoint.py"), "--upstream", endpoint.address]
        with process([*command, "--model", "tiny", "--port", "0", "--key", key], log) as running:
            url = said(running, log, "https://")
            yield Running(running, url, "/v1/chat/completions", dict(CALL), "any", log, trusting)


SERVERS = {"mcp": mcp, "gateway": gateway, "attested": attested}


@contextmanager
def held(server: Running, attack: Attack) -> Iterator[None]:
    """Hold a stranger's connections open; those that the server drops are opened anew, as a stranger would."""
    stop = threading.Event()
    with ExitStack() as open_:
        strangers = [open_.enter_context(stranger(server, attack)) for _ in range(attack.many)]
        dripping = threading.Thread(target=drip, args=(strangers, attack.later, stop))
        dripping.start()
        try:
            yield
        finally:
            stop.set()
            dripping.join()


def stranger(server: Running, attack: Attack) -> socket.socket:
    wire = socket.create_connection(server.place, timeout=20)
    wire.setblocking(False)
    with suppress(OSError):
        wire.send(attack.first.replace(b"%s", server.path.encode()))
    return wire


def drip(strangers: list[socket.socket], later: bytes, stop: threading.Event) -> None:
    while later and not stop.wait(0.2):
        for wire in strangers:
            with suppress(OSError):
                wire.send(later)


def check_end(server: Running) -> None:
    began = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(SLACK * END_S) == 0, server.log.read_text()
    server.took_to_end = time.monotonic() - began
    assert "Traceback" not in server.log.read_text()


@contextmanager
def under_way(server: Running) -> Iterator[None]:
    """Have an honest call under way that takes minutes."""
    if not server.long:
        yield
        return
    own = {"authorization": f"Bearer {server.token}"}
    with (
        httpx2.Client(verify=server.verify, trust_env=False, timeout=60) as http,
        http.stream("POST", server.url + server.path, json=server.long, headers=own) as answer,
    ):
        assert answer.status_code == 200
        pieces = answer.iter_raw()
        next(pieces)
        yield
        assert pieces, "read no further, and not closed"


def check_answers(server: Running, attack: Attack) -> None:
    """Ask during an attack and after it."""
    with held(server, attack):
        for _ in range(3):
            server.ask()
    server.ask()


@pytest.mark.parametrize("kind", SERVERS)
def test_strangers_keep_no_honest_client_out_and_no_server_from_its_end(kind: str, tmp_path: Path) -> None:
    with SERVERS[kind](tmp_path) as server:
        server.ask(within=60)
        server.took.clear()
        for attack in ATTACKS.values():
            check_answers(server, attack)
        with held(server, ATTACKS["silent"]), held(server, ATTACKS["no body"]), under_way(server):
            server.ask()
            check_end(server)
    print(f"\n{kind}: the slowest honest call {max(server.took):.2f} s, the end {server.took_to_end:.2f} s")


def test_a_signal_in_the_first_moment_ends_the_mcp_servers(tmp_path: Path) -> None:
    with mcp(tmp_path) as server:
        check_end(server)
