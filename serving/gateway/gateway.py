"""The gateway: calls of many tenants to one endpoint over HTTP, authenticated, in fair order, their bytes unchanged.

POST /v1/chat/completions and /v1/completions wait for a place and pass; GET /v1/models, /health, /version and /metrics
pass unchanged, a second old at most, the last with lines of our own. A refusal has the form of OpenAI's. A client that
hangs up releases its place, waiting or not, and its request to the endpoint is closed too. Bearer tokens come from
headers; they are never passed on or shown in a message.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import anyio
import anyio.to_thread
from httpx2 import Response as Answer
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from ...ledger import AlphaloomError
from ..errors import CallTooLarge, EndpointAway, GatewayEnds, GatewayError, QueueFull, QuotaReached
from .calls import CHAT, COMPLETIONS, GatewayRequest, ReplyCounter, ReplyLimits, TokenSize, read_call
from .client import ClientGone, ReplyRelay, TenantAdmission
from .endpoint import EndpointProbe, GatewayEndpoint, select_reply_headers
from .fair_scheduler import FairScheduler, Slot
from .tenants import FairnessSettings, GatewaySettings

CALL_PATHS = (CHAT, COMPLETIONS)
STATUS_PATHS = ("/v1/models", "/health", "/metrics", "/version")
MAX_INLINE_BYTES = 64 << 10
"""Bytes of a call that are parsed in the event loop; larger calls in a thread, one at a time of each tenant."""
ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
OUTCOMES = ("answered", "refused", "failed", "left")


@dataclass
class TenantAccount:
    """The counts of one tenant: calls by outcome, tokens, and seconds of waiting for a place."""

    calls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    tokens_in: int = 0
    tokens_out: int = 0
    waited: float = 0.0
    placed: int = 0


def format_metrics(
    gate: FairScheduler, places: int, accounts: Mapping[str, TenantAccount], visible: Collection[str]
) -> bytes:
    """Return the gateway's own lines: of the visible tenants, or sums over all tenants where none is visible."""
    names = sorted(visible)
    families = [
        _format_gauge("places", "Calls that the endpoint is let answer at once.", {"": places}),
        _format_gauge("places_free", "Places that nobody holds.", {"": gate.free}),
        _format_gauge("waiting", "Calls that wait for a place.", _collect_values(names, gate.count_waiting, accounts)),
        _format_gauge("running", "Calls that hold a place.", _collect_values(names, gate.count_running, accounts)),
    ]
    if names:
        by_labels = {_format_labels(name): accounts[name] for name in names}
        families += [
            _format_counter(
                "served_tokens_total",
                "Weighted tokens that a tenant was served.",
                _collect_values(names, gate.served_tokens, {}),
            ),
            _format_counter(
                "tokens_in_total",
                "Tokens in.",
                {labels: account.tokens_in for labels, account in by_labels.items()},
            ),
            _format_counter(
                "tokens_out_total",
                "Tokens out.",
                {labels: account.tokens_out for labels, account in by_labels.items()},
            ),
            _format_counter(
                "waited_seconds_total",
                "Waiting.",
                {labels: account.waited for labels, account in by_labels.items()},
            ),
            _format_counter(
                "placed_total",
                "Calls that got a place.",
                {labels: account.placed for labels, account in by_labels.items()},
            ),
            _format_counter(
                "calls_total",
                "Calls that ended, by what became of them.",
                {
                    _format_labels(name, outcome): count
                    for name in names
                    for outcome, count in accounts[name].calls.items()
                },
            ),
        ]
    return "".join(families).encode()


def _collect_values(
    names: list[str], value: Callable[[str], float], accounts: Mapping[str, TenantAccount]
) -> dict[str, float]:
    """Return a value by tenant, or the sum over all tenants where no names are given."""
    return {_format_labels(name): value(name) for name in names} if names else {"": sum(map(value, accounts))}


def _format_labels(tenant: str, outcome: str = "") -> str:
    return f'{{tenant="{tenant}"' + (f',outcome="{outcome}"' if outcome else "") + "}"


