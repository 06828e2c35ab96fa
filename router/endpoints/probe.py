"""One GET to a configured address: is the server reachable, and how busy is it (vLLM's /metrics)."""

from __future__ import annotations

import asyncio
import math
import re
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

MAX_PROBE_BYTES = 1 << 22
WAITING_METRIC = "vllm:num_requests_waiting"
RUNNING_METRIC = "vllm:num_requests_running"
CACHE_METRICS = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
"""The share of the KV cache in use, 0 to 1, by its name of now and that of before."""
MAX_CACHE_SHARE = 0.99
_LABEL_PATTERN = r'\s*[a-zA-Z_]\w*\s*=\s*"(?:[^"\\\n]|\\.)*"\s*'
_SAMPLE = re.compile(
    rf"(?P<name>[a-zA-Z_:][\w:]*)\s*(?:\{{(?P<labels>(?:{_LABEL_PATTERN}(?:,{_LABEL_PATTERN})*,?)?\s*)\}})?\s+(?P<value>\S+)(?:\s+-?\d+)?"
)
_PAIR = re.compile(r'([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\\n]|\\.)*)"')
_ESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


@dataclass(frozen=True)
class ProbeResponse:
    """The status and the text that came back; status None: nothing did, and `text` says why. `refused`: nobody listens."""

    status: int | None
    text: str
    refused: bool = False


@dataclass(frozen=True)
class ServerState:
    """Whether a server is there, in words, and whether that is certain: one that is slow to say so may only be busy."""

    up: bool
    sure: bool
    said: str


async def fetch_text(address: str, key: str | None, seconds: float) -> ProbeResponse:
    """Ask an address; no redirection is followed, no proxy is asked, and the seconds are for all of it."""
    import anyio.lowlevel
    import httpx2

    await anyio.lowlevel.checkpoint()  # has what is imported late imported before the time runs: a second, once
    headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {key}"} if key else {})
    verify = _roots() if address.startswith("https:") else False
    try:
        async with (
            asyncio.timeout(seconds),
            httpx2.AsyncClient(verify=verify, trust_env=False, timeout=seconds) as client,
            client.stream("GET", address, headers=headers) as response,
        ):
            return ProbeResponse(response.status_code, await _text(response.aiter_raw()))
    except (TimeoutError, httpx2.TimeoutException):
        return ProbeResponse(None, f"nothing came within {seconds:g} s")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        said = str(error) or type(error).__name__
        return ProbeResponse(
            None, said.replace(key.strip(), "***") if key else said, isinstance(error, httpx2.ConnectError)
        )


async def probe_server(api_base: str, key: str | None, seconds: float, *, own: bool) -> ServerState:
    """Look whether a server is there, without a paid call: /health of one's own, then the list of models.

    vLLM lists its models while its engine is dead, hence /health first; a stranger's server is asked for its models only.
    """
    if own:
        address = f"{strip_api_version(api_base)}/health"
        seen = await fetch_text(address, None, seconds)
        if seen.status is None or seen.status < 300 or _is_failure(seen.status):
            return _judge_answer(address, seen)
    address = f"{api_base.rstrip('/')}/models"
    return _judge_answer(address, await fetch_text(address, key, seconds))


def strip_api_version(api_base: str) -> str:
    """Return the address of the server itself, before the version of its protocol."""
    return api_base.rstrip("/").removesuffix("/v1")


def _judge_answer(address: str, seen: ProbeResponse) -> ServerState:
    """Say what an answer means: whoever refuses a key, or knows no such page, is there."""
    if seen.status is None:
        return ServerState(False, seen.refused, f"{address} does not answer: {seen.text}")
    return ServerState(not _is_failure(seen.status), True, f"{address} answers ({seen.status})")


def _is_failure(status: int) -> bool:
    return status >= 500 and status != 501


async def _text(parts: AsyncIterator[bytes]) -> str:
    """Read a body as it was sent, and no more of it than is reasonable: unpacked it could be of any size."""
    body = b""
    async for part in parts:
        body += part
        if len(body) > MAX_PROBE_BYTES:
            break
    return body[:MAX_PROBE_BYTES].decode(errors="replace")


@cache
def _roots() -> ssl.SSLContext:
    """Return whom to trust; reading that takes a while."""
    return ssl.create_default_context()


@dataclass(frozen=True)
class Load:
    """Calls that wait, calls that run, and the share of the KV cache in use, 0 to 1."""

    waiting: float
    running: float
    cache: float

    @property
    def cost(self) -> float:
        """The waiting calls, and the cache as if it were some: half full counts one, nine tenths nine."""
        used = min(max(self.cache, 0.0), MAX_CACHE_SHARE)
        return self.waiting + used / (1.0 - used)


def read_load(text: str) -> Load | None:
    """Return what a server's metrics say; None where they are not a vLLM server's.

    A server of several engines says each of them: queues add up, of caches the fullest counts.
    """
    found: dict[str, list[float]] = {}
    for name, _, value in read_samples(text):
        if math.isfinite(value):
            found.setdefault(name, []).append(value)
    cache = next((found[name] for name in CACHE_METRICS if name in found), [0.0])
    if WAITING_METRIC not in found:
        return None
    return Load(sum(found[WAITING_METRIC]), sum(found.get(RUNNING_METRIC, [])), max(cache))


def read_prefix_hit_share(text: str) -> float | None:
    """Return the share of prompt tokens that a server had in its prefix cache since it began; None where it says nothing."""
    asked = sum(value for name, _, value in read_samples(text) if name == "vllm:prefix_cache_queries_total")
    found = sum(value for name, _, value in read_samples(text) if name == "vllm:prefix_cache_hits_total")
    return found / asked if asked > 0 and math.isfinite(found) else None


def read_samples(text: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Yield name, labels and value of every sample; lines that are none are passed over."""
    for line in text.split("\n"):
        match = _SAMPLE.fullmatch(line.strip())
        if match is None:
            continue
        try:
            value = float(match["value"])
        except ValueError:
            continue
        labels = {key: re.sub(r"\\.", _unescape, told) for key, told in _PAIR.findall(match["labels"] or "")}
        yield match["name"], labels, value


def _unescape(match: re.Match[str]) -> str:
    return _ESCAPED.get(match[0], match[0])
