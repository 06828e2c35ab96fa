"""Connections to configured endpoints, and their answers: bounded in size and normalised for LiteLLM.

A connection goes to the configured address only, without proxies and redirections. LiteLLM fails on an answer with a
member of an unexpected type, such as a text as `usage`, and raises an error with a stack trace. A paid answer would
then be lost, so answers are parsed here first.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import ssl
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from ..config import SERVER_PROVIDERS, ModelSettings

SDK = ("openai",)
"""Providers that LiteLLM reaches through OpenAI's library, which needs a client of another class."""
MAX_COMPLETION_BYTES = 1 << 22
"""Maximum size of an answer, unpacked; a reply of 100,000 tokens takes a tenth of it."""
MAX_ERROR_BYTES = 1 << 14
"""Maximum size of a server's error text. All of it is searched for keys before 300 characters of it are shown."""
PACKED_ENCODINGS = ("gzip", "x-gzip", "deflate")
TOKEN_COUNT_KEYS = ("prompt_tokens", "completion_tokens")
CACHE_COUNT_KEYS = ("cache_read_input_tokens", "cache_creation_input_tokens", "prompt_cache_hit_tokens")
"""Names of Anthropic and DeepSeek for cached tokens of a prompt."""
MAX_INTEGER_DIGITS = 40
"""Maximum digits of a parsed integer: Python takes seconds for a million digits."""


class Clients:
    """One client for each endpoint and event loop.

    LiteLLM's own clients would use the environment's proxies and follow redirections.

    Parameters
    ----------
    seconds : float
        Timeout between bytes.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._made: dict[tuple[str, str], Any] = {}

    def connect(self, name: str, settings: ModelSettings, key: str | None, pinned: str | None) -> Any:
        """Return the client for a model; None where LiteLLM connects by the provider's name.

        `pinned` is the path of the only certificate that the connection accepts.
        """
        provider = settings.model.partition("/")[0]
        if settings.api_base is None or provider not in SERVER_PROVIDERS:
            return None
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # connections of a closed loop ended with it
            self._loop, self._made = loop, {}
        place = name, pinned or ""
        if place not in self._made:
            self._made[place] = self._make(provider, settings.api_base, key, pinned)
        return self._made[place]

    async def close(self) -> None:
        """Close the clients of this event loop."""
        clients, self._made = self._made, {}
        if self._loop is asyncio.get_running_loop():
            for client in clients.values():
                await client.close()

    def _make(self, provider: str, address: str, key: str | None, pinned: str | None) -> Any:
        httpx: Any = importlib.import_module("httpx")
        verify: Any = False
        if address.startswith("https:"):
            verify = ssl.create_default_context(cafile=pinned) if pinned else ssl.create_default_context()
        transport = wrap_transport(httpx.AsyncHTTPTransport(verify=verify, trust_env=False))
        if provider not in SDK:
            handlers: Any = importlib.import_module("litellm.llms.custom_httpx.http_handler")
            return handlers.AsyncHTTPHandler(timeout=self._seconds, transport=transport, follow_redirects=False)
        sdk: Any = importlib.import_module("openai")
        plain = httpx.AsyncClient(transport=transport, timeout=self._seconds, follow_redirects=False, trust_env=False)
        return sdk.AsyncOpenAI(api_key=key or "none", base_url=address, http_client=plain, max_retries=0)


class Unreadable(Exception):
    """An answer that is no chat completion; the message says why."""


def wrap_transport(transport: Any) -> Any:
    """Wrap an httpx transport so that every answer is bounded and normalised."""
    httpx: Any = importlib.import_module("httpx")

    async def handle(_: Any, request: Any) -> Any:
        request.headers["accept-encoding"] = "gzip"
        response = await transport.handle_async_request(request)
        try:
            body = await _read_body(response)
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.raw if name.lower() not in _REPLACED_HEADERS]
        status = response.status_code
        body = json.dumps(_parse_chat(body)).encode() if 200 <= status < 300 else body[:MAX_ERROR_BYTES]
        # At 422 LiteLLM would send the request again without its schema, unseen and perhaps paid.
        return httpx.Response(400 if status == 422 else status, headers=headers, content=body, request=request)

    async def close(_: Any) -> None:
        await transport.aclose()

    kind = type("Reading", (httpx.AsyncBaseTransport,), {"handle_async_request": handle, "aclose": close})
    return kind()


_REPLACED_HEADERS = {b"content-encoding", b"content-length", b"transfer-encoding"}
"""Headers that no longer describe the body once it is unpacked."""


async def _read_body(response: Any) -> bytes:
    """Return an answer's body, unpacked; httpx would unpack without a size limit, and nested encodings too."""
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        _check_size(body)
    packed = response.headers.get("content-encoding", "identity").strip().lower()
    if packed == "identity":
        return bytes(body)
    if packed not in PACKED_ENCODINGS:
        raise Unreadable(f"its answer is packed as {packed[:40]!r}, which nobody asked for")
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32)  # detects gzip and zlib by the header
    try:
        unpacked = unpacking.decompress(body, MAX_COMPLETION_BYTES + 1)
    except zlib.error:
        raise Unreadable("its answer cannot be unpacked") from None
    _check_size(unpacked)
    return unpacked


