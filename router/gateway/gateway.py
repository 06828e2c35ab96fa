"""Calls of many tenants to one endpoint, over HTTP: who asks, whose turn it is, and the bytes as they are.

POST /v1/chat/completions and /v1/completions wait for a place and pass; GET /v1/models, /health and /metrics pass as they
are, the last with lines of our own. A refusal has the form of OpenAI's. A client that hangs up gives its place back, waiting
or not, and the endpoint is hung up on too. Tokens come from headers, go nowhere, and are in no message.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import anyio
from httpx2 import Response as Answer
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import Message, Receive, Scope, Send

from ...ledger import AlphaloomError
from ..errors import BadCall, EndpointAway, GatewayEnds, GatewayError, NotServed
from ..fairness import Gate, Place
from ..quota import FairnessSettings
from .calls import Asked, asked
from .counting import Reply, Yardstick
from .endpoint import Endpoint, passed_back
from .metrics import Account, lines
from .refusals import refusal
from .settings import GatewaySettings

__all__ = ["Gateway", "application"]

ASKED = ("/v1/chat/completions", "/v1/completions")
SEEN = ("/v1/models", "/health", "/metrics")
MOST_BYTES = 32 << 20
"""Of one call."""


class _Gone(Exception):
    """The client hung up, or takes nothing any more."""


@dataclass
class _Outlet:
    """Where the answer goes; one that takes nothing for `patience` seconds is given up."""

    send: Send
    patience: float
    begun: bool = False

    async def __call__(self, message: Message) -> None:
        self.begun = True
        try:
            with anyio.fail_after(self.patience):
                await self.send(message)
        except TimeoutError:
            raise _Gone from None


@dataclass
class _Tenant:
    """One tenant: its books, and how long its tokens are."""

    account: Account = field(default_factory=Account)
    read: Yardstick = field(default_factory=Yardstick)
    written: Yardstick = field(default_factory=Yardstick)


@dataclass(eq=False)
class Gateway:
    """Lets tenants' calls through to one endpoint.

    Attributes
    ----------
    endpoint : Endpoint
        Where calls go.
    gate : Gate
        Whose turn it is.
    fairness, settings
        What the gate was made from, and the rest of the file of tenants.
    who : callable
        A bearer token to the name of its tenant; `NotAdmitted` or `NotAllowed` if it has none.
    seconds : callable
        A clock that only ever rises.
    patience : float
        Seconds for which a client may take nothing before it counts as gone.
    look : float
        Seconds that the endpoint may take for what spends nothing.
    """

    endpoint: Endpoint
    gate: Gate
    fairness: FairnessSettings
    settings: GatewaySettings
    who: Callable[[str], str]
    seconds: Callable[[], float] = time.monotonic
    patience: float = 60.0
    look: float = 10.0
    _tenants: dict[str, _Tenant] = field(default_factory=dict, init=False)
    _waiting: set[anyio.CancelScope] = field(default_factory=set, init=False)
    _held: float = field(default=1.0, init=False)
    _ending: bool = field(default=False, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008, "reason": "There are no web sockets here."})
            return
        outlet = _Outlet(send, self.patience)
        try:
            await self._answered(scope, receive, outlet)
        except _Gone:
            return
        except AlphaloomError as error:
            if not outlet.begun:  # else the connection is closed in the middle, as the endpoint did
                await refusal(error, self._held)(scope, receive, send)

    def end(self) -> None:
        """Refuse calls that wait, and those that come; those that hold a place are finished."""
        self._ending = True
        for scope in tuple(self._waiting):
            scope.cancel()

    async def _answered(self, scope: Scope, receive: Receive, outlet: _Outlet) -> None:
        method, path = scope["method"], scope["path"]
        if path not in (*ASKED, *SEEN):
            raise NotServed(f"this gateway passes {', '.join((*ASKED, *SEEN))} on", field="path")
        if method != ("POST" if path in ASKED else "GET"):
            wrong = NotServed(f"{path} takes {'POST' if path in ASKED else 'GET'}", field="method", got=method)
            wrong.status = 405
            raise wrong
        if path in SEEN:
            await self._seen(scope, outlet)
            return
        name = self._name(scope)
        body = await _body(receive)
        async with anyio.create_task_group() as both:
            both.start_soon(_until_gone, receive, both.cancel_scope)
            refused = await self._called(scope, name, body, outlet)
            both.cancel_scope.cancel()
        if refused is not None:  # a group would wrap it
            raise refused

    def _name(self, scope: Scope) -> str:
        """Return whose call it is."""
        header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        kind, _, bearer = header.decode("latin-1").partition(" ")
        return self.who(bearer.strip() if kind.lower() == "bearer" else "")

    async def _seen(self, scope: Scope, outlet: _Outlet) -> None:
        """Pass on what spends nothing; metrics tell tenants' names to tenants only."""
        path = scope["path"]
        if path == "/v1/models":
            self._name(scope)
        if self._ending:
            raise _ends()
        try:
            with anyio.fail_after(self.look):
                async with self.endpoint.asked("GET", path) as answer:
                    body = b"".join([piece async for piece in answer.aiter_raw()])
        except TimeoutError:
            raise EndpointAway(f"the endpoint did not answer within {self.look:g} s", hint="Ask again.") from None
        if path == "/metrics" and answer.is_success:
            body = body.rstrip(b"\n") + b"\n" + self._lines(scope)
        headers = [each for each in passed_back(answer) if each[0] != b"content-length"]
        length = (b"content-length", str(len(body)).encode())
        await outlet({"type": "http.response.start", "status": answer.status_code, "headers": [*headers, length]})
        await outlet({"type": "http.response.body", "body": body})

    def _lines(self, scope: Scope) -> bytes:
        try:
            known = bool(self._name(scope))
        except GatewayError:
            known = False
        books = {name: tenant.account for name, tenant in self._tenants.items()}
        return lines(self.gate, self.fairness.places, books, by_tenant=known)

    async def _called(self, scope: Scope, name: str, body: bytes, outlet: _Outlet) -> AlphaloomError | None:
        """Pass a call on in its turn, and book what became of it; return why it was refused, if it was."""
        tenant = self._tenants.setdefault(name, _Tenant())
        outcome = "left"
        refused: AlphaloomError | None = None
        try:
            call = asked(body, reply_tokens=self.settings.reply_tokens, sequences=self.settings.sequences)
            came = self.seconds()
            async with self._turn(name, tenant.read.tokens(call.letters), call.most_tokens_out) as place:
                tenant.account.placed += 1
                tenant.account.waited += self.seconds() - came
                outcome = await self._sent(scope, tenant, call, place, outlet)
        except _Gone:
            pass
        except EndpointAway as error:
            outcome, refused = "failed", error
        except AlphaloomError as error:
            outcome, refused = "refused", error
        finally:
            tenant.account.calls[outcome] += 1
        return refused

    @asynccontextmanager
    async def _turn(self, name: str, tokens_in: int, most_tokens_out: int) -> AsyncIterator[Place]:
        """Wait for a place and hold it; when the gateway ends, who still waits is told so."""
        if self._ending:
            raise _ends()
        async with AsyncExitStack() as stack:
            with anyio.CancelScope() as waiting:
                self._waiting.add(waiting)
                try:
                    place = await stack.enter_async_context(self.gate.place(name, tokens_in, most_tokens_out))
                finally:
                    self._waiting.discard(waiting)
            if waiting.cancelled_caught:
                raise _ends()
            began = self.seconds()
            yield place
            self._held += (self.seconds() - began - self._held) / 8

    async def _sent(self, scope: Scope, tenant: _Tenant, call: Asked, place: Place, outlet: _Outlet) -> str:
        """Send a call and pass the reply on; return what became of it."""
        path = scope["path"] + (f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else "")
        try:
            async with self.endpoint.asked("POST", path, scope["headers"], call.body) as answer:
                return await _relayed(answer, tenant, call, place, outlet)
        except EndpointAway:
            if not outlet.begun:  # nothing was served
                place.brought(0)
                place.took(0)
            raise


