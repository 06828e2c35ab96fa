"""The servers over HTTP: bearer tokens, limits, and a server of its own for every caller.

``/market/mcp``, ``/factors/mcp``, ``/evaluation/mcp``, ``/news/mcp``, and ``/all/mcp`` for all as one: streamable HTTP of both
protocol eras, without sessions, so that there is none to fix or to steal, and without streams of notices, which callers could
hold open without end. ``/health`` asks for no token and tells nothing but that it runs. What is refused before a tool is reached
is on record as a call of the tool "http".
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import anyio
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..ledger import AlphaloomError
from ..ledger.calls import Outcome, ToolCall
from .access import Caller, Verifier
from .access.caller import ALL_SCOPES
from .access.oauth import Protected
from .errors import TokenRefused
from .rooms import Rooms
from .served import Served
from .tools import ALL, SERVERS, build_server

__all__ = ["Limits", "Protected", "web"]

BODY_BYTES = 1 << 20
CALLERS = 256
"""Callers whose servers are kept ready; the one that was silent longest makes room."""
PATH = "/mcp"
METADATA = "/.well-known/oauth-protected-resource"


@dataclass(frozen=True)
class Limits:
    """How much one caller may ask.

    Attributes
    ----------
    calls_per_minute : int
        Requests of one caller; as many may come at once.
    body_bytes : int
        Of one request.
    hosts, origins : sequence of str
        What the headers Host and Origin may say; a port ``:*`` stands for any.
    """

    calls_per_minute: int = 600
    body_bytes: int = BODY_BYTES
    hosts: Sequence[str] = ("127.0.0.1:*", "localhost:*", "[::1]:*")
    origins: Sequence[str] = ("http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*")

    @classmethod
    def reached_as(cls, names: Sequence[str], calls_per_minute: int) -> Limits:
        """Return the limits of servers that are reached under further names, behind a proxy that speaks TLS."""
        here = cls()
        hosts = [spelled for name in names for spelled in (name, f"{name}:*")]
        origins = [f"https://{name}" for name in names]
        return cls(calls_per_minute, hosts=(*here.hosts, *hosts), origins=(*here.origins, *origins))


@dataclass
class Bucket:
    """Requests that a caller may still make, filled again as time goes by."""

    left: float
    at: float

    def take(self, per_minute: int, now: float) -> float:
        """Take one request; return the seconds until there is one where there is none, else 0."""
        self.left = min(per_minute, self.left + (now - self.at) * per_minute / 60.0)
        self.at = now
        if self.left < 1.0:
            return (1.0 - self.left) * 60.0 / per_minute
        self.left -= 1.0
        return 0.0


@dataclass(eq=False)
class Told:
    """What a request was answered with, to see whether it was refused before a tool, a resource or a prompt was reached."""

    send: Send
    status: int = 200
    body: bytes = b""

    async def __call__(self, message: Message) -> None:
        """Hand the answer on; of a refusal the words are kept."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif self.status >= 400:
            self.body += message.get("body", b"")
        await self.send(message)

    @property
    def refused(self) -> bool:
        """Tell whether it was refused, and not by a server of ours, which writes its refusals down itself."""
        if self.status < 400:
            return False
        try:
            data = (json.loads(self.body).get("error") or {}).get("data")
        except (ValueError, AttributeError):
            return True
        return not (isinstance(data, dict) and "code" in data)


