"""How busy a vLLM server says it is: its /metrics, in Prometheus' text form."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

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
    for name, _, value in samples(text):
        if math.isfinite(value):
            found.setdefault(name, []).append(value)
    cache = next((found[name] for name in CACHE_METRICS if name in found), [0.0])
    if WAITING_METRIC not in found:
        return None
    return Load(sum(found[WAITING_METRIC]), sum(found.get(RUNNING_METRIC, [])), max(cache))


def prefix_hits(text: str) -> float | None:
    """Return the share of prompt tokens that a server had in its prefix cache since it began; None where it says nothing."""
    asked = sum(value for name, _, value in samples(text) if name == "vllm:prefix_cache_queries_total")
    found = sum(value for name, _, value in samples(text) if name == "vllm:prefix_cache_hits_total")
    return found / asked if asked > 0 and math.isfinite(found) else None


def samples(text: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
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
