"""The servers over HTTP: bearer tokens, limits, and a server of its own for every caller.

``/market/mcp``, ``/factors/mcp``, ``/evaluation/mcp``, ``/news/mcp``, and ``/all/mcp`` for all as one: streamable HTTP
of both protocol eras. There are no sessions, so that none can be fixed or stolen, and no notification streams, which
callers could hold open without end. ``/health`` needs no token and returns only that the servers run. The headers Host
and Origin are checked before anything else.

Requests rejected before dispatch are recorded as calls of the tool "http" before the response is sent; if the record
cannot be written, the response is only that, with the status 503. Requests without a valid token do not fill the
record: beyond 120 lines a minute in all, they are refused as before, and at most one line a second,
"unauthorized_flood", records that there were more.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import anyio
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..ledger import AlphaloomError, LedgerError
from ..ledger.calls import CallOutcome, ToolCall
from .access import Caller, TokenVerifier
from .access.arrivals import LOCAL_HOSTS, LOCAL_ORIGINS, Bucket, find_misdirection
from .access.oauth import Protected
from .access.scopes import ALL_SCOPES
from .answers import describe_refusal
from .callers import CallerContexts
from .errors import CallersBusy, McpServerError, TokenRefused
from .served_caller import ServedCaller
from .tools.servers import SERVER_NAMES, SUPERVISOR_SERVERS, build_server

MAX_BODY_BYTES = 1 << 20

MAX_CALLERS = 256
"""Callers whose servers are kept ready; the least recently active one is dropped."""

CALLS_AT_ONCE = 6
"""Concurrent requests of one caller, over all servers and all tokens of its name."""

MAX_THREADS = 32 * CALLS_AT_ONCE
"""Threads of tools, shared by all callers: 32 callers can be fully busy before another one waits."""

MCP_PATH = "/mcp"

SERVER_ERROR = -32_010
"""A code in JSON-RPC's range for servers that the SDKs do not use."""

METADATA = "/.well-known/oauth-protected-resource"

ANONYMOUS, UNKNOWN_SERVER = "anonymous", "unknown"

STRANGERS_PER_MINUTE = 120
"""Maximum lines a minute in the record for all requests without a valid token."""

TOKEN_CHECKS_AT_ONCE, MAX_STRANGERS_WAITING = 8, 32
"""Concurrent token checks over the network, and maximum strangers that wait for one.

The limit keeps threads free for other work. A token that was accepted before does not wait for strangers' tokens.
"""

MAX_REQUESTS_WAITING = 64
"""Maximum waiting requests of one caller; further ones are refused."""

LOG = logging.getLogger(__name__)

NO_MESSAGE = (
    "The body must be one JSON-RPC request or notification, an object with jsonrpc, id, method and params; "
    "batches are not taken."
)

MAX_BODY_PARTS = 10_000
"""Maximum commas and opening brackets of one request, outside of its strings.

A message is parsed and validated on the event loop, where a million of them take over a second; valid calls have a few
thousand.
"""


@dataclass(frozen=True)
class CallerLimits:
    """Limits on the requests of one caller.

    Attributes
    ----------
    calls_per_minute : int
        Requests of one caller a minute; as many may come in one burst.
    body_bytes : int
        Maximum size of a request's body.
    hosts, origins : sequence of str
        Allowed values of the headers Host and Origin; ``:*`` stands for any port.
    """

    calls_per_minute: int = 600
    body_bytes: int = MAX_BODY_BYTES
    hosts: Sequence[str] = LOCAL_HOSTS
    origins: Sequence[str] = LOCAL_ORIGINS

    @classmethod
    def reached_as(cls, names: Sequence[str], calls_per_minute: int) -> CallerLimits:
        """Return the limits of servers with additional host names, behind a TLS proxy."""
        here = cls()
        hosts = [spelled.lower() for name in names for spelled in (name, f"{name}:*")]
        origins = [f"https://{name}".lower() for name in names]
        return cls(calls_per_minute, hosts=(*here.hosts, *hosts), origins=(*here.origins, *origins))


