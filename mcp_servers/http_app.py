"""The servers over HTTP: bearer tokens, limits, and a server of its own for every caller.

``/market/mcp``, ``/factors/mcp``, ``/evaluation/mcp``, ``/news/mcp``, and ``/all/mcp`` for all as one: streamable HTTP of both
protocol eras, without sessions, so that there is none to fix or to steal, and without streams of notices, which callers could
hold open without end. ``/health`` asks for no token and tells nothing but that it runs. Whatever is asked, the headers Host and
Origin are looked at first.

What is refused before a tool is reached is on record as a call of the tool "http" before it is told; where the record cannot be
written only that is told, as 503. Strangers do not fill the record: beyond 120 lines a minute of all of them together they are
refused as before, and a line "unauthorized_flood", one a second at most, says that there were more.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
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
from .access.oauth import Protected
from .access.scopes import ALL_SCOPES
from .answers import describe_refusal
from .callers import CallerContexts
from .errors import CallersBusy, McpServerError, TokenRefused
from .served_caller import ServedCaller
from .tools.servers import ALL_SERVERS, SERVERS, build_server

MAX_BODY_BYTES = 1 << 20

MAX_CALLERS = 256
"""Callers whose servers are kept ready; the one that was silent longest makes room."""

CALLS_AT_ONCE = 6
"""Requests of one caller that are worked on at once, whichever servers it asks and with however many tokens of its own name."""

MAX_THREADS = 32 * CALLS_AT_ONCE
"""Threads on which tools run, which all callers share: so many callers may be busy before another one waits."""

MCP_PATH = "/mcp"

SERVER_ERROR = -32_010
"""One of the codes that JSON-RPC leaves to servers, and that the SDKs give no meaning of their own."""

METADATA = "/.well-known/oauth-protected-resource"

ANONYMOUS, UNKNOWN_SERVER = "anonymous", "unknown"

STRANGERS_PER_MINUTE = 120
"""Lines a minute that all who show no good token may cause together."""

TOKEN_CHECKS_AT_ONCE, MAX_STRANGERS_WAITING = 8, 32
"""Tokens that the network is asked about at once, since what else is done in threads must not wait for them; and how many
strangers wait for that. A token that was accepted before waits for no stranger's.
"""

MAX_REQUESTS_WAITING = 64
"""Requests of one caller that wait; a further one is refused."""

LOG = logging.getLogger(__name__)

NO_MESSAGE = "The body must be one JSON-RPC request or notification, an object with jsonrpc, id, method and params; batches are not taken."

MAX_BODY_PARTS = 10_000
"""Commas and opening brackets of one request outside of its texts. A message is parsed and checked on the event loop, where
a million of them take more than a second; what tools take has a few thousand.
"""


@dataclass(frozen=True)
class CallerLimits:
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
    body_bytes: int = MAX_BODY_BYTES
    hosts: Sequence[str] = ("127.0.0.1:*", "localhost:*", "[::1]:*")
    origins: Sequence[str] = ("http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*")

    @classmethod
    def reached_as(cls, names: Sequence[str], calls_per_minute: int) -> CallerLimits:
        """Return the limits of servers that are reached under further names, behind a proxy that speaks TLS."""
        here = cls()
        hosts = [spelled.lower() for name in names for spelled in (name, f"{name}:*")]
        origins = [f"https://{name}".lower() for name in names]
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


@dataclass
class RefusableRequest:
    """One request as the record tells of it, if it is refused: who asked which server, and when."""

    server: str
    began: float
    who: str = ANONYMOUS


def _misdirected_status(scope: Scope, limits: CallerLimits) -> int | None:
    """Return the status with which a request is refused whose Host or Origin is not ours; None: both are."""
    hosts, origins = ([value for name, value in scope["headers"] if name == each] for each in (b"host", b"origin"))
    if len(hosts) != 1 or not _is_allowed_host(hosts[0], limits.hosts):
        return 421
    return None if all(_is_allowed_host(each, limits.origins) for each in origins) else 403


def _is_allowed_host(value: bytes, allowed: Sequence[str]) -> bool:
    """Tell whether a Host or an Origin is allowed, as a whole: a prefix of it would be anybody's."""
    said = value.decode("latin-1").lower()
    name, _, port = said.rpartition(":")
    return said in allowed or (f"{name}:*" in allowed and re.fullmatch(r"[0-9]{1,5}", port) is not None)


