"""Servers for foreign clients: the real ones, started by the command line, and a proxy that adds a token."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from alphaloom.mcp_servers.tools.servers import ALL_SERVERS, SERVERS

CAMPAIGN = """
name: foreign
seed: 7
market:
  synthetic: {days: 700, names: 40}
evidence:
  windows: {min_selection_days: 60, min_sealed_days: 60}
budget: {evaluations: 8, trials: 4}
"""
SCOPES = "data:read,news:read,factor:read,factor:write,eval:run,gate:submit"
STARTS_WITHIN_S = 120
OWN = {b"connection", b"content-length", b"date", b"keep-alive", b"server", b"transfer-encoding"}
"""Headers of one connection, which the next has of its own."""


@dataclass(frozen=True)
class Place:
    """A folder with a campaign file, tokens and a workspace."""

    folder: Path

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "alphaloom", *words]

    @property
    def data(self) -> list[str]:
        """What `serve mcp` is told of the data."""
        return ["--campaign", str(self.folder / "campaign.yaml"), "--workspace", str(self.folder / "w")]

    def token(self, note: str) -> str:
        """Make a token as a person does: its bearer is a caller of its own."""
        asked = [
            "--scopes",
            SCOPES,
            "--expires",
            "2099-12-31",
            "--note",
            note,
            "--file",
            str(self.folder / "tokens.yaml"),
        ]
        made = subprocess.run(
            self.command("token", "create", *asked, "--json"), capture_output=True, text=True, check=True
        )
        token: str = json.loads(made.stdout)["token"]
        return token

    def over_stdio(self) -> dict[str, Any]:
        """Return how a client starts each server."""
        command, *words = self.command("serve", "mcp")
        named = {name: name for name in SERVERS} | {ALL_SERVERS: "--all"}
        return {
            name: {"command": command, "args": [*words, word, *self.data], "env": {**os.environ}}
            for name, word in named.items()
        }


def place_in(folder: Path) -> Place:
    (folder / "campaign.yaml").write_text(CAMPAIGN)
    return Place(folder)


@contextmanager
def started(place: Place) -> Iterator[str]:
    """Start all servers over HTTP, yield their address, and end them as a person does."""
    words = ["serve", "mcp", "--all", "--http", "127.0.0.1:0", "--auth", str(place.folder / "tokens.yaml")]
    log = place.folder / "server.txt"
    with log.open("w") as errors:
        process = subprocess.Popen(place.command(*words, "--per-minute", "100000", *place.data), stderr=errors)
    try:
        yield _address(process, log)
    finally:
        process.terminate()
        assert process.wait(60) == 0, log.read_text()[-2000:]


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Return where the servers listen, once they answer."""
    until = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < until and process.poll() is None:
        if found := re.search(r"http://127\.0\.0\.1:\d+", log.read_text()):
            try:
                httpx2.get(f"{found[0]}/health").raise_for_status()
            except httpx2.TransportError:
                pass
            else:
                return found[0]
        time.sleep(0.1)
    raise RuntimeError(f"the servers did not start: {log.read_text()[-2000:]}")


def over_http(base: str, token: str) -> dict[str, Mapping[str, str]]:
    """Return how a client reaches each server."""
    return {name: {"url": f"{base}/{name}/mcp", "token": token} for name in SERVERS}


@contextmanager
def bearing(base: str, token: str) -> Iterator[str]:
    """Pass everything on to `base` with a token added, which the conformance suite cannot send.

    Host and Origin stay as they came.
    """

    @asynccontextmanager
    async def open_client(app: Starlette) -> AsyncIterator[None]:
        async with httpx2.AsyncClient(timeout=60.0) as client:
            app.state.client = client
            yield

    async def passed(request: Request) -> StreamingResponse:
        client: httpx2.AsyncClient = request.app.state.client
        headers = [(name, value) for name, value in request.headers.raw if name not in OWN]
        sent = client.build_request(
            request.method,
            f"{base}{request.url.path}",
            content=await request.body(),
            headers=[*headers, (b"authorization", f"Bearer {token}".encode())],
        )
        answer = await client.send(sent, stream=True)

        async def body() -> AsyncIterator[bytes]:
            try:
                async for chunk in answer.aiter_raw():
                    yield chunk
            finally:
                await answer.aclose()

        back = StreamingResponse(body(), answer.status_code)
        told = [(name.lower(), value) for name, value in answer.headers.raw]
        back.raw_headers = [(name, value) for name, value in told if name not in OWN]
        return back

    methods = ["GET", "POST", "DELETE", "PUT", "OPTIONS"]
    app = Starlette(routes=[Route("/{path:path}", passed, methods=methods)], lifespan=open_client)
    with listening(app) as address:
        yield address


@contextmanager
def listening(app: Starlette) -> Iterator[str]:
    """Serve an application on loopback from a thread of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        free.listen()
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [free]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield f"http://127.0.0.1:{free.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
