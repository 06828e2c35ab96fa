"""One streamed request to an OpenAI-compatible server, timed token by token, and what the server says of itself."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Self

import anyio
import httpx2

from ..errors import ServingError

CONNECT_TIMEOUT_S, PAGE_TIMEOUT_S = 5.0, 5.0
MAX_LINE_BYTES, MAX_STREAM_BYTES, MAX_PAGE_BYTES = 1 << 20, 1 << 24, 1 << 22
MAX_SAID_CHARS = 200  # of a server's own words in an error
CACHE_INFO = re.compile(r"^vllm:cache_config_info\{(.*)\}", re.MULTILINE)
METRIC_LABEL = re.compile(r'(\w+)="([^"]*)"')
CACHE_LABELS = ("block_size", "cache_dtype", "enable_prefix_caching", "gpu_memory_utilization", "num_gpu_blocks")


class ReplyFailed(Exception):
    """One request has no usable reply; the message says why, in words for a person."""


@dataclass(frozen=True)
class TimedReply:
    """A streamed reply: seconds from sending until its first and its last token, and its tokens."""

    first_s: float
    last_s: float
    prompt_tokens: int | None
    reply_tokens: int
    counted: bool
    """Whether the server counted the tokens; else the pieces of the stream are counted."""

    @property
    def per_token_s(self) -> float | None:
        """Return seconds of each token after the first; None where there is no second one."""
        return (self.last_s - self.first_s) / (self.reply_tokens - 1) if self.reply_tokens > 1 else None


@dataclass(frozen=True)
class ServerFacts:
    """What a server says of itself; a page that it lacks leaves its part empty."""

    version: str
    models: tuple[str, ...]
    max_model_len: int | None
    cache: dict[str, str]


class ServerClient:
    """Asks one server; never through a proxy, and without following it elsewhere.

    Parameters
    ----------
    address : str
        Its address before /v1, such as http://127.0.0.1:8000.
    key : str or None
        The key that it requires, if any; it is in no message.
    seconds : callable
        A clock that only goes forward, in seconds.
    """

    def __init__(self, address: str, key: str | None, seconds: Callable[[], float]) -> None:
        self.address = address
        self._key, self._seconds = key, seconds
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
            trust_env=False,
            follow_redirects=False,
            headers={"accept-encoding": "identity"} | ({"authorization": f"Bearer {key}"} if key else {}),
        )

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def read_facts(self) -> ServerFacts:
        """Return the server's version, models and cache.

        Raises
        ------
        ServingError
            It does not answer at /v1/models, or names no model.
        """
        listed = await self._read_page("/v1/models")
        try:
            rows = json.loads(listed)["data"]
            names = tuple(str(row["id"]) for row in rows)
            longest = rows[0].get("max_model_len") if rows else None
        except (ValueError, KeyError, TypeError, AttributeError):
            names, longest = (), None
        if not names:
            raise make_failure(f"{self.address} names no model at /v1/models: {self._clean(listed) or 'nothing came'}")
        version = await self._read_page("/version", needed=False)
        labels = CACHE_INFO.search(await self._read_page("/metrics", needed=False))
        cache = dict(METRIC_LABEL.findall(labels[1])) if labels else {}
        return ServerFacts(
            _read_version(version), names, longest if isinstance(longest, int) else None,
            {name: cache[name] for name in CACHE_LABELS if name in cache},
        )  # fmt: skip  # a table

    async def ask(self, body: dict[str, Any]) -> TimedReply:
        """Send a chat request as a stream, and return its times.

        Raises
        ------
        ReplyFailed
            The server refuses, breaks off, is silent, or streams no token.
        """
        sent = self._seconds()
        first: float | None = None
        last, pieces, ended = 0.0, 0, False
        usage: object = None
        try:
            async for event in self._stream(body):
                if event is None:
                    ended = True
                    break
                usage = event.get("usage") or usage
                if _has_text(event):
                    last = self._seconds() - sent
                    first = last if first is None else first
                    pieces += 1
        except httpx2.HTTPError as error:
            raise ReplyFailed(f"broke off after {pieces} pieces ({type(error).__name__})") from None
        if not ended:
            raise ReplyFailed(f"ended after {pieces} pieces without [DONE]")
        if first is None:
            raise ReplyFailed("streamed no token")
        counted = _read_count(usage, "completion_tokens")
        return TimedReply(first, last, _read_count(usage, "prompt_tokens"), counted or pieces, counted is not None)

    async def _stream(self, body: dict[str, Any]) -> AsyncIterator[dict[str, Any] | None]:
        """Yield the events of a stream, and None for its end."""
        async with self._client.stream("POST", f"{self.address}/v1/chat/completions", json=body) as response:
            if response.status_code != 200:
                text = await _read_start(response)
                raise ReplyFailed(f"answered {response.status_code}: {self._clean(text)}")
            async for line in _split_lines(response.aiter_raw()):
                if not line.startswith(b"data:"):
                    continue
                data = line[5:].strip()
                yield None if data == b"[DONE]" else self._parse(data)

    def _parse(self, data: bytes) -> dict[str, Any]:
        try:
            event = json.loads(data)
        except ValueError:
            event = None
        if not isinstance(event, dict):
            raise ReplyFailed(f"streamed no JSON object: {self._clean(data.decode(errors='replace'))}")
        if error := event.get("error"):
            raise ReplyFailed(f"streamed an error: {self._clean(json.dumps(error))}")
        return event

    async def _read_page(self, path: str, *, needed: bool = True) -> str:
        """Return the text of a page; of one that is not needed, nothing where it cannot be had."""
        said = f"nothing came within {PAGE_TIMEOUT_S:g} s"
        try:
            with anyio.fail_after(PAGE_TIMEOUT_S):
                async with self._client.stream("GET", self.address + path) as response:
                    text = await _read_start(response)
                if response.status_code == 200:
                    return text
                said = f"{response.status_code} {self._clean(text)}"
        except TimeoutError:
            pass
        except httpx2.HTTPError as error:
            said = f"{type(error).__name__}: {self._clean(str(error))}"
        if needed:
            raise make_failure(f"{self.address}{path} does not answer: {said}")
        return ""

    def _clean(self, text: str) -> str:
        """Return the start of a server's words on one line, without control characters and without the key."""
        plain = text.replace(self._key, "***") if self._key else text
        return "".join(one if one.isprintable() else " " for one in plain[:MAX_SAID_CHARS]).strip()