def _refusal_response(
    status: int, code: str, message: str, hint: str = "", headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return a refusal in the form in which clients look for a reason: that of JSON-RPC, of no request."""
    told = {"code": SERVER_ERROR, "message": f"{message} {hint}".strip()}
    data = {"code": code, "message": message, "hint": hint}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": told | {"data": data}}, status, headers)


def _error_response(status: int, error: AlphaloomError) -> JSONResponse:
    """Return an error as a caller is told it."""
    record = describe_refusal(error)
    return _refusal_response(status, error.code, str(record["message"]), str(record["hint"]))


@dataclass(eq=False)
class CallerGate:
    """Lets callers in and hands each to its own servers.

    Attributes
    ----------
    callers : CallerContexts
        Opens a caller's evaluator, and writes calls down.
    verifier : TokenVerifier
        Says who shows a token.
    limits : CallerLimits
        Of every caller.
    protected : Protected or None
        What is told of the OAuth server whose tokens are taken; None: there is none.
    seconds : callable
        A clock that only ever rises.
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
        """Settle what every request is checked against, and what is told to everybody."""
        self._security = TransportSecuritySettings(
            enable_dns_rebinding_protection=False
        )  # looked at here, before all else
        self._pages: dict[str, dict[str, Any]] = {
            "/health": {"status": "ok", "servers": [*sorted(SERVERS), ALL_SERVERS]}
        }
        if self.protected is not None:
            page = _metadata(self.protected)
            self._pages |= {METADATA: page, unquote(urlsplit(_metadata_url(self.protected)).path): page}

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
        visit = RefusableRequest(server if server in {*SERVERS, ALL_SERVERS} else UNKNOWN_SERVER, self.seconds())
        if scope["type"] != "http":
            self._record_refusal(visit, "websocket")
            await send({"type": "websocket.close", "code": 1008, "reason": "Requests are sent by POST."})
            return
        found = await self._admit_request(visit, scope)
        if isinstance(found, Response):
            await found(scope, receive, send)
            return
        held, body = HeldAnswer(scope, receive, send, lambda code: self._record_refusal(visit, code)), Body(receive)
        async with self._places[visit.who]:
            if await body.parts(self.limits.body_bytes) > MAX_BODY_PARTS:
                told = _refusal_response(
                    413, "too_many_parts", f"A message has at most {MAX_BODY_PARTS:,} parts.", "Send less at once."
                )
                await self._refuse(visit, "too_many_parts", told)(scope, receive, send)
                return
            await found.app({**scope, "path": MCP_PATH, "raw_path": MCP_PATH.encode(), "root_path": ""}, body, held)

    async def _admit_request(self, visit: RefusableRequest, scope: Scope) -> Response | RunningServer:
        """Return the server that is asked; what is told in its place to whoever may not ask it, or did not."""
        path, method = scope["path"], scope["method"]
        if (status := _misdirected_status(scope, self.limits)) is not None:
            told = _refusal_response(
                status, "misdirected", "Nothing is served under this name or to this origin.", "See --hosts."
            )
            return self._refuse(visit, f"http_{status}", told)
        if path in self._pages:
            asks = method in {"GET", "HEAD"}
            return (
                JSONResponse(self._pages[path])
                if asks
                else _refusal_response(405, "method", "GET it.", "", {"allow": "GET"})
            )
        if path != f"/{visit.server}{MCP_PATH}" or visit.server == UNKNOWN_SERVER:
            said = f"Servers are {', '.join([*sorted(SERVERS), ALL_SERVERS])}, each at /NAME/mcp."
            return self._refuse(visit, "unknown_server", _refusal_response(404, "unknown_server", said))
        try:
            caller = await self._identify_caller(scope)
        except TokenRefused as refused:
            hint = "Send a token of `alphaloom token create` as Authorization: Bearer TOKEN."
            told = _refusal_response(401, refused.code, str(refused), hint, {"www-authenticate": self._challenge()})
            return self._refuse(visit, refused.code, told)
        except CallersBusy as busy:
            told = _refusal_response(503, busy.code, busy.message, busy.hint, {"retry-after": "1"})
            return self._refuse(visit, busy.code, told)
        visit.who, now = caller.id, self.seconds()
        scope.setdefault("state", {})["known"] = True  # its connection makes room for nobody while it is answered
        bucket = self._buckets.setdefault(caller.id, Bucket(float(self.limits.calls_per_minute), now))
        if (wait := bucket.take(self.limits.calls_per_minute, now)) > 0:
            after = {"retry-after": str(max(int(wait + 0.999), 1))}
            said = f"More than {self.limits.calls_per_minute} calls a minute."
            return self._refuse(
                visit, "too_many", _refusal_response(429, "too_many", said, "Wait as Retry-After says.", after)
            )
        if method != "POST":  # clients of the handshake era try as they connect: nothing for the record
            said = "Requests are sent by POST; there are no notices to wait for and no session to end."
            return _refusal_response(405, "method", said, "", {"allow": "POST"})
        return await self._find_server(visit, caller)

    async def _find_server(self, visit: RefusableRequest, caller: Caller) -> Response | RunningServer:
        """Return a caller's server; why it has none, in words that tell no more than its own servers would."""
        try:
            found = await self._start_server(replace(caller, expires=None), visit.server)
            if (
                self._places.setdefault(caller.id, anyio.Semaphore(CALLS_AT_ONCE)).statistics().tasks_waiting
                < MAX_REQUESTS_WAITING
            ):
                return found
            said = f"{MAX_REQUESTS_WAITING} of your requests wait already."
            return self._refuse(
                visit, "too_many", _refusal_response(429, "too_many", said, "Ask fewer at once.", {"retry-after": "1"})
            )
        except AlphaloomError as error:
            return self._refuse(visit, error.code, _error_response(409, error))
        except Exception:
            LOG.exception("the servers of %s cannot be opened", caller.id)
            failed = McpServerError(
                "Your servers cannot be opened, by no fault of yours.",
                hint="Ask who runs them.",
                code="failed",
                exit_code=1,
            )
            return self._refuse(visit, failed.code, _error_response(500, failed))

    def _challenge(self) -> str:
        """Return what a client is told that was not let in: where tokens come from, where an OAuth server gives them."""
        return "Bearer" if self.protected is None else f'Bearer resource_metadata="{_metadata_url(self.protected)}"'

    async def _identify_caller(self, scope: Scope) -> Caller:
        header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        kind, _, bearer = header.decode("latin-1").partition(" ")
        token = bearer.strip() if kind.lower() == "bearer" else ""
        return await self._verify_over_network(token) if self.verifier.waits else self.verifier.verify(token)

    async def _verify_over_network(self, token: str) -> Caller:
        """Return who shows a token, which another server may be asked; those that were accepted before have a way of their own."""
        name = hashlib.sha256(token.encode("latin-1")).digest()
        stranger = name not in self._accepted
        # Counted here: the limiter counts a call only some steps after this look, so two at once could both pass it.
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
        """Return a caller's own server, begun when it is first asked for; who has one waits for nobody's beginning."""
        key = (caller, server)
        if key in self._ready:
            self._ready.move_to_end(key)
            return self._ready[key]
        async with self._turn:
            if key not in self._ready:
                served = await anyio.to_thread.run_sync(self._open, caller)
                assert self._tasks is not None, "the application is running"
                self._ready[key] = await self._tasks.start(self._run, served, server)
                while len(self._ready) > MAX_CALLERS * (len(SERVERS) + 1):
                    self._ready.popitem(last=False)[1].end.set()
            self._ready.move_to_end(key)
            return self._ready[key]

    def _open(self, caller: Caller) -> ServedCaller:
        served = self.callers.serve(caller)
        _ = served.evaluator  # why it cannot be opened is told before a server is begun
        return served

    async def _run(self, served: ServedCaller, server: str, *, task_status: TaskStatus[RunningServer]) -> None:
        """Run a caller's server until it must make room."""
        app = build_server(server, served).streamable_http_app(
            streamable_http_path=MCP_PATH, json_response=True, stateless_http=True,
            max_request_body_size=self.limits.body_bytes, transport_security=self._security,
        )  # fmt: skip
        attached = RunningServer(app)
        async with app.router.lifespan_context(app):
            task_status.started(attached)
            await attached.end.wait()

    def _refuse(self, visit: RefusableRequest, code: str, told: Response) -> Response:
        """Return what is told once it is on record; another answer where it cannot be."""
        return self._record_refusal(visit, code) or told

    def _record_refusal(self, visit: RefusableRequest, code: str) -> Response | None:
        """Write down what was refused before a tool was reached; return what is told in its place if that fails."""
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
            return _error_response(503, error)
        return None


@dataclass(frozen=True, eq=False)
class RunningServer:
    """One caller's server as an application, and what ends it."""

    app: ASGIApp
    end: anyio.Event = field(default_factory=anyio.Event)


def _metadata(protected: Protected) -> dict[str, Any]:
    """Say whose tokens are taken (RFC 9728)."""
    told = {"resource": protected.resource, "authorization_servers": [protected.issuer]}
    return {
        **told,
        "scopes_supported": [each for each in ALL_SCOPES[:-1] if not each.startswith("model:")],
        "bearer_methods_supported": ["header"],
    }


def _metadata_url(protected: Protected) -> str:
    """Return where that is said: the resource's own path and query come after the well-known one."""
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
    """Holds an answer back until what it refuses is on record; `kept` writes that down, and may say what is told instead.

    The SDK's answers are single JSON objects. A stream of events would be passed on as it comes.
    """

    scope: Scope
    receive: Receive
    send: Send
    kept: Callable[[str], Response | None]
    _start: Message | None = None
    _body: bytearray = field(default_factory=bytearray)

    async def __call__(self, message: Message) -> None:
        """Take a part of the answer; with the last one it is sent."""
        if message["type"] == "http.response.start" and not _is_stream(message):
            self._start = message
            return
        if self._start is None:
            await self.send(message)
            return
        self._body += message.get("body", b"")
        if message.get("more_body", False):
            return
        code = _refusal_code(self._start["status"], bytes(self._body))
        if (
            code
            and (instead := self.kept(code) or _explain_no_message(self._start["status"], bytes(self._body)))
            is not None
        ):
            await instead(self.scope, self.receive, self.send)
            return
        await self.send(self._start)
        await self.send({"type": "http.response.body", "body": bytes(self._body)})


def _is_stream(start: Message) -> bool:
    return any(name.lower() == b"content-type" and b"event-stream" in value for name, value in start.get("headers", ()))


def _refusal_code(status: int, body: bytes) -> str:
    """Return the code of a refusal; empty where there is none, or a server of ours has written it down with its own."""
    if status < 400 and b'"error"' not in body:
        return ""
    try:
        error = json.loads(body).get("error")
    except (ValueError, AttributeError, RecursionError):
        error = None
    told = error if isinstance(error, dict) else {}
    data = told.get("data")
    if isinstance(data, dict) and "code" in data:
        return ""
    return f"http_{status}" if status >= 400 else f"rpc_{told.get('code')}" if told else ""


def _explain_no_message(status: int, body: bytes) -> Response | None:
    """Return what is told of a body that is no message: the SDK says it in several lines about its own types."""
    if status != 400 or b"validation error" not in body:
        return None
    told = json.loads(body)
    error = {
        "code": told["error"]["code"],
        "message": NO_MESSAGE,
        "data": {"code": "no_message", "message": NO_MESSAGE},
    }
    return JSONResponse({"jsonrpc": "2.0", "id": told.get("id"), "error": error}, status)


@dataclass(eq=False)
class Body:
    """A body that was read and is handed on as it came."""

    receive: Receive
    _messages: deque[Message] = field(default_factory=deque, init=False)

    async def parts(self, most_bytes: int) -> int:
        """Read the body, or as much of it as shows that it is too large; return how many parts it has at least."""
        size, more = 0, True
        while more and size <= most_bytes:
            message = await self.receive()
            self._messages.append(message)
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
        return _parts(b"".join(message.get("body", b"") for message in self._messages))

    async def __call__(self) -> Message:
        """Return the next part of the body, and then whatever else comes."""
        return self._messages.popleft() if self._messages else await self.receive()


def _parts(body: bytes) -> int:
    """Count commas and opening brackets; texts are left out, since formulas and code are full of them.

    A zero byte stands in no JSON of UTF-8; in UTF-16, which one of the parsers reads, quotes are spelled otherwise.
    """
    plain = [body] if b"\0" in body else body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2]
    return sum(sum(map(piece.count, (b",", b"[", b"{"))) for piece in plain)