@dataclass(eq=False)
class Web:
    """Lets callers in and hands each to its own servers.

    Attributes
    ----------
    rooms : Rooms
        Opens a caller's evaluator.
    verifier : Verifier
        Says who shows a token.
    record : callable
        Writes calls down.
    limits : Limits
        Of every caller.
    seconds : callable
        A clock that only ever rises.
    """

    rooms: Rooms
    verifier: Verifier
    limits: Limits
    protected: Protected | None = None
    seconds: Callable[[], float] = time.monotonic
    _buckets: dict[str, Bucket] = field(default_factory=dict, init=False)
    _ready: OrderedDict[tuple[Caller, str], Attached] = field(default_factory=OrderedDict, init=False)
    _turn: anyio.Lock = field(default_factory=anyio.Lock, init=False)
    _tasks: TaskGroup | None = field(default=None, init=False)

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        """Keep callers' servers while the application runs."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            yield
            tasks.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of a server."""
        began, server = self.seconds(), str(scope["path"]).strip("/").partition("/")[0]
        if server not in {*SERVERS, ALL} or scope["path"] != f"/{server}{PATH}":
            await self._written("anonymous", server, "unknown_server", began)
            await self._refused(
                send, 404, "unknown_server", f"Servers are {', '.join([*sorted(SERVERS), ALL])}, each at /NAME/mcp."
            )
            return
        try:
            caller = await self._caller(scope)
        except TokenRefused as refused:
            await self._written("anonymous", server, refused.code, began)
            hint = "Send a token of `alphaloom token create` as Authorization: Bearer TOKEN."
            await self._refused(send, 401, refused.code, str(refused), hint, [(b"www-authenticate", self._challenge())])
            return
        bucket = self._buckets.setdefault(caller.id, Bucket(float(self.limits.calls_per_minute), began))
        if (wait := bucket.take(self.limits.calls_per_minute, began)) > 0:
            await self._written(caller.id, server, "too_many", began)
            after = str(max(int(wait + 0.999), 1)).encode()
            said = f"More than {self.limits.calls_per_minute} calls a minute."
            await self._refused(send, 429, "too_many", said, "Wait as Retry-After says.", [(b"retry-after", after)])
            return
        if (
            scope["method"] != "POST"
        ):  # a stream of notices would be held open for nothing; a session there is none to end
            await self._written(caller.id, server, "method", began)
            said = "Requests are sent by POST; there are no notices to wait for and no session to end."
            await self._refused(send, 405, "method", said, headers=[(b"allow", b"POST")])
            return
        try:
            attached = await self._attached(caller, server)
        except AlphaloomError as error:
            await self._written(caller.id, server, error.code, began)
            await self._refused(send, 409, error.code, error.message, error.hint)
            return
        told = Told(send)
        await attached.app({**scope, "path": PATH, "raw_path": PATH.encode(), "root_path": ""}, receive, told)
        if told.refused:
            await self._written(caller.id, server, f"http_{told.status}", began)

    def _challenge(self) -> bytes:
        """Return what a client is told that was not let in: where tokens come from, where an OAuth server gives them."""
        if self.protected is None:
            return b"Bearer"
        base = urlsplit(self.protected.resource)
        return f'Bearer resource_metadata="{base.scheme}://{base.netloc}{METADATA}"'.encode()

    async def _caller(self, scope: Scope) -> Caller:
        header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        kind, _, bearer = header.decode("latin-1").partition(" ")
        token = bearer.strip() if kind.lower() == "bearer" else ""
        if self.verifier.waits:
            return await anyio.to_thread.run_sync(self.verifier.verify, token)
        return self.verifier.verify(token)

    async def _attached(self, caller: Caller, server: str) -> Attached:
        """Return a caller's own server, begun when it is first asked for; who has one waits for nobody's beginning."""
        key = (caller, server)
        if key in self._ready:
            self._ready.move_to_end(key)
            return self._ready[key]
        async with self._turn:
            if key not in self._ready:
                served = await anyio.to_thread.run_sync(self.rooms.served, caller)
                assert self._tasks is not None, "the application is running"
                self._ready[key] = await self._tasks.start(self._kept, served, server)
                while len(self._ready) > CALLERS * (len(SERVERS) + 1):
                    self._ready.popitem(last=False)[1].end.set()
            self._ready.move_to_end(key)
            return self._ready[key]

    async def _kept(self, served: Served, server: str, *, task_status: TaskStatus[Attached]) -> None:
        """Run a caller's server until it must make room."""
        security = TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=list(self.limits.hosts),
            allowed_origins=list(self.limits.origins),
        )
        app = build_server(server, served).streamable_http_app(
            streamable_http_path=PATH, json_response=True, stateless_http=True,
            max_request_body_size=self.limits.body_bytes, transport_security=security,
        )  # fmt: skip
        attached = Attached(app)
        async with app.router.lifespan_context(app):
            task_status.started(attached)
            await attached.end.wait()

    async def _written(self, who: str, server: str, code: str, began: float) -> None:
        """Write down what was refused before a tool was reached."""
        took = 1e3 * (self.seconds() - began)
        self.rooms.ground.record(ToolCall(who, server, "http", Outcome.REFUSED, code, duration_ms=took))

    async def _refused(
        self, send: Send, status: int, code: str, message: str, hint: str = "",
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:  # fmt: skip
        body = json.dumps({"code": code, "message": message, "hint": hint}).encode()
        said = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]
        await send({"type": "http.response.start", "status": status, "headers": said})
        await send({"type": "http.response.body", "body": body})


@dataclass(frozen=True, eq=False)
class Attached:
    """One caller's server as an application, and what ends it."""

    app: ASGIApp
    end: anyio.Event = field(default_factory=anyio.Event)


def web(
    rooms: Rooms, verifier: Verifier, limits: Limits | None = None, protected: Protected | None = None
) -> Starlette:
    """Return the application that serves all servers."""
    from starlette.responses import JSONResponse
    from starlette.routing import BaseRoute, Mount, Route

    gate = Web(rooms, verifier, limits or Limits(), protected)

    async def health(_request: object) -> JSONResponse:
        """Say that it runs."""
        return JSONResponse({"status": "ok", "servers": [*sorted(SERVERS), ALL]})

    async def metadata(_request: object) -> JSONResponse:
        """Say whose tokens are taken (RFC 9728)."""
        assert protected is not None, "there is no such route without it"
        told = {"resource": protected.resource, "authorization_servers": [protected.issuer]}
        return JSONResponse({**told, "scopes_supported": list(ALL_SCOPES[:-1]), "bearer_methods_supported": ["header"]})

    routes: list[BaseRoute] = [Route("/health", health), *([Route(METADATA, metadata)] if protected else [])]
    return Starlette(routes=[*routes, Mount("/", app=gate)], lifespan=gate.lifespan)