async def _relayed(answer: Answer, tenant: _Tenant, call: Asked, place: Place, outlet: _Outlet) -> str:
    """Pass a reply on as it comes, and charge what it takes, also if it ends before its time."""
    reply = Reply(b"event-stream" in answer.headers.get("content-type", "").encode())
    try:
        await outlet({"type": "http.response.start", "status": answer.status_code, "headers": passed_back(answer)})
        async for piece in answer.aiter_raw():
            reply.feed(piece)
            if reply.parts and reply.streams:
                place.took(reply.parts)
            await outlet({"type": "http.response.body", "body": piece, "more_body": True})
        reply.end()
    finally:
        _charge(tenant, call, place, reply, served=answer.is_success)
    await outlet({"type": "http.response.body", "body": b""})
    return "answered" if answer.is_success else "failed"


def _charge(tenant: _Tenant, call: Asked, place: Place, reply: Reply, *, served: bool) -> None:
    """Charge a call; one that was refused by the endpoint put nothing out, one that was left says nothing of itself."""
    if not served:
        place.took(0)
        return
    tokens_in = tenant.read.tokens(call.letters) if reply.tokens_in is None else reply.tokens_in
    if reply.tokens_in is not None:
        place.brought(reply.tokens_in)
        tenant.read.learn(call.letters, reply.tokens_in)
    tenant.account.tokens_in += tokens_in
    tokens_out = max(reply.out(tenant.written), reply.parts)
    if tokens_out or reply.tokens_out is not None:
        place.took(tokens_out)
        tenant.account.tokens_out += tokens_out
    if reply.tokens_out is not None:
        tenant.written.learn(reply.written, reply.tokens_out)


async def _body(receive: Receive) -> bytes:
    """Return a call's body.

    Raises
    ------
    BadCall
        If it is larger than a call may be.
    """
    found = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        found += message.get("body", b"")
        if len(found) > MOST_BYTES:
            large = BadCall("the body is too large", field="body", allowed=f"{MOST_BYTES:,} bytes")
            large.status = 413
            raise large
        if not message.get("more_body", False):
            return bytes(found)


async def _until_gone(receive: Receive, whole: anyio.CancelScope) -> None:
    """End a call whose client hangs up."""
    while (await receive())["type"] != "http.disconnect":
        pass
    whole.cancel()


def _ends() -> GatewayEnds:
    return GatewayEnds("this gateway ends", hint="Ask again; the call was not sent.")


def application(gateway: Gateway) -> Starlette:
    """Return the application that serves a gateway and closes what it opened."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await gateway.endpoint.close()

    return Starlette(routes=[Mount("/", app=gateway)], lifespan=lifespan)
