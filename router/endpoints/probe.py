"""One GET to a configured address: is the server reachable, and how busy is it (vLLM's /metrics)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import re
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import cache

MAX_PROBE_BYTES = 1 << 22
WAITING_METRIC = "vllm:num_requests_waiting"
CACHE_METRICS = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
"""The share of the KV cache in use, 0 to 1, by its current and its former name."""
MAX_CACHE_SHARE = 0.99


@dataclass(frozen=True)
class ProbeResponse:
    """The status and text of a response.

    Status None: no response, and `text` says why. `refused`: nothing listens at the address.
    """

    status: int | None
    text: str
    refused: bool = False


@dataclass(frozen=True)
class ServerState:
    """Whether a server is reachable, whether that is certain (a slow server may only be busy), and the explanation.

    `version` is that of its program, where it is a vLLM that tells it.
    """

    up: bool
    sure: bool
    said: str
    version: str = ""


async def fetch_text(address: str, key: str | None, seconds: float) -> ProbeResponse:
    """Send a GET, without redirections and proxies; `seconds` limits the whole request."""
    import anyio.lowlevel
    import httpx2

    await anyio.lowlevel.checkpoint()  # finishes late imports (a second, once) before the timeout starts
    headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {key}"} if key else {})
    verify = _load_roots() if address.startswith("https:") else False
    try:
        async with (
            asyncio.timeout(seconds),
            httpx2.AsyncClient(verify=verify, trust_env=False, timeout=seconds) as client,
            client.stream("GET", address, headers=headers) as response,
        ):
            return ProbeResponse(response.status_code, await _read_body(response.aiter_raw()))
    except (TimeoutError, httpx2.TimeoutException):
        return ProbeResponse(None, f"nothing came within {seconds:g} s")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        message = str(error) or type(error).__name__
        return ProbeResponse(
            None, message.replace(key.strip(), "***") if key else message, isinstance(error, httpx2.ConnectError)
        )


async def probe_server(api_base: str, key: str | None, seconds: float, *, own: bool) -> ServerState:
    """Check whether a server is reachable, without a paid call: /health of an own server, then the list of models.

    vLLM lists its models even when its engine is dead, so /health comes first; any other server is asked for its models
    only.
    """
    if own:
        address = f"{strip_api_version(api_base)}/health"
        response = await fetch_text(address, None, seconds)
        if response.status is None or response.status < 300 or _is_failure(response.status):
            return _judge_answer(address, response)
    address = f"{api_base.rstrip('/')}/models"
    return _judge_answer(address, await fetch_text(address, key, seconds))


async def fetch_version(api_base: str, seconds: float) -> str:
    """Return the version that a vLLM server tells of its program, as in "vLLM 0.11.2"; empty where it tells none."""
    response = await fetch_text(f"{strip_api_version(api_base)}/version", None, seconds)
    try:
        version = json.loads(response.text)["version"] if response.status == 200 else ""
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return f"vLLM {version}" if isinstance(version, str) and version else ""


def strip_api_version(api_base: str) -> str:
    """Return the address of the server itself, before the version of its protocol."""
    return api_base.rstrip("/").removesuffix("/v1")


def _judge_answer(address: str, response: ProbeResponse) -> ServerState:
    """Judge a response: a server that refuses the key, or has no such page, is reachable."""
    if response.status is None:
        return ServerState(False, response.refused, f"{address} does not answer: {response.text}")
    return ServerState(not _is_failure(response.status), True, f"{address} answers ({response.status})")


def _is_failure(status: int) -> bool:
    return status >= 500 and status != 501


async def _read_body(parts: AsyncIterator[bytes]) -> str:
    """Read a body up to `MAX_PROBE_BYTES`, without unpacking: an unpacked body could have any size."""
    body = b""
    async for part in parts:
        body += part
        if len(body) > MAX_PROBE_BYTES:
            break
    return body[:MAX_PROBE_BYTES].decode(errors="replace")


@cache
def _load_roots() -> ssl.SSLContext:
    """Return the TLS context with the system's roots; cached, since loading them is slow."""
    return ssl.create_default_context()


@dataclass(frozen=True)
class Load:
    """Calls that wait, and the share of the KV cache in use, 0 to 1."""

    waiting: float
    cache: float

    @property
    def cost(self) -> float:
        """Waiting calls, plus the cache as a number of calls: half full counts one, nine tenths full counts nine."""
        used = min(max(self.cache, 0.0), MAX_CACHE_SHARE)
        return self.waiting + used / (1.0 - used)


def read_load(text: str) -> Load | None:
    """Return the load in a server's metrics; None where they are not a vLLM server's.

    A server with several engines reports each: their queues are summed, and the fullest cache counts.
    """
    waiting = list_values(text, WAITING_METRIC)
    cache = next((values for name in CACHE_METRICS if (values := list_values(text, name))), [0.0])
    return Load(sum(waiting), max(cache)) if waiting else None


def read_prefix_hit_share(text: str) -> float | None:
    """Return the share of prompt tokens found in the prefix cache since the server's start; None where unreported."""
    queries = sum(list_values(text, "vllm:prefix_cache_queries_total"))
    hits = sum(list_values(text, "vllm:prefix_cache_hits_total"))
    return hits / queries if queries > 0 else None


def list_values(text: str, metric: str) -> list[float]:
    """Return the finite values of a metric's samples, whatever their labels; other lines are skipped."""
    samples = re.findall(rf"^{metric}(?:\{{.*\}})?[ \t]+(\S+)", text, re.MULTILINE)
    values = []
    for sample in samples:
        with contextlib.suppress(ValueError):
            values.append(float(sample))
    return list(filter(math.isfinite, values))
