"""For minutes, whatever is sent to running servers over HTTP: they refuse it plainly, go on, and end when asked to.

`make mcp-endurance` runs it; see `test_long_fuzz` for how long.
"""

from __future__ import annotations

import json
import socket
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from hypothesis import strategies as st

from alphaloom.mcp_servers.tools.servers import ALL_SERVERS, SERVERS

from .asking import repeat
from .started import ROOT, Served, Start, memory, over_http
from .test_fuzz import NESTED
from .test_long_fuzz import PARTS, SECONDS

RULES: dict[str, Any] = {
    "market": {"synthetic": {"days": 420, "names": 60, "late_listings": 0.0}},
    "evidence": {"windows": {"min_sealed_days": 40}},
    "budget": {"evaluations": 1_000, "trials": 20},
}
TOO_LARGE = (1 << 20) + 1
VERSION = "2026-07-28"
CLIENT = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "fuzz", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
METHODS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "initialize",
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"}},
    ),
    ("server/discover", {}),
    ("ping", {}),
    ("tools/list", {}),
    ("tools/list", {"cursor": "x"}),
    ("tools/call", {"name": "describe_universe", "arguments": {}}),
    ("tools/call", {"name": "get_history", "arguments": {"field": "close"}}),
    ("tools/call", {"name": "get_budget", "arguments": {}}),
    ("resources/list", {}),
    ("resources/read", {"uri": "alphaloom://fields"}),
    ("resources/read", {"uri": "file:///etc/passwd"}),
    ("prompts/get", {"name": "propose_factor", "arguments": {"goal": "value"}}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "id", "value": ""}}),
    ("subscriptions/listen", {}),
    ("notifications/initialized", {}),
    ("notifications/cancelled", {"requestId": 1}),
    ("logging/setLevel", {"level": "debug"}),
    ("sampling/createMessage", {}),
)
ODD_HEADERS = {
    "accept": ["application/json", "*/*", "", "text/html", "text/event-stream"],
    "content-type": ["text/plain", "", "application/json; charset=utf-16", "application/x-www-form-urlencoded"],
    "mcp-protocol-version": [VERSION, "2025-11-25", "1999-01-01", "x" * 300],
    "mcp-method": ["tools/call", "x"],
    "mcp-name": ["get_budget", "=?base64?eA==?="],
    "mcp-session-id": ["0" * 32, "x"],
    "last-event-id": ["1"],
    "content-encoding": ["gzip", "br"],
    "x-forwarded-for": ["8.8.8.8"],
    "expect": ["100-continue"],
}
WRONG: dict[str, tuple[dict[str, str], int]] = {
    "no token": ({"authorization": ""}, 401),
    "a bad token": ({"authorization": "Bearer alt_00000000_" + "x" * 43}, 401),
    "another scheme": ({"authorization": "Basic eDp5"}, 401),
    "a wrong host": ({"host": "evil.example"}, 421),
    "a wrong origin": ({"origin": "https://evil.example"}, 403),
}
TRACES = ("Traceback", "site-packages", str(ROOT), "sqlite3", '.py"')
"""What no answer holds. What is no JSON-RPC message the SDK refuses itself, in pydantic's words."""
TOLD_TWICE = "h11._util.LocalProtocolError: can't handle event type Response when role=SERVER and state=MUST_CLOSE"
"""uvicorn's own: it refuses a body that is cut wrongly and then does not take the answer to what came before it."""
RAW = (
    b"",
    b"\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"POST /market/mcp HTTP/1.1\r\nContent-Length: 99999\r\n\r\n{",
    b"\x16\x03\x01\x02\x00",
    b"POST /market/mcp HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET " + b"/" * 70_000 + b" HTTP/1.1\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: x\r\nx: " + b"y" * 70_000,
    b"\xff" * 500,
    b"POST /market/mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
)


class Body(bytes):
    """Bytes that are told short where a test fails."""

    def __repr__(self) -> str:
        """Return the beginning."""
        return f"Body({bytes(self[:500])!r}, {len(self)} bytes)"


def sound(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": CLIENT}}


DESCRIBED: dict[str, Any] = {
    "method": "POST",
    "path": "/market/mcp",
    "headers": {"mcp-protocol-version": VERSION, "mcp-method": "tools/call", "mcp-name": "describe_universe"},
    "content": json.dumps(sound("tools/call", {"name": "describe_universe", "arguments": {}})).encode(),
}
"""A sound call, which must get the same answer whatever came between."""


@st.composite
def bodies(draw: st.DrawFn) -> Body:
    """Draw what is posted: a sound message, one that was spoilt, or no message at all."""
    message = sound(*draw(st.sampled_from(METHODS)))
    kind = draw(st.sampled_from(["sound", "sound", "spoilt", "spoilt", "cut", "batch", "deep", "bytes", "other"]))
    if kind == "spoilt":
        place = draw(st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]))
        message[place] = draw(NESTED)
        if draw(st.booleans()) and isinstance(message["params"], dict):
            message["params"][draw(st.sampled_from(["name", "arguments", "uri", "_meta", "cursor"]))] = draw(NESTED)
    whole = json.dumps(message, default=str).encode("utf-8", "surrogatepass")
    if kind == "cut":
        return Body(whole[: draw(st.integers(0, len(whole)))])
    if kind == "batch":
        return Body(b"[" + b",".join([whole] * draw(st.integers(0, 3))) + b"]")
    if kind == "deep":
        return Body(b'{"a":' * draw(st.sampled_from([10, 1_000, 100_000])) + b"1")
    if kind == "bytes":
        return Body(draw(st.binary(max_size=200)))
    return Body(json.dumps(draw(NESTED), default=str).encode("utf-8", "surrogatepass") if kind == "other" else whole)


