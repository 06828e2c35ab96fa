"""Connections to endpoints that a configuration names, and their answers: bounded, and put into the one shape that LiteLLM reads.

A connection goes to that address, through no proxy and no redirection. LiteLLM breaks on an answer in which one member has
another type than it expects, such as a text as `usage`, and raises an error that holds a stack trace. An answer that was paid
for is then lost, so answers are read here first.
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
"""Providers that LiteLLM reaches by OpenAI's library; it takes a client of another kind."""
MAX_COMPLETION_BYTES = 1 << 22
"""Of an answer, unpacked: a reply of 100,000 tokens has a tenth of it."""
MAX_ERROR_BYTES = 1 << 14
"""Bytes of what a server says of a failure: 300 characters of it are told, and all of it is searched for keys before."""
PACKED_ENCODINGS = ("gzip", "x-gzip", "deflate")
TOKEN_COUNT_KEYS = ("prompt_tokens", "completion_tokens")
CACHE_COUNT_KEYS = ("cache_read_input_tokens", "cache_creation_input_tokens", "prompt_cache_hit_tokens")
"""Of the tokens of a prompt, as Anthropic and DeepSeek tell them."""
MAX_INTEGER_DIGITS = 40
"""Of a whole number that is read: Python takes seconds for a million of them."""


class Clients:
    """One client for each endpoint and loop. LiteLLM's own would go through the environment's proxies and follow redirections.

    Parameters
    ----------
    seconds : float
        For silence.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._made: dict[tuple[str, str], Any] = {}

    def connect(self, name: str, settings: ModelSettings, key: str | None, pinned: str | None) -> Any:
        """Return the client for a model; None where LiteLLM finds the way by the provider's name.

        `pinned` is the file of the only certificate that the connection may show.
        """
        provider = settings.model.partition("/")[0]
        if settings.api_base is None or provider not in SERVER_PROVIDERS:
            return None
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # what was connected in a loop that was closed ended with it
            self._loop, self._made = loop, {}
        place = name, pinned or ""
        if place not in self._made:
            self._made[place] = self._make(provider, settings.api_base, key, pinned)
        return self._made[place]

    async def close(self) -> None:
        """Close what was opened in this loop."""
        made, self._made = self._made, {}
        if self._loop is asyncio.get_running_loop():
            for client in made.values():
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
    """An answer came, and is no chat completion; the message says why."""


def wrap_transport(transport: Any) -> Any:
    """Return an httpx transport that reads each answer through another one."""
    httpx: Any = importlib.import_module("httpx")

    async def handle(_: Any, request: Any) -> Any:
        request.headers["accept-encoding"] = "gzip"
        response = await transport.handle_async_request(request)
        try:
            body = await _body(response)
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.raw if name.lower() not in _REPLACED_HEADERS]
        status = response.status_code
        body = json.dumps(_chat(body)).encode() if 200 <= status < 300 else body[:MAX_ERROR_BYTES]
        # At 422 LiteLLM would send the request again without its schema, unseen and perhaps paid.
        return httpx.Response(400 if status == 422 else status, headers=headers, content=body, request=request)

    async def close(_: Any) -> None:
        await transport.aclose()

    kind = type("Reading", (httpx.AsyncBaseTransport,), {"handle_async_request": handle, "aclose": close})
    return kind()


_REPLACED_HEADERS = {b"content-encoding", b"content-length", b"transfer-encoding"}
"""Headers that do not hold of a body that was read."""


async def _body(response: Any) -> bytes:
    """Return an answer's body, unpacked; httpx would unpack without a bound, and what is packed twice all the more."""
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        _check_size(body)
    packed = response.headers.get("content-encoding", "identity").strip().lower()
    if packed == "identity":
        return bytes(body)
    if packed not in PACKED_ENCODINGS:
        raise Unreadable(f"its answer is packed as {packed[:40]!r}, which nobody asked for")
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32)  # by the head of either
    try:
        unpacked = unpacking.decompress(body, MAX_COMPLETION_BYTES + 1)
    except zlib.error:
        raise Unreadable("its answer cannot be unpacked") from None
    _check_size(unpacked)
    return unpacked


def _check_size(body: bytes | bytearray) -> None:
    if len(body) > MAX_COMPLETION_BYTES:
        raise Unreadable(f"its answer is larger than {MAX_COMPLETION_BYTES >> 20} MiB")


def _chat(body: bytes) -> dict[str, Any]:
    """Return a chat completion in the shape that LiteLLM reads."""
    try:
        told = json.loads(body.decode("utf-8-sig"), parse_int=_parse_whole)
    except UnicodeDecodeError:
        raise Unreadable("its answer is not UTF-8") from None
    except (ValueError, RecursionError):
        raise Unreadable("its answer is not JSON") from None
    choices = told.get("choices") if isinstance(told, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(told, dict) or not isinstance(choice, dict) or not isinstance(message, dict):
        error = told.get("error") if isinstance(told, dict) else None
        words = error.get("message") if isinstance(error, dict) else error
        raise Unreadable(
            f"its answer is an error: {_text(words)[:MAX_ERROR_BYTES]}" if error else "its answer holds no message"
        )
    spoken, thoughts = read_message_texts(message)
    finish = choice.get("finish_reason")
    return {
        "id": "", "object": "chat.completion", "created": 0, "model": str(told.get("model") or ""),
        "choices": [{
            "index": 0, "finish_reason": finish if isinstance(finish, str) else "stop",
            "message": {"role": "assistant", "content": spoken, "reasoning_content": thoughts or None},
        }],
        "usage": _usage(told.get("usage")),
    }  # fmt: skip


def read_message_texts(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return what a message says, wherever it stands, and its thoughts.

    A call of a tool says its arguments: a model that was asked for JSON may give it as a call.
    """
    function = message.get("function_call")
    calls = message.get("tool_calls")
    asked = [each.get("function") for each in calls if isinstance(each, dict)] if isinstance(calls, list) else []
    arguments = [each.get("arguments") for each in (*asked, function) if isinstance(each, dict)]
    spoken = _join_texts((message.get("content"), *arguments)) or _join_texts([message.get("refusal")])
    return spoken, _join_texts([message.get("reasoning_content") or message.get("reasoning")])


def _join_texts(values: Iterable[Any]) -> str:
    return "\n".join(filter(None, map(_text, values)))


def _text(value: Any) -> str:
    """Return a member of a message as text: itself, the text of its parts, or a value that should have been text as JSON."""
    if isinstance(value, str) or value is None:
        return value or ""
    if isinstance(value, list):
        parts = [each.get("text") if isinstance(each, dict) else each for each in value]
        return "".join(each for each in parts if isinstance(each, str))
    return json.dumps(value)


def _usage(told: Any) -> dict[str, Any]:
    """Return those counts of a usage that are counts, nothing where it does not count both prompt and reply."""
    usage = told if isinstance(told, dict) else {}
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
    """Return a count of tokens, None of what is none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _parse_whole(digits: str) -> int | None:
    return int(digits) if len(digits) <= MAX_INTEGER_DIGITS else None
