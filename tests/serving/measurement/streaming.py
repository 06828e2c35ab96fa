"""A server on this machine that streams as vLLM does, or misbehaves in a way that its test names."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ...router.served import Quiet, listening

METRICS = (
    "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig\n"
    'vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0",num_gpu_blocks="27000"} 1.0\n'
)
FIRST_S, EACH_S = 0.05, 0.01
Play = Callable[["Handler", dict[str, Any]], None]


@dataclass
class Seen:
    """Where the server is, the calls that reached it, and how many it answered at once."""

    address: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    now: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, by: int) -> None:
        with self.lock:
            self.now += by
            self.most = max(self.most, self.now)


class Handler(Quiet):
    seen: Seen
    play: Play
    pages: dict[str, bytes]

    def do_GET(self) -> None:
        page = self.pages.get(self.path)
        self.send(404 if page is None else 200, page or b'{"detail": "Not Found"}')

    def do_POST(self) -> None:
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.calls.append(call)
        self.seen.keys.append(self.headers.get("Authorization"))
        self.seen.count(1)
        try:
            with contextlib.suppress(OSError):  # the caller hung up
                type(self).play(self, call)
        finally:
            self.seen.count(-1)

    def begin(self) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()

    def event(self, value: object) -> None:
        self.wfile.write(b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n")
        self.wfile.flush()


def delta(text: str) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": text}}]}


def well(handler: Handler, call: dict[str, Any]) -> None:
    """Stream as many tokens as asked, then usage and the end."""
    handler.begin()
    handler.event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
    time.sleep(FIRST_S)
    for _ in range(call["max_tokens"]):
        handler.event(delta("wörd "))
        time.sleep(EACH_S)
    usage = {"prompt_tokens": 77, "completion_tokens": call["max_tokens"]}
    handler.event({"choices": [], "usage": usage})
    handler.event(b"[DONE]")


def syllables(handler: Handler, call: dict[str, Any]) -> None:
    """Count two tokens for each word of the prompt."""
    words = len(call["messages"][0]["content"].split())
    handler.begin()
    handler.event(delta("wörd "))
    handler.event({"choices": [], "usage": {"prompt_tokens": 2 * words, "completion_tokens": 1}})
    handler.event(b"[DONE]")


def bunched(handler: Handler, call: dict[str, Any]) -> None:
    """Make all tokens before the first is sent."""
    handler.begin()
    time.sleep(0.2)
    for _ in range(call["max_tokens"]):
        handler.event(delta("wörd "))
    handler.event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": call["max_tokens"]}})
    handler.event(b"[DONE]")


def refuses(handler: Handler, call: dict[str, Any]) -> None:
    handler.send(400, b'{"error": {"message": "maximum context length is 2048 tokens"}}')


def silent(handler: Handler, call: dict[str, Any]) -> None:
    time.sleep(2.0)


def half(handler: Handler, call: dict[str, Any]) -> None:
    handler.begin()
    handler.event(delta("one "))


def hangs(handler: Handler, call: dict[str, Any]) -> None:
    handler.begin()
    handler.event(delta("one "))
    time.sleep(2.0)


def fails(handler: Handler, call: dict[str, Any]) -> None:
    handler.send(500, b'{"error": {"message": "CUDA out of memory \x1b[31m secret-key"}}')


def errs_midway(handler: Handler, call: dict[str, Any]) -> None:
    handler.begin()
    handler.event(delta("one "))
    handler.event({"error": {"message": "engine died", "code": 500}})


def babbles(handler: Handler, call: dict[str, Any]) -> None:
    handler.begin()
    handler.event(b"{not json")


def empty(handler: Handler, call: dict[str, Any]) -> None:
    handler.begin()
    handler.event(b"[DONE]")


def pours(handler: Handler, call: dict[str, Any]) -> None:
    handler.begin()
    for _ in range(40):
        handler.wfile.write(b"x" * (1 << 20))


def redirects(handler: Handler, call: dict[str, Any]) -> None:
    handler.close_connection = True
    handler.send_response(307)
    handler.send_header("Location", "http://127.0.0.1:9/v1/chat/completions")
    handler.end_headers()


def strict(handler: Handler, call: dict[str, Any]) -> None:
    """Refuse vLLM's own fields, and count no tokens."""
    if "ignore_eos" in call:
        handler.send(400, b'{"error": "unknown field ignore_eos"}')
        return
    handler.begin()
    for _ in range(3):
        handler.event(delta("wörd "))
    handler.event(b"[DONE]")


def every_other(handler: Handler, call: dict[str, Any]) -> None:
    (well if len(handler.seen.calls) % 2 else half)(handler, call)


@contextlib.contextmanager
def serving(play: Play, **pages: bytes | None) -> Iterator[Seen]:
    """Serve with one way to answer calls; `pages` replaces /models, /version and /metrics, None takes one away."""
    listed = json.dumps({"data": [{"id": "tiny", "max_model_len": 4096}]}).encode()
    texts = {"models": listed, "version": b'{"version": "0.32.0"}', "metrics": METRICS.encode()} | pages
    paths = {"models": "/v1/models", "version": "/version", "metrics": "/metrics"}
    seen = Seen()
    kept = {paths[name]: text for name, text in texts.items() if text is not None}
    body = {"seen": seen, "play": play, "pages": kept}
    with listening(type("Bound", (Handler,), body)) as seen.address:
        yield seen
