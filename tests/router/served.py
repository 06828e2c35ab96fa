"""Small local servers: one that speaks the OpenAI protocol, and one that says what it is told to."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

IDEA = '{"text": "drift", "direction": 1}'
Say = Callable[[Sequence[Mapping[str, Any]], int], str]


@dataclass
class Served:
    """An endpoint: where it is, and every body that reached it, with the key that came with it."""

    address: str
    bodies: list[str] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)


@contextlib.contextmanager
def listening(handler: Callable[..., http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve on a free port of this machine; yield the address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class Quiet(http.server.BaseHTTPRequestHandler):
    """Answers with JSON, and logs nothing."""

    protocol_version = "HTTP/1.1"

    def send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def chatting(say: Say = lambda _messages, _seed: IDEA) -> Iterator[Served]:
    """Serve chat completions that say what a function of the messages and the seed returns."""
    served = Served("")

    class Chat(Quiet):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            served.bodies.append(text)
            served.keys.append(self.headers.get("Authorization"))
            asked = json.loads(text)
            message = {"role": "assistant", "content": say(asked["messages"], asked.get("seed", 0))}
            reply = {
                "id": "x",
                "object": "chat.completion",
                "created": 1,
                "model": asked["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
            }
            self.send(200, json.dumps(reply).encode())

        def do_GET(self) -> None:
            self.send(200, b'{"data": []}')

    with listening(Chat) as address:
        served.address = f"{address}/v1"
        yield served


@contextlib.contextmanager
def answering(answer: Callable[[str], bytes], status: int = 200) -> Iterator[str]:
    """Serve what a function of the nonce returns, whatever is asked; yield the address."""

    class Answer(Quiet):
        def do_GET(self) -> None:
            self.send(status, answer(parse_qs(urlsplit(self.path).query)["nonce"][0]))

    with listening(Answer) as address:
        yield f"{address}/v1"
