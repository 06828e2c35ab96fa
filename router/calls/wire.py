"""What a server sends back, read by us before LiteLLM sees it: bounded, and put into the one shape that LiteLLM reads.

LiteLLM breaks on an answer in which one member has another type than it expects, such as a text as `usage`, and raises an error
that holds a stack trace. An answer that was paid for is then lost.
"""

from __future__ import annotations

import importlib
import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

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
    spoken, thoughts = message_texts(message)
    finish = choice.get("finish_reason")
    return {
        "id": "", "object": "chat.completion", "created": 0, "model": str(told.get("model") or ""),
        "choices": [{
            "index": 0, "finish_reason": finish if isinstance(finish, str) else "stop",
            "message": {"role": "assistant", "content": spoken, "reasoning_content": thoughts or None},
        }],
        "usage": _usage(told.get("usage")),
    }  # fmt: skip


def message_texts(message: Mapping[str, Any]) -> tuple[str, str]:
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
