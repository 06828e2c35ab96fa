"""Answers of the SDK that are held back until what they refuse is on record."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

__all__ = ["HeldAnswer"]

NO_MESSAGE = "The body must be one JSON-RPC request or notification, an object with jsonrpc, id, method and params; batches are not taken."


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