@st.composite
def posts(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a request and, where one thing alone is wrong with it, the status that it must get."""
    server = draw(st.sampled_from([*sorted(SERVERS), ALL_SERVERS]))
    asked: dict[str, Any] = {"method": "POST", "path": f"/{server}/mcp", "headers": {}, "wanted": None}
    kind = draw(st.sampled_from(["body", "body", "body", "headers", "wrong", "path", "method", "large", "raw"]))
    asked["content"] = (
        draw(bodies()) if kind in {"body", "headers"} else Body(json.dumps(sound("tools/list", {})).encode())
    )
    if kind == "headers":
        names = draw(st.lists(st.sampled_from(sorted(ODD_HEADERS)), min_size=1, max_size=3))
        asked["headers"] = {name: draw(st.sampled_from(ODD_HEADERS[name])) for name in names}
    elif kind == "wrong":
        asked["headers"], asked["wanted"] = WRONG[draw(st.sampled_from(sorted(WRONG)))]
    elif kind == "path":
        asked["path"] = draw(
            st.sampled_from([f"/{server}/mcp/", f"/{server}//mcp", "/trading/mcp", f"/{server}", "/%2e%2e/x"])
        )
        asked["wanted"] = 404
    elif kind == "method":
        asked["method"] = draw(st.sampled_from(["GET", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH", "BREW"]))
    elif kind == "large":
        asked["content"], asked["wanted"] = Body(b" " * draw(st.sampled_from([TOO_LARGE, 5 << 20]))), 413
    elif kind == "raw":
        asked["raw"] = Body(draw(st.sampled_from(RAW) | st.binary(max_size=300)))
    return asked


def sent(http: httpx2.Client, asked: dict[str, Any], token: str) -> httpx2.Response:
    """Return the answer, whole, or the beginning of one that does not end."""
    usual = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
    usual |= {"content-type": "application/json", "mcp-protocol-version": "2025-11-25"}
    told = {"content": asked["content"], "headers": usual | asked["headers"]}
    with http.stream(asked["method"], asked["path"], **told) as answer:
        if not answer.headers.get("content-type", "").startswith("text/event-stream"):
            answer.read()
        return answer  # a stream goes on until one of us hangs up, and that is we


def thrown(url: str, raw: bytes) -> None:
    """Send bytes and hang up."""
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=5) as wire:
        wire.settimeout(0.05)
        try:
            wire.sendall(raw)
            wire.recv(4_096)
        except OSError:
            pass


def check_answer(answer: httpx2.Response, asked: dict[str, Any], served: Served) -> None:
    text = answer.text if answer.is_stream_consumed else ""
    for trace in (*TRACES, str(served.workspace)):
        assert trace not in text, (asked, text)
    assert answer.status_code < 500, (asked, answer.status_code, text[:500])
    if asked["wanted"]:
        assert answer.status_code == asked["wanted"], (asked["path"], asked["headers"], text[:500])


@pytest.mark.slow
def test_whatever_is_sent_to_running_servers(tmp_path: Path) -> None:
    tally: Counter[int | str] = Counter()
    start = Start(RULES, options=("--per-minute", "1000000"))
    with (
        over_http(tmp_path, start) as served,
        httpx2.Client(base_url=served.url, timeout=60, trust_env=False) as http,
    ):
        before = sent(http, DESCRIBED, served.tokens[0])
        assert before.status_code == 200, before.text

        def ask(batch: list[dict[str, Any]]) -> None:
            for asked in batch:
                if "raw" in asked:
                    thrown(served.url, asked["raw"])
                    tally["raw"] += 1
                    continue
                answer = sent(http, asked, served.tokens[0])
                tally[answer.status_code] += 1
                check_answer(answer, asked, served)
            assert http.get("/health").status_code == 200
            assert body_of(sent(http, DESCRIBED, served.tokens[0])) == body_of(before)

        first = memory(served.process.pid)
        part = 1 - sum(PARTS.values())
        seeds = repeat(time.monotonic() + part * SECONDS, st.lists(posts(), min_size=5, max_size=15), ask)
        last = memory(served.process.pid)
        assert served.end() == 0
        assert served.verify()["exit"] == 0
        log = served.log.read_text()
    print(f"\n{tally.total():,} requests of {seeds} seeds over HTTP: {dict(sorted(tally.items(), key=str))}")
    print(f"memory of the servers: {first:.0f} MB before, {last:.0f} MB after")
    assert log.count("Traceback") == log.count(TOLD_TWICE), log[-5_000:]
    assert {200, 401, 403, 404, 413, 421} <= set(tally)


def body_of(answer: httpx2.Response) -> Any:
    return answer.json()["result"]["structuredContent"]
