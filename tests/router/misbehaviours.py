"""Model servers that misbehave, each in its own way, over real HTTP on this machine."""

from __future__ import annotations

import gzip
import json
import socket
import socketserver
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import repeat
from typing import Any, TypeAlias

__all__ = ["GOOD", "KEY", "PLAYS", "TRACE", "WELL", "Play", "served"]

Play: TypeAlias = Callable[[int], Iterable[bytes | float]]
"""By the number of a call, from 1: the bytes of its answer, and the seconds between them."""

GOOD = '{"text": "drift", "direction": 1, "weight": 0.5}'
OTHER = '{"text": "reversal", "direction": -1, "weight": 0.5}'
WRONG = '{"text": "drift", "direction": "up", "weight": 0.5}'
USAGE = {"prompt_tokens": 40, "completion_tokens": 17, "total_tokens": 57}
KEY = "zq-7h3-key-0f-m1"
TRACE = "Traceback (most recent call last)"
NEVER = 3600.0


def http(body: bytes, status: int = 200, *headers: str) -> bytes:
    """Return an answer as it goes over the wire."""
    told = "".join(f"{header}\r\n" for header in headers)
    if not any(header.startswith("Content-Length") for header in headers):
        told += f"Content-Length: {len(body)}\r\n"
    return f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nConnection: close\r\n{told}\r\n".encode() + body


def chat(content: Any = GOOD, /, finish: str = "stop", usage: Any = USAGE, **message: Any) -> dict[str, Any]:
    """Return a chat completion."""
    said = {"role": "assistant", "content": content, **message}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny",
        "choices": [{"index": 0, "message": said, "finish_reason": finish}],
        "usage": usage,
    }


def says(body: Any) -> Play:
    """Return what answers every call with a body: JSON, or bytes as they are."""
    return lambda _: [http(body if isinstance(body, bytes) else json.dumps(body).encode())]


def refuses(status: int, *headers: str, body: Any = None) -> Play:
    """Return what answers every call with an error."""
    told = {"error": {"message": f"said {status}", "code": status}} if body is None else body
    return lambda _: [http(json.dumps(told).encode(), status, *headers)]


def text(content: Any, **more: Any) -> Play:
    """Return what says a text."""
    return says(chat(content, **more))


def counts(usage: Any) -> Play:
    """Return what answers well and says this of its tokens; a text is JSON as it stands."""
    if isinstance(usage, str):
        return says(json.dumps(chat(usage="HERE")).replace('"HERE"', usage).encode())
    return says(chat(usage=usage))