def make_failure(message: str, hint: str = "") -> ServingError:
    """Return the error of a measurement that has no figure."""
    hint = hint or "Is the address that of an OpenAI-compatible server, and is its key in VLLM_API_KEY?"
    return ServingError(message, code="not_measured", exit_code=3, field="--measure", hint=hint)


def _read_version(page: str) -> str:
    try:
        found = json.loads(page)["version"]
    except (ValueError, KeyError, TypeError):
        return ""
    return "".join(one for one in str(found)[:MAX_SAID_CHARS] if one.isprintable())


def _has_text(event: dict[str, Any]) -> bool:
    """Return whether an event of a chat stream brings text: content, or thoughts before it."""
    choices = event.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    delta = choice.get("delta") if isinstance(choice, dict) else None
    return isinstance(delta, dict) and any(delta.get(name) for name in ("content", "reasoning_content", "reasoning"))


def _read_count(usage: object, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


async def _read_start(response: httpx2.Response) -> str:
    """Return a body's text up to `MAX_PAGE_BYTES`, never unpacked."""
    body = b""
    async for piece in response.aiter_raw():
        body += piece
        if len(body) >= MAX_PAGE_BYTES:
            break
    return body[:MAX_PAGE_BYTES].decode(errors="replace")


async def _split_lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines of a stream, of bounded length each and in all."""
    rest, total = b"", 0
    async for piece in pieces:
        total += len(piece)
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > MAX_LINE_BYTES or total > MAX_STREAM_BYTES:
            raise ReplyFailed(f"streamed {total:,} bytes, more than a reply has")
        for line in lines:
            yield line