def _check_size(body: bytes | bytearray) -> None:
    if len(body) > MAX_COMPLETION_BYTES:
        raise Unreadable(f"its answer is larger than {MAX_COMPLETION_BYTES >> 20} MiB")


def _parse_chat(body: bytes) -> dict[str, Any]:
    """Return a chat completion in the shape that LiteLLM reads."""
    try:
        answer = json.loads(body.decode("utf-8-sig"), parse_int=_parse_whole)
    except UnicodeDecodeError:
        raise Unreadable("its answer is not UTF-8") from None
    except (ValueError, RecursionError):
        raise Unreadable("its answer is not JSON") from None
    choices = answer.get("choices") if isinstance(answer, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(answer, dict) or not isinstance(choice, dict) or not isinstance(message, dict):
        error = answer.get("error") if isinstance(answer, dict) else None
        words = error.get("message") if isinstance(error, dict) else error
        raise Unreadable(
            f"its answer is an error: {_to_text(words)[:MAX_ERROR_BYTES]}" if error else "its answer holds no message"
        )
    content, thoughts = read_message_texts(message)
    finish = choice.get("finish_reason")
    return {
        "id": "",
        "object": "chat.completion",
        "created": 0,
        "model": str(answer.get("model") or ""),
        "choices": [
            {
                "index": 0,
                "finish_reason": finish if isinstance(finish, str) else "stop",
                "message": {"role": "assistant", "content": content, "reasoning_content": thoughts or None},
            }
        ],
        "usage": _read_usage(answer.get("usage")),
    }


def read_message_texts(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return the content of a message and its thoughts, from any of the members that servers use.

    Arguments of a tool call count as content: a model that was asked for JSON may answer with a call.
    """
    function = message.get("function_call")
    calls = message.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    arguments = [item.get("arguments") for item in (*functions, function) if isinstance(item, dict)]
    content = _join_texts((message.get("content"), *arguments)) or _join_texts([message.get("refusal")])
    return content, _join_texts([message.get("reasoning_content") or message.get("reasoning")])


def _join_texts(values: Iterable[Any]) -> str:
    return "\n".join(filter(None, map(_to_text, values)))


def _to_text(value: Any) -> str:
    """Return a member of a message as text: a text itself, a list as the text of its parts, other values as JSON."""
    if isinstance(value, str) or value is None:
        return value or ""
    if isinstance(value, list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in value]
        return "".join(part for part in parts if isinstance(part, str))
    return json.dumps(value)


def _read_usage(reported: Any) -> dict[str, Any]:
    """Return the valid counts of a usage; empty without valid counts of both prompt and reply."""
    usage = reported if isinstance(reported, dict) else {}
    counts: dict[str, Any] = {
        name: count
        for name in (*TOKEN_COUNT_KEYS, *CACHE_COUNT_KEYS)
        if (count := parse_count(usage.get(name))) is not None
    }
    if not counts.keys() >= set(TOKEN_COUNT_KEYS):
        return {}
    details = usage.get("prompt_tokens_details")
    cached = parse_count(details.get("cached_tokens")) if isinstance(details, dict) else None
    return counts if cached is None else counts | {"prompt_tokens_details": {"cached_tokens": cached}}


def parse_count(value: Any) -> int | None:
    """Return a value as a count of tokens; None where it is not a whole number of 0 or more."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _parse_whole(digits: str) -> int | None:
    return int(digits) if len(digits) <= MAX_INTEGER_DIGITS else None