@dataclass
class RefusableRequest:
    """One request with the facts for the record, if it is refused: the caller, the server and the time."""

    server: str
    began: float
    who: str = ANONYMOUS


def _build_refusal(
    status: int, code: str, message: str, hint: str = "", headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return a refusal as a JSON-RPC error without a request id, where clients look for the reason."""
    error = {"code": SERVER_ERROR, "message": f"{message} {hint}".strip()}
    data = {"code": code, "message": message, "hint": hint}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error | {"data": data}}, status, headers)


def _build_error_response(status: int, error: AlphaloomError) -> JSONResponse:
    """Return an error as the response to a caller."""
    record = describe_refusal(error)
    return _build_refusal(status, error.code, str(record["message"]), str(record["hint"]))


@dataclass(eq=False)
class CallerGate:
    """Admits callers and passes their requests to their own servers.

    Attributes
    ----------
    callers : CallerContexts
        Opens a caller's evaluator, and records calls.
    verifier : TokenVerifier
        Returns the caller of a token.
    limits : CallerLimits
        Limits of every caller.
    protected : Protected or None
        Metadata of the OAuth server whose tokens are accepted; None: there is none.
    seconds : callable
        A monotonic clock, seconds.
    """

    callers: CallerContexts
    verifier: TokenVerifier
    limits: CallerLimits
    protected: Protected | None = None
    seconds: Callable[[], float] = time.monotonic
    _buckets: dict[str, Bucket] = field(default_factory=dict, init=False)
    _strangers: Bucket = field(default_factory=lambda: Bucket(float(STRANGERS_PER_MINUTE), 0.0), init=False)
    _flooded: float = field(default=-1.0, init=False)
    _ready: OrderedDict[tuple[Caller, str], RunningServer] = field(default_factory=OrderedDict, init=False)
    _places: dict[str, anyio.Semaphore] = field(default_factory=dict, init=False)
    _turn: anyio.Lock = field(default_factory=anyio.Lock, init=False)
    _verify_limits: tuple[anyio.CapacityLimiter, anyio.CapacityLimiter] = field(
        default_factory=lambda: (
            anyio.CapacityLimiter(TOKEN_CHECKS_AT_ONCE),
            anyio.CapacityLimiter(TOKEN_CHECKS_AT_ONCE),
        ),
        init=False,
    )
    _strangers_asked: int = field(default=0, init=False)
    _accepted: OrderedDict[bytes, None] = field(default_factory=OrderedDict, init=False)
    _tasks: TaskGroup | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Build the pages that need no token."""
        self._security = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # checked here instead
        self._pages: dict[str, dict[str, Any]] = {"/health": {"status": "ok", "servers": [*SERVER_NAMES]}}
        if self.protected is not None:
            page = _build_metadata(self.protected)
            self._pages |= {METADATA: page, unquote(urlsplit(_build_metadata_url(self.protected)).path): page}

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        """Keep callers' servers while the application runs."""
        anyio.to_thread.current_default_thread_limiter().total_tokens = MAX_THREADS
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            yield
            tasks.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        server = str(scope["path"]).strip("/").partition("/")[0]
        visit = RefusableRequest(server if server in SERVER_NAMES else UNKNOWN_SERVER, self.seconds())
        if scope["type"] != "http":
            self._record_refusal(visit, "websocket")
            await send({"type": "websocket.close", "code": 1008, "reason": "Requests are sent by POST."})
            return
        server_or_refusal = await self._admit_request(visit, scope)
        if isinstance(server_or_refusal, Response):
            await server_or_refusal(scope, receive, send)
            return
        answer, body = HeldAnswer(scope, receive, send, lambda code: self._record_refusal(visit, code)), Body(receive)
        async with self._places[visit.who]:
            if await body.parts(self.limits.body_bytes) > MAX_BODY_PARTS:
                refusal = _build_refusal(
                    413, "too_many_parts", f"A message has at most {MAX_BODY_PARTS:,} parts.", "Send less at once."
                )
                await self._refuse(visit, "too_many_parts", refusal)(scope, receive, send)
                return
            await server_or_refusal.app(
                {**scope, "path": MCP_PATH, "raw_path": MCP_PATH.encode(), "root_path": ""}, body, answer
            )

    async def _admit_request(self, visit: RefusableRequest, scope: Scope) -> Response | RunningServer:
        """Return the requested server; a response instead for a page, or for a request that is refused."""
        path, method = scope["path"], scope["method"]
        if (status := find_misdirection(scope["headers"], self.limits.hosts, self.limits.origins)) is not None:
            response = _build_refusal(
                status, "misdirected", "Nothing is served under this name or to this origin.", "See --hosts."
            )
            return self._refuse(visit, f"http_{status}", response)
        if path in self._pages:
            asks = method in {"GET", "HEAD"}
            return (
                JSONResponse(self._pages[path])
                if asks
                else _build_refusal(405, "method", "GET it.", "", {"allow": "GET"})
            )
        if path != f"/{visit.server}{MCP_PATH}" or visit.server == UNKNOWN_SERVER:
            message = f"Servers are {', '.join(SERVER_NAMES)}, each at /NAME/mcp."
            return self._refuse(visit, "unknown_server", _build_refusal(404, "unknown_server", message))
        try:
            caller = await self._identify_caller(scope)
        except TokenRefused as error:
            hint = "Send a token of `alphaloom token create` as Authorization: Bearer TOKEN."
            response = _build_refusal(401, error.code, str(error), hint, {"www-authenticate": self._build_challenge()})
            return self._refuse(visit, error.code, response)
        except CallersBusy as busy:
            response = _build_refusal(503, busy.code, busy.message, busy.hint, {"retry-after": "1"})
            return self._refuse(visit, busy.code, response)
        visit.who, now = caller.id, self.seconds()
        scope.setdefault("state", {})["known"] = True  # its connection is not closed for room while it is answered
        bucket = self._buckets.setdefault(caller.id, Bucket(float(self.limits.calls_per_minute), now))
        if (wait := bucket.take(self.limits.calls_per_minute, now)) > 0:
            after = {"retry-after": str(max(int(wait + 0.999), 1))}
            message = f"More than {self.limits.calls_per_minute} calls a minute."
            return self._refuse(
                visit, "too_many", _build_refusal(429, "too_many", message, "Wait as Retry-After says.", after)
            )
        if method != "POST":  # clients of the handshake era send GET as they connect: not recorded
            message = "Requests are sent by POST; there are no notices to wait for and no session to end."
            return _build_refusal(405, "method", message, "", {"allow": "POST"})
        return await self._find_server(visit, caller)

    async def _find_server(self, visit: RefusableRequest, caller: Caller) -> Response | RunningServer:
        """Return a caller's server, or the refusal, with no more detail than its own servers would give."""
        try:
            server = await self._start_server(replace(caller, expires=None), visit.server)
            if (
                self._places.setdefault(caller.id, anyio.Semaphore(CALLS_AT_ONCE)).statistics().tasks_waiting
                < MAX_REQUESTS_WAITING
            ):
                return server
            message = f"{MAX_REQUESTS_WAITING} of your requests wait already."
            return self._refuse(
                visit, "too_many", _build_refusal(429, "too_many", message, "Ask fewer at once.", {"retry-after": "1"})
            )
        except AlphaloomError as error:
            return self._refuse(visit, error.code, _build_error_response(409, error))
        except Exception:
            LOG.exception("the servers of %s cannot be opened", caller.id)
            failed = McpServerError(
                "Your servers cannot be opened, by no fault of yours.",
                hint="Ask who runs them.",
                code="failed",
                exit_code=1,
            )
            return self._refuse(visit, failed.code, _build_error_response(500, failed))

    def _build_challenge(self) -> str:
        """Return the WWW-Authenticate header; with an OAuth server it has the address of the metadata."""
        return (
            "Bearer" if self.protected is None else f'Bearer resource_metadata="{_build_metadata_url(self.protected)}"'
        )

    async def _identify_caller(self, scope: Scope) -> Caller:
        header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        kind, _, bearer = header.decode("latin-1").partition(" ")
        token = bearer.strip() if kind.lower() == "bearer" else ""
        return await self._verify_over_network(token) if self.verifier.waits else self.verifier.verify(token)

    async def _verify_over_network(self, token: str) -> Caller:
        """Return the caller of a token that may need a network request; known tokens have a limiter of their own."""
        name = hashlib.sha256(token.encode("latin-1")).digest()
        stranger = name not in self._accepted
        # Counted here, because the limiter counts a call only some steps later, so that two at once could both pass.
        if stranger and self._strangers_asked >= TOKEN_CHECKS_AT_ONCE + MAX_STRANGERS_WAITING:
            raise CallersBusy("Too many tokens are being asked about.", hint="Ask again in a moment.")
        self._strangers_asked += stranger
        try:
            caller = await anyio.to_thread.run_sync(
                self.verifier.verify, token, limiter=self._verify_limits[not stranger]
            )
        finally:
            self._strangers_asked -= stranger
        self._accepted[name] = None
        self._accepted.move_to_end(name)
        while len(self._accepted) > MAX_CALLERS:
            self._accepted.popitem(last=False)
        return caller

    async def _start_server(self, caller: Caller, server: str) -> RunningServer:
        """Return a caller's own server, started on first use; a caller that has one does not wait for other starts."""
        key = (caller, server)
        if key in self._ready:
            self._ready.move_to_end(key)
            return self._ready[key]
        async with self._turn:
            if key not in self._ready:
                served = await anyio.to_thread.run_sync(self._open, caller, server)
                assert self._tasks is not None, "the application is running"
                self._ready[key] = await self._tasks.start(self._run, served, server)
                while len(self._ready) > MAX_CALLERS * len(SERVER_NAMES):
                    self._ready.popitem(last=False)[1].end.set()
            self._ready.move_to_end(key)
            return self._ready[key]

    def _open(self, caller: Caller, server: str) -> ServedCaller:
        if server in SUPERVISOR_SERVERS:
            return self.callers.serve_supervisor(caller)  # opens no market and no run
        served = self.callers.serve(caller)
        _ = served.evaluator  # fails here, before a server is started
        return served

    async def _run(self, served: ServedCaller, server: str, *, task_status: TaskStatus[RunningServer]) -> None:
        """Run a caller's server until it is dropped."""
        app = build_server(server, served).streamable_http_app(
            streamable_http_path=MCP_PATH,
            json_response=True,
            stateless_http=True,
            max_request_body_size=self.limits.body_bytes,
            transport_security=self._security,
        )
        attached = RunningServer(app)
        async with app.router.lifespan_context(app):
            task_status.started(attached)
            await attached.end.wait()

    def _refuse(self, visit: RefusableRequest, code: str, response: Response) -> Response:
        """Record a refusal and return its response; if that fails, return the error of the record instead."""
        return self._record_refusal(visit, code) or response

    def _record_refusal(self, visit: RefusableRequest, code: str) -> Response | None:
        """Record a request that was refused before dispatch; if that fails, return the response to send instead."""
        now = self.seconds()
        if visit.who == ANONYMOUS and self._strangers.take(STRANGERS_PER_MINUTE, now) > 0:
            if now - self._flooded < 1.0:
                return None
            self._flooded, code = now, "unauthorized_flood"
        took = 1e3 * (now - visit.began)
        try:
            self.callers.setup.record(
                ToolCall(visit.who, visit.server, "http", CallOutcome.REFUSED, code, duration_ms=took)
            )
        except LedgerError as error:
            return _build_error_response(503, error)
        return None


@dataclass(frozen=True, eq=False)
class RunningServer:
    """One caller's server as an application, and the event that ends it."""

    app: ASGIApp
    end: anyio.Event = field(default_factory=anyio.Event)


def _build_metadata(protected: Protected) -> dict[str, Any]:
    """Return the metadata of the protected resource (RFC 9728)."""
    page = {"resource": protected.resource, "authorization_servers": [protected.issuer]}
    return {
        **page,
        "scopes_supported": [scope for scope in ALL_SCOPES[:-1] if not scope.startswith("model:")],
        "bearer_methods_supported": ["header"],
    }


def _build_metadata_url(protected: Protected) -> str:
    """Return the address of the metadata: the well-known path, then the resource's own path and query."""
    base = urlsplit(protected.resource)
    path = METADATA + (base.path if base.path != "/" else "")
    return quote(base._replace(path=path, fragment="").geturl(), safe="%:/?&=@[]~+,;!$'()*")


def build_web_app(
    callers: CallerContexts,
    verifier: TokenVerifier,
    limits: CallerLimits | None = None,
    protected: Protected | None = None,
) -> Starlette:
    """Return the application that serves all servers."""
    gate = CallerGate(callers, verifier, limits or CallerLimits(), protected)
    return Starlette(routes=[Mount("/", app=gate)], lifespan=gate.lifespan)


@dataclass(eq=False)
class HeldAnswer:
    """Holds an answer back until its refusal is recorded; `record` records it, and may return another response.

    The SDK's answers are single JSON objects. An event stream would be passed on unchanged.
    """

    scope: Scope
    receive: Receive
    send: Send
    record: Callable[[str], Response | None]
    _start: Message | None = None
    _body: bytearray = field(default_factory=bytearray)

    async def __call__(self, message: Message) -> None:
        """Collect a part of the answer; send it with the last part."""
        if message["type"] == "http.response.start" and not _is_stream(message):
            self._start = message
            return
        if self._start is None:
            await self.send(message)
            return
        self._body += message.get("body", b"")
        if message.get("more_body", False):
            return
        code = _read_refusal_code(self._start["status"], bytes(self._body))
        if (
            code
            and (instead := self.record(code) or _explain_no_message(self._start["status"], bytes(self._body)))
            is not None
        ):
            await instead(self.scope, self.receive, self.send)
            return
        await self.send(self._start)
        await self.send({"type": "http.response.body", "body": bytes(self._body)})


def _is_stream(start: Message) -> bool:
    return any(name.lower() == b"content-type" and b"event-stream" in value for name, value in start.get("headers", ()))


def _read_refusal_code(status: int, body: bytes) -> str:
    """Return the code of a refusal; empty if it is none, or our server has recorded it with its own code."""
    if status < 400 and b'"error"' not in body:
        return ""
    try:
        error = json.loads(body).get("error")
    except (ValueError, AttributeError, RecursionError):
        error = None
    members = error if isinstance(error, dict) else {}
    data = members.get("data")
    if isinstance(data, dict) and "code" in data:
        return ""
    return f"http_{status}" if status >= 400 else f"rpc_{members.get('code')}" if members else ""


def _explain_no_message(status: int, body: bytes) -> Response | None:
    """Return the response to a body that is no message; the SDK's text is several lines about its own types."""
    if status != 400 or b"validation error" not in body:
        return None
    answer = json.loads(body)
    error = {
        "code": answer["error"]["code"],
        "message": NO_MESSAGE,
        "data": {"code": "no_message", "message": NO_MESSAGE},
    }
    return JSONResponse({"jsonrpc": "2.0", "id": answer.get("id"), "error": error}, status)


@dataclass(eq=False)
class Body:
    """A request body that was read in advance, and is replayed unchanged."""

    receive: Receive
    _messages: deque[Message] = field(default_factory=deque, init=False)

    async def parts(self, most_bytes: int) -> int:
        """Read the body until it ends or is too large; return the number of its parts, as far as read."""
        size, more = 0, True
        while more and size <= most_bytes:
            message = await self.receive()
            self._messages.append(message)
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
        return _count_parts(b"".join(message.get("body", b"") for message in self._messages))

    async def __call__(self) -> Message:
        """Return the next stored message, then the further ones."""
        return self._messages.popleft() if self._messages else await self.receive()


def _count_parts(body: bytes) -> int:
    """Count commas and opening brackets outside of strings, since formulas and code are full of them.

    A body with a zero byte is counted whole: it may be UTF-16, which one of the parsers accepts, with other bytes for
    quotes.
    """
    plain = [body] if b"\0" in body else body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2]
    return sum(sum(map(piece.count, (b",", b"[", b"{"))) for piece in plain)