def _format_gauge(name: str, description: str, values: Mapping[str, float]) -> str:
    return _format_family(name, description, "gauge", values)


def _format_counter(name: str, description: str, values: Mapping[str, float]) -> str:
    return _format_family(name, description, "counter", values)


def _format_family(name: str, description: str, kind: str, values: Mapping[str, float]) -> str:
    full_name = f"alphaloom_gateway_{name}"
    rows = "".join(f"{full_name}{labels} {value:.12g}\n" for labels, value in values.items())
    return f"# HELP {full_name} {description}\n# TYPE {full_name} {kind}\n{rows}"


@dataclass
class _Tenant:
    """One tenant: its account, cache salt, bytes per token read and written, and the limiter of its large calls."""

    account: TenantAccount = field(default_factory=TenantAccount)
    salt: str = field(default_factory=secrets.token_urlsafe)
    read: TokenSize = field(default_factory=TokenSize)
    written: TokenSize = field(default_factory=TokenSize)
    reading: anyio.CapacityLimiter = field(default_factory=partial(anyio.CapacityLimiter, 1))


@dataclass(eq=False)
class Gateway:
    """An ASGI application that passes tenants' calls on to one endpoint.

    Attributes
    ----------
    endpoint : GatewayEndpoint
        Receives the calls.
    gate : FairScheduler
        Decides the order of calls.
    fairness, settings
        The settings of the scheduler, and the file of tenants.
    who : callable
        Returns the tenant of a bearer token; raises a `GatewayError` of status 401 or 403 if there is none.
    operates : callable
        Returns whether a bearer token is the operator's, who sees the counts of all tenants.
    seconds : callable
        A monotonic clock.
    patience : float
        Seconds without reading after which a client counts as gone, a quarter of them in total while the endpoint
        waits for it; also the seconds in which the whole body of a call must arrive.
    probe_timeout : float
        Seconds that the endpoint may take to answer a status path.
    """

    endpoint: GatewayEndpoint
    gate: FairScheduler
    fairness: FairnessSettings
    settings: GatewaySettings
    who: Callable[[str], str]
    operates: Callable[[str], bool] = lambda _: False
    seconds: Callable[[], float] = time.monotonic
    patience: float = 60.0
    probe_timeout: float = 10.0
    _tenants: dict[str, _Tenant] = field(default_factory=dict, init=False)
    _waiting: set[anyio.CancelScope] = field(default_factory=set, init=False)
    _slot_seconds: float = field(default=1.0, init=False)
    _ending: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Make the admission of calls and the probe of the endpoint."""
        self._door = TenantAdmission(self.fairness, self.settings.megabytes << 20)
        self._probe = EndpointProbe(self.endpoint, self.seconds)
        self._limits = ReplyLimits(self.settings.reply_tokens, self.settings.sequences, self.fairness.call_tokens)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008, "reason": "There are no web sockets here."})
            return
        outlet = ReplyRelay(send, self.patience, self.seconds)
        try:
            await self._answer(scope, receive, outlet)
        except ClientGone:
            return
        except AlphaloomError as error:
            if not outlet.started:  # else the connection is closed midway, as by the endpoint
                await _build_refusal(error, self._slot_seconds)(scope, receive, send)

    def end(self) -> None:
        """Refuse waiting and new calls; those that hold a place are finished."""
        self._ending = True
        for scope in tuple(self._waiting):
            scope.cancel()

    async def _answer(self, scope: Scope, receive: Receive, outlet: ReplyRelay) -> None:
        """Pass a request on by its path."""
        method, path = scope["method"], scope["path"]
        if path not in (*CALL_PATHS, *STATUS_PATHS):
            raise GatewayError(
                f"this gateway passes {', '.join((*CALL_PATHS, *STATUS_PATHS))} on",
                code="not_served",
                status=404,
                field="path",
            )
        if method != ("POST" if path in CALL_PATHS else "GET"):
            raise GatewayError(
                f"{path} takes {'POST' if path in CALL_PATHS else 'GET'}",
                code="not_served",
                status=405,
                field="method",
                got=method,
            )
        if path in STATUS_PATHS:
            await self._pass_status(scope, outlet.send)
        else:
            await self._take_call(scope, receive, outlet)

    def _identify_tenant(self, scope: Scope) -> str:
        return self.who(_read_bearer(scope))

    async def _pass_status(self, scope: Scope, send: Send) -> None:
        """Pass on a status path; a tenant sees its own metrics."""
        path = scope["path"]
        if path == "/v1/models":
            self._identify_tenant(scope)
        if self._ending:
            raise _make_ending_error()
        answer = await self._probe.fetch(path, self.probe_timeout)
        body = answer.body
        if path == "/metrics" and answer.status == 200:
            body = body.rstrip(b"\n") + b"\n" + self._format_own_metrics(scope)
        headers = [*answer.headers, (b"content-length", str(len(body)).encode())]
        try:
            with anyio.fail_after(self.patience):
                await send({"type": "http.response.start", "status": answer.status, "headers": headers})
                await send({"type": "http.response.body", "body": body})
        except TimeoutError:
            raise ClientGone from None

    def _format_own_metrics(self, scope: Scope) -> bytes:
        """Return our own lines: all tenants' for the operator, a tenant's for itself, sums without a valid token."""
        accounts = {name: tenant.account for name, tenant in self._tenants.items()}
        try:
            visible = (
                {*accounts} if self.operates(_read_bearer(scope)) else {*accounts} & {self._identify_tenant(scope)}
            )
        except GatewayError:
            visible = set()
        return format_metrics(self.gate, self.fairness.places, accounts, visible)

    async def _take_call(self, scope: Scope, receive: Receive, outlet: ReplyRelay) -> None:
        """Receive a call, pass it on in its turn, and count its outcome."""
        name = self._identify_tenant(scope)
        scope.setdefault("state", {})["known"] = True  # its connection is not closed to make room for others
        tenant = self._tenants.setdefault(name, _Tenant())
        outcome = "left"
        try:
            with self._door.open(name) as visit:
                body = await visit.read_body(scope, receive, self.patience)
                outcome = await outlet.relay(partial(self._pass_in_turn, scope, name, body, outlet), receive)
        except EndpointAway:
            outcome = "failed"
            raise
        except AlphaloomError:
            outcome = "refused"
            raise
        finally:
            tenant.account.calls[outcome] += 1

    async def _pass_in_turn(self, scope: Scope, name: str, body: bytes, outlet: ReplyRelay) -> str:
        """Pass a call on in its turn; return its outcome."""
        tenant = self._tenants[name]
        salt = tenant.salt if self.settings.cache_salt else ""
        read = partial(read_call, body, self._limits, scope["path"], salt)
        call = await anyio.to_thread.run_sync(read, limiter=tenant.reading) if len(body) > MAX_INLINE_BYTES else read()
        start = self.seconds()
        async with self._acquire_slot(name, tenant.read.estimate_tokens(call.letters), call.most_tokens_out) as place:
            tenant.account.placed += 1
            tenant.account.waited += self.seconds() - start
            return await self._send(scope, tenant, call, place, outlet)

    @asynccontextmanager
    async def _acquire_slot(self, name: str, tokens_in: int, most_tokens_out: int) -> AsyncIterator[Slot]:
        """Wait for a place and hold it; raise `GatewayEnds` where the gateway ends first."""
        if self._ending:
            raise _make_ending_error()
        async with AsyncExitStack() as stack:
            with anyio.CancelScope() as waiting:
                self._waiting.add(waiting)
                try:
                    place = await stack.enter_async_context(self.gate.acquire(name, tokens_in, most_tokens_out))
                finally:
                    self._waiting.discard(waiting)
            if waiting.cancelled_caught:
                raise _make_ending_error()
            start = self.seconds()
            yield place
            self._slot_seconds += (self.seconds() - start - self._slot_seconds) / 8

    async def _send(self, scope: Scope, tenant: _Tenant, call: GatewayRequest, place: Slot, outlet: ReplyRelay) -> str:
        """Send a call and pass the reply on; return the outcome."""
        try:
            async with self.endpoint.request("POST", scope["path"], scope["headers"], call.body) as answer:
                return await _relay_reply(answer, tenant, call, place, outlet)
        except EndpointAway:
            if not outlet.started:  # nothing was served
                place.correct_input(0)
                place.report_output(0)
            raise


async def _relay_reply(answer: Answer, tenant: _Tenant, call: GatewayRequest, place: Slot, outlet: ReplyRelay) -> str:
    """Pass a reply on as it comes, and charge its tokens, also if it ends early."""
    reply = ReplyCounter(b"event-stream" in answer.headers.get("content-type", "").encode())
    try:
        await outlet(
            {"type": "http.response.start", "status": answer.status_code, "headers": select_reply_headers(answer)}
        )
        async for piece in answer.aiter_raw():
            reply.feed(piece)
            if reply.parts and reply.streams:
                place.report_output(reply.parts)
            await outlet({"type": "http.response.body", "body": piece, "more_body": True})
        reply.end()
    finally:
        _charge(tenant, call, place, reply, served=answer.is_success)
    await outlet({"type": "http.response.body", "body": b""})
    return "answered" if answer.is_success else "failed"


def _charge(tenant: _Tenant, call: GatewayRequest, place: Slot, reply: ReplyCounter, *, served: bool) -> None:
    """Charge a call; one that the endpoint refused had no output, for one that broke off the counts are estimates."""
    if not served:
        place.report_output(0)
        return
    reply.clamp_usage(call)
    tokens_in = tenant.read.estimate_tokens(call.letters) if reply.tokens_in is None else reply.tokens_in
    if reply.tokens_in is not None:
        place.correct_input(reply.tokens_in)
        tenant.read.learn(call.letters, reply.tokens_in)
    tenant.account.tokens_in += tokens_in
    tokens_out = max(reply.count_output(tenant.written), reply.parts)
    if reply.lost and reply.tokens_out is None:  # the most that it can have been
        tokens_out = max(tokens_out, call.most_tokens_out)
    if tokens_out or reply.tokens_out is not None:
        place.report_output(tokens_out)
        tenant.account.tokens_out += tokens_out
    if reply.tokens_out is not None:
        tenant.written.learn(reply.written, reply.tokens_out)


def _read_bearer(scope: Scope) -> str:
    """Return the bearer token of a request; empty where it has none."""
    header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
    kind, _, bearer = header.decode("latin-1").partition(" ")
    return bearer.strip() if kind.lower() == "bearer" else ""


def _make_ending_error() -> GatewayEnds:
    return GatewayEnds("this gateway ends", hint="Ask again; the call was not sent.")


def build_application(gateway: Gateway) -> Starlette:
    """Return the application that serves a gateway and closes its connections at the end."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await gateway.endpoint.close()

    return Starlette(routes=[Mount("/", app=gateway)], lifespan=lifespan)


def _build_refusal(error: AlphaloomError, slot_s: float) -> JSONResponse:
    """Return the answer to a refused call; `slot_s` is the mean time for which a call holds a place."""
    status = _choose_status(error)
    kind = ERROR_TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    message = " ".join(line if line[-1] in ".!?" else f"{line}." for line in lines)
    content = {"message": message, "type": kind, "param": error.field or None, "code": error.code}
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    if (wait := _compute_retry_after(error, slot_s)) is not None:
        headers["retry-after"] = str(max(1, math.ceil(wait)))
    return JSONResponse({"error": content}, status, headers)


def _choose_status(error: AlphaloomError) -> int:
    if isinstance(error, CallTooLarge):  # it would be too large a minute later too
        return 413
    if isinstance(error, QueueFull | QuotaReached):
        return 429
    return error.status if isinstance(error, GatewayError) else 500


def _compute_retry_after(error: AlphaloomError, slot_s: float) -> float | None:
    """Return the seconds until a retry may succeed: by the quota, else until a place is free."""
    if isinstance(error, CallTooLarge):
        return None
    if isinstance(error, QuotaReached) and math.isfinite(error.seconds):
        return error.seconds
    return slot_s if isinstance(error, QueueFull | QuotaReached | GatewayEnds) else None
