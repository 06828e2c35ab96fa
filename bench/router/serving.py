"""Time the local vLLM as its callers see it: first token, each further one, and goodput, with and without speculation.

    python -m bench.router serving [--streams 1 8 64] [--speculate none ngram draft] [--words 64]

A tiny model (made once, as the slow tests do) is served on this machine's processor by `alphaloom models serve`. So
many streams ask at once, each its requests one after the other, greedily and for as many tokens. TTFT: until the first
token; TPOT: from then on, for each token; E2E: the whole reply; goodput: requests a second of those that met both
limits, 1 s and 50 ms. A server that is quicker than its connection sends many tokens at once, so that TPOT may be 0.
Figures are of this machine and of whatever else it does: only rows of one run compare. Exit code 0: measured; 3: there
is no vLLM here.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from alphaloom.agents.prompt import load_prompts
from tests.router.vllm.served import Server, lacking

FEWEST, EACH = 16, 2
"""Requests of a row at the least, and of each stream."""
TTFT_LIMIT_S, TPOT_LIMIT_S = 1.0, 0.05
PAGE = 1_500
"""Characters of a prompt that all share; what follows is its own."""


@dataclass(frozen=True)
class Seen:
    """One request as its caller saw it, in seconds."""

    first: float
    each: float
    whole: float

    @property
    def good(self) -> bool:
        """Tell whether it met both limits."""
        return self.first <= TTFT_LIMIT_S and self.each <= TPOT_LIMIT_S


async def request(client: httpx2.AsyncClient, server: Server, number: int, words: int) -> Seen:
    """Ask once, and read the stream."""
    text = f"{load_prompts('factor').text[:PAGE]}\nMarket {number}: propose a formula."
    body = {
        "model": "tiny",
        "messages": [{"role": "user", "content": text}],
        "stream": True,
        "temperature": 0,
        "max_tokens": words,
        "ignore_eos": True,
        "stream_options": {"include_usage": True},
    }
    begun = time.perf_counter()
    times: list[float] = []
    async with client.stream("POST", f"{server.address}/v1/chat/completions", json=body, timeout=600) as reply:
        reply.raise_for_status()
        async for line in reply.aiter_lines():
            if '"content"' in line:
                times.append(time.perf_counter())
    return Seen(times[0] - begun, (times[-1] - times[0]) / max(words - 1, 1), times[-1] - begun)


async def crowd(server: Server, streams: int, words: int) -> tuple[list[Seen], float]:
    """Return what so many streams saw, and how long it all took."""
    rounds = max(EACH, -(-FEWEST // streams))
    async with httpx2.AsyncClient(limits=httpx2.Limits(max_connections=streams)) as client:

        async def stream(place: int) -> list[Seen]:
            return [
                await request(client, server, 1_000 * streams + rounds * place + turn, words) for turn in range(rounds)
            ]

        await stream(-1)
        begun = time.perf_counter()
        seen = await asyncio.gather(*map(stream, range(streams)))
        return [moment for one in seen for moment in one], time.perf_counter() - begun


def row(name: str, streams: int, words: int, server: Server) -> str:
    """Measure one row."""
    before = server.counts()
    seen, seconds = asyncio.run(crowd(server, streams, words))
    drafted, kept = (
        server.counts().get(key, 0.0) - before.get(key, 0.0)
        for key in ("spec_decode_num_draft_tokens_total", "spec_decode_num_accepted_tokens_total")
    )
    first, each, whole = (
        np.percentile([getattr(one, part) for one in seen], (50, 99)) * 1e3 for part in ("first", "each", "whole")
    )
    good = sum(one.good for one in seen) / seconds
    share = f"{kept / drafted:.0%}" if drafted else "-"
    return (
        f"{name:8} {streams:7} {len(seen):8} {first[0]:8.0f} {first[1]:8.0f} {each[0]:8.1f} {each[1]:8.1f} "
        f"{whole[0]:8.0f} {whole[1]:8.0f} "
        f"{len(seen) * words / seconds:9.0f} {good:8.2f} {share:>8}"
    )


def measure(name: str, streams: list[int], words: int, say: Any) -> None:
    """Serve with one kind of speculation, and measure every number of streams."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder), name)
        try:
            server.start()
            for count in streams:
                say(row(name, count, words, server))
        finally:
            server.stop()


def main(given: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--speculate", nargs="+", default=["none", "ngram", "draft"])
    parser.add_argument("--words", type=int, default=64, help="tokens of a reply")
    asked = parser.parse_args(given)
    if reason := lacking():
        sys.stderr.write(f"{reason}\n")
        return 3
    sys.stdout.write(
        f"{'drafts':8} {'streams':>7} {'requests':>8} {'TTFT p50':>8} {'p99 ms':>8} {'TPOT p50':>8} {'p99 ms':>8} "
        f"{'E2E p50':>8} {'p99 ms':>8} "
        f"{'tokens/s':>9} {'good/s':>8} {'accepted':>8}\n"
    )
    for name in asked.speculate:
        measure(name, asked.streams, asked.words, lambda line: print(line, flush=True))
    return 0
