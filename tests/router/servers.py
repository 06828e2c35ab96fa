"""OpenAI-shaped servers on this machine that are slow, fail, hang, die and come back as they are told."""

from __future__ import annotations

import contextlib
import http.server
import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

IDEA = '{"text": "drift", "direction": 1}'
LINGER = struct.pack("ii", 1, 0)
"""Makes a closed connection one that broke, as that of a killed process is."""


@dataclass
class Server:
    """A server of one model.

    `changes` replaces members of its answers, or all of them, `version` is that of its program where it tells it, and
    `location` is where it sends whoever asks. Every
    `slow_every`th call takes `slow_s`. `statuses` are said to the next calls, then all is well; `hangs` lets calls,
    `deaf` all requests wait for ever. `served` counts the answers given to each prompt, `posts`, `gets` and `cut` the
    calls, the looks, and the calls whose caller left.
    """

    text: str = IDEA
    delay_s: float = 0.0
    slow_s: float = 0.0
    slow_every: int = 0
    hangs: bool = False
    deaf: bool = False
    metrics: str | None = None
    version: str = ""
    statuses: list[int] = field(default_factory=list)
    changes: dict[str, Any] | str | None = None
    location: str = ""
    before_answer: Callable[[], None] = lambda: None
    served: Counter[str] = field(default_factory=Counter)
    gets: Counter[str] = field(default_factory=Counter)
    posts: int = 0
    cut: int = 0
    port: int = 0

    def __post_init__(self) -> None:
        """Prepare to start."""
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._http: http.server.ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self._dead = threading.Event()

    @property
    def address(self) -> str:
        """The address as a configuration names it."""
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> Self:
        """Serve, on the port of before if there was one."""
        self._dead = threading.Event()
        self._http = _Listener(("127.0.0.1", self.port), type("Handler", (_Handler,), {"owner": self}))
        self.port = self._http.server_port
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def kill(self) -> None:
        """End at once: every connection breaks, and the port is closed."""
        self._dead.set()
        if self._http is None or self._thread is None:
            return
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        self._http = None
        with self._lock:
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
                    each.shutdown(socket.SHUT_RDWR)
                    each.close()

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """End."""
        self.kill()

    def opened(self, connection: socket.socket, *, now: bool) -> None:
        """Note a connection that begins or ends."""
        with self._lock:
            (self._open.add if now else self._open.discard)(connection)

    @property
    def seconds(self) -> float:
        """How long it thinks about the call that came last."""
        if self.hangs or self.deaf:
            return 3600.0
        return self.slow_s if self.slow_every and self.posts % self.slow_every == 0 else self.delay_s

    def count(self, what: str) -> None:
        """Count a call or a caller who left."""
        with self._lock:
            setattr(self, what, getattr(self, what) + 1)

    def was_cut(self, times: int, seconds: float = 10.0) -> bool:
        """Tell whether so many callers have left; one that just did is noticed a moment later."""
        until = time.monotonic() + seconds
        while self.cut < times and time.monotonic() < until:
            time.sleep(0.005)
        return self.cut == times

    def wait(self, seconds: float, connection: socket.socket) -> bool:
        """Wait as a model thinks; return whether there is anybody left to answer, or to do so."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._dead.is_set():
            time.sleep(min(left, 0.005))
            if _left(connection):
                self.count("cut")
                return False
        return not self._dead.is_set()


class _Listener(http.server.ThreadingHTTPServer):
    """Leaves its threads to end by themselves, and takes a crowd."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def handle_error(self, *_: object) -> None:
        """Say nothing of callers that left."""


def _left(connection: socket.socket) -> bool:
    """Return whether the other side has closed."""
    try:
        connection.setblocking(False)
        return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        with contextlib.suppress(OSError):
            connection.setblocking(True)


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers one connection, in the name of the server that owns it."""

    protocol_version = "HTTP/1.1"
    owner: ClassVar[Server]

    def setup(self) -> None:
        """Begin."""
        super().setup()
        self.owner.opened(self.connection, now=True)

    def finish(self) -> None:
        """End."""
        self.owner.opened(self.connection, now=False)
        with contextlib.suppress(OSError):
            super().finish()

    def do_GET(self) -> None:
        """Say that all is well, or how busy it is."""
        with self.owner._lock:
            self.owner.gets[self.path] += 1
        if self.owner.deaf and not self.owner.wait(3600, self.connection):
            return
        if self.path == "/metrics" and self.owner.metrics is not None:
            self._say(200, self.owner.metrics.encode())
        elif self.path == "/version" and self.owner.version:
            self._say(200, json.dumps({"version": self.owner.version}).encode())
        else:
            self._say(404 if self.path == "/metrics" else 200, b"{}")

    def do_POST(self) -> None:
        """Answer a chat."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.owner.count("posts")
        with self.owner._lock:
            status = self.owner.statuses.pop(0) if self.owner.statuses else 200
        if not self.owner.wait(self.owner.seconds, self.connection):
            return
        self.owner.before_answer()
        if status == 200:
            with self.owner._lock:
                self.owner.served[body["messages"][-1]["content"]] += 1
        if self.owner.location:
            self._say(307, b"{}")
        elif isinstance(self.owner.changes, str):
            self._say(status, self.owner.changes.encode())
        else:
            told = _chat(body, self.owner.text) | (self.owner.changes or {}) if status == 200 else _error(status)
            self._say(status, json.dumps(told).encode())

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        if status == 307:
            self.send_header("Location", self.owner.location)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _chat(body: dict[str, Any], text: str) -> dict[str, Any]:
    """Return an answer as servers shape it."""
    message = {"role": "assistant", "content": text}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def _error(status: int) -> dict[str, Any]:
    """Return a refusal as servers shape it."""
    return {"error": {"message": "not now", "code": status}}
