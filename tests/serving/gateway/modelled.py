"""An endpoint that speaks as vLLM does, on this machine: what it says is told by the call itself, in its `metadata`."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ...router.served import Quiet, listening

METRICS = b"# HELP vllm:num_requests_running Running.\nvllm:num_requests_running 3.0\n"


@dataclass
class Endpoint:
    """Where it is, every call that reached it, and how many of them it works on."""

    address: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    looks: list[str] = field(default_factory=list)
    says: dict[str, str] = field(default_factory=dict)
    """Further headers of each reply."""
    under_way: int = 0
    left: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, by: int) -> None:
        with self.lock:
            self.under_way += by
            self.most = max(self.most, self.under_way)


def words(told: dict[str, Any]) -> int:
    """Return how many tokens the reply has: as many as `max_tokens` says."""
    return int(told.get("max_tokens", 3))


def whole(told: dict[str, Any]) -> bytes:
    """Return a reply that is no stream."""
    usage = {"prompt_tokens": told.get("really", 11), "completion_tokens": words(told), "total_tokens": 0}
    message = {"role": "assistant", "content": "wörd " * words(told)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"id": "x", "object": "chat.completion", "created": 1, "model": told.get("model"),
                       "choices": [choice], "usage": usage}, ensure_ascii=False).encode()  # fmt: skip  # a table


def events(told: dict[str, Any]) -> Iterator[bytes]:
    """Yield a stream as vLLM writes it: the role, a word a piece, usage if it is asked for."""
    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": told.get("model")}
    deltas = [{"role": "assistant", "content": ""}, *({"content": "wörd "} for _ in range(words(told)))]
    for delta in deltas:
        yield b"data: " + json.dumps({**head, "choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"
    if (told.get("stream_options") or {}).get("include_usage"):
        usage = {"prompt_tokens": told.get("really", 11), "completion_tokens": 2 * words(told)}
        yield b"data: " + json.dumps({**head, "choices": [], "usage": usage}).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


class Says(Quiet):
    """One connection."""

    endpoint: Endpoint

    def end_headers(self) -> None:
        for name, value in self.endpoint.says.items():
            self.send_header(name, value)
        super().end_headers()

    def do_GET(self) -> None:
        bodies = {"/v1/models": b'{"data": [{"id": "tiny"}]}', "/health": b"", "/metrics": METRICS}
        self.endpoint.looks.append(self.path)
        self.send(200, bodies[self.path])

    def do_POST(self) -> None:
        self.endpoint.headers.append({name.lower(): value for name, value in self.headers.items()})
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.endpoint.calls.append(told)
        self.endpoint.asked.append(self.path)
        told = {**told, **told.get("metadata", {})}
        self.endpoint.count(+1)
        try:
            self._say(told)
        except OSError:
            self.endpoint.left += 1
            self.close_connection = True
        finally:
            self.endpoint.count(-1)

    def _say(self, told: dict[str, Any]) -> None:
        pause = float(told.get("pause", 0.0))
        if told.get("fails"):
            self.send(int(told["fails"]), b'{"error": {"message": "no such model", "code": 404}}')
        elif not told.get("stream"):
            self._wait(pause)
            self.send(200, whole(told))
        else:
            self._stream(told, pause)

    def _wait(self, seconds: float) -> None:
        """Work, and look whether anybody still listens, as vLLM does."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.connection.settimeout(min(left, 0.02))
            with contextlib.suppress(TimeoutError):
                if not self.connection.recv(1):
                    raise ConnectionResetError
        self.connection.settimeout(None)

    def _stream(self, told: dict[str, Any], pause: float) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("X-Request-Id", "seven")
        self.end_headers()
        for number, event in enumerate(events(told)):
            if number == told.get("breaks_after"):
                self.close_connection = True
                return
            self._wait(pause)
            for part in (event[:9], event[9:]):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        self.wfile.write(b"0\r\n\r\n")


@contextlib.contextmanager
def modelled() -> Iterator[Endpoint]:
    """Serve such an endpoint."""
    endpoint = Endpoint()
    with listening(type("Here", (Says,), {"endpoint": endpoint})) as address:
        endpoint.address = address
        yield endpoint