def tokens(prompt: Any, completion: Any = 17, **more: Any) -> Play:
    """Return what answers well and counts so many tokens."""
    return counts({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": 57, **more})


def called(arguments: Any) -> dict[str, Any]:
    """Return a call of a tool."""
    return {"id": "c", "type": "function", "function": {"name": "Idea", "arguments": arguments}}


def in_chunks(pieces: Iterable[bytes | float]) -> Iterator[bytes | float]:
    """Yield an answer in chunks that never ends."""
    yield b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    for piece in pieces:
        yield piece if isinstance(piece, float) else b"%x\r\n%s\r\n" % (len(piece), piece)


def drips() -> Iterator[bytes | float]:
    """Yield a byte now and then, for ever."""
    while True:
        yield from (b" ", 0.05)


WELL = says(chat())
PLAYS: dict[str, Play] = {
    # the connection
    "closes at once": lambda _: [],
    "half a reply": lambda _: [http(json.dumps(chat()).encode(), 200, "Content-Length: 9999")],
    "never answers": lambda _: [NEVER],
    "answers slowly": lambda _: [0.15, http(json.dumps(chat()).encode())],
    "drips for ever": lambda _: in_chunks(drips()),
    "pours for ever": lambda _: in_chunks(repeat(b" " * (1 << 16))),
    "10 MB": says(json.dumps(chat()).encode() + b" " * 10_000_000),
    "10 MB of words": text("so " * 3_300_000 + GOOD),
    "broken gzip": lambda _: [http(gzip.compress(json.dumps(chat()).encode())[:40], 200, "Content-Encoding: gzip")],
    "gzip that it is not": lambda _: [http(json.dumps(chat()).encode(), 200, "Content-Encoding: gzip")],
    "gzip bomb": lambda _: [http(gzip.compress(b" " * 40_000_000, 9), 200, "Content-Encoding: gzip")],
    "redirect": refuses(307, "Location: http://127.0.0.1:9/v1/chat/completions"),
    # what it says by status
    **{str(status): refuses(status) for status in (400, 401, 403, 404, 408, 413, 422, 429, 500, 502, 503, 529)},
    "429 for 30 s": refuses(429, "Retry-After: 30"),
    "503 until a date": refuses(503, "Retry-After: Wed, 21 Oct 2099 07:28:00 GMT"),
    "500 with a trace and the key": refuses(500, body={"error": f'{TRACE}:\n  File "x.py"\nkey {KEY}'}),
    "500 in HTML": lambda _: [http(b"<html>oops</html>", 500)],
    # what is no chat completion
    "HTML": says(b"<html><body>Welcome</body></html>"),
    "empty body": says(b""),
    "null": says(b"null"),
    "a list": says(b"[]"),
    "an error with status 200": says({"error": {"message": f"{TRACE} {KEY}", "code": 500}}),
    "no choices": says(chat() | {"choices": []}),
    "choices missing": says({name: each for name, each in chat().items() if name != "choices"}),
    "choices null": says(chat() | {"choices": None}),
    "choices a text": says(chat() | {"choices": "none"}),
    "no message": says(chat() | {"choices": [{"index": 0, "finish_reason": "stop"}]}),
    "invalid UTF-8": says(json.dumps(chat()).encode().replace(b"drift", b"dr\xffft")),
    "BOM before the body": says(b"\xef\xbb\xbf" + json.dumps(chat()).encode()),
    "another model's name": says(chat() | {"model": "gpt-9-ultra"}),
    "strange finish": text(GOOD, finish="because"),
    # where the object stands
    "null content": text(None),
    "content in parts": text([{"type": "text", "text": GOOD[:20]}, {"type": "text", "text": GOOD[20:]}]),
    "content an object": text(json.loads(GOOD)),
    "content a number": text(7),
    "words around it": text(f"Sure {{here}} it is: {GOOD} I hope that {{it}} helps!"),
    "a fence among words": text(f"Here:\n```json\n{GOOD}\n```\nBye."),
    "thoughts before it": text(f"<think>maybe {OTHER} or {{x</think>{GOOD}"),
    "thoughts never opened": text(f"maybe {OTHER} or {{x</think>{GOOD}"),
    "BOM before it": text("\ufeff" + GOOD),
    "in tool_calls": text(None, finish="tool_calls", tool_calls=[called(GOOD)]),
    "in tool_calls, not as text": text(None, finish="tool_calls", tool_calls=[called(json.loads(GOOD))]),
    "in function_call": text(None, finish="function_call", function_call={"name": "Idea", "arguments": GOOD}),
    "in reasoning_content": text(None, reasoning_content=f"I think {GOOD}"),
    "the same twice": text(f"{GOOD}\n{GOOD}"),
    "two that differ": text(f"{GOOD}\n{OTHER}"),
    "cut off": text(GOOD[:-9], finish="length"),
    "never closed": text(f"[{GOOD}, {GOOD[:-9]}"),
    "wrong once": lambda number: text(WRONG if number == 1 else GOOD)(number),
    "wrong always": text(WRONG),
    "words only": text("I'm sorry, but I can't help with that."),
    "a refusal": text(None, refusal="I can't help with that."),
    "a content filter": text("", finish="content_filter"),
    "NaN": text(GOOD.replace("0.5", "NaN")),
    "a number too large": text(GOOD.replace("0.5", "1e999")),
    "a number of 9,999 digits": text(GOOD.replace("1", "9" * 9999)),
    "one key twice": text(GOOD.replace('"direction"', '"direction": -1, "direction"')),
    "half a surrogate": text(GOOD.replace("drift", "\\ud800")),
    "half a character": text(GOOD.replace("drift", "\ud800")),
    "a thousand objects": text("".join(f"{{{number}}}" for number in range(1001)) + GOOD),
    "nested too deep": text('{"a":' * 100_000),
    # what it says of its tokens
    "usage missing": says({name: each for name, each in chat().items() if name != "usage"}),
    "usage null": counts(None),
    "usage a word": tokens("many", "many"),
    "usage a text": says(chat(usage="many")),
    "usage a list": counts([1, 2]),
    "usage negative": tokens(-500_000),
    "usage NaN": counts('{"prompt_tokens": NaN, "completion_tokens": NaN, "total_tokens": NaN}'),
    "usage infinite": counts('{"prompt_tokens": 40, "completion_tokens": 1e999, "total_tokens": 57}'),
    "usage in floats": tokens(40.0, 17.0),
    "usage in halves": tokens(40.5, 17.5),
    "usage of 400 digits": counts('{"prompt_tokens": 1%s, "completion_tokens": 17}' % ("0" * 400)),
    "usage true": tokens(True, True),
    "usage fantastic": tokens(10**12, 10**12),
    "usage nothing": tokens(0, 0),
    "usage too small": tokens(40, 1),
    "usage in details a text": tokens(40, 17, prompt_tokens_details="many", completion_tokens_details=[3]),
    "cached": tokens(40, 17, prompt_tokens_details={"cached_tokens": 30}),
    "cached as Anthropic tells": tokens(40, 17, cache_read_input_tokens=30, cache_creation_input_tokens=0),
    "cached more than sent": tokens(40, 17, prompt_tokens_details={"cached_tokens": 4000}),
    "cached less than nothing": tokens(40, 17, prompt_tokens_details={"cached_tokens": -4000}),
}


class _Listener(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 64

    def handle_error(self, *_: object) -> None:
        """Say nothing of callers that left."""


@contextmanager
def served(play: Play | None, heard: Callable[[bytes], int]) -> Iterator[str]:
    """Answer calls as `play` says and other requests well; None: nobody listens.

    Yield the address; `heard` returns the number of a call.
    """
    if play is None:
        with closing(socket.create_server(("127.0.0.1", 0))) as taken:
            port = taken.getsockname()[1]
        yield f"http://127.0.0.1:{port}/v1"
        return
    ended, playing = threading.Event(), play

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            line = self.rfile.readline()
            length = 0
            while header := self.rfile.readline().strip():
                name, _, value = header.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            body = self.rfile.read(length)
            for each in playing(heard(body)) if line.startswith(b"POST") else [http(b"{}")]:
                if isinstance(each, bytes):
                    self.wfile.write(each)
                elif ended.wait(each):
                    return

    with _Listener(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            ended.set()
            server.shutdown()
            thread.join()
