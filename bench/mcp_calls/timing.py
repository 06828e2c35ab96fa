"""How long calls take, of several that take turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.mcp_servers.started import cpu_below, share

BLOCKS = 10
TITLES = ("50 %", "99 %", "CPU", "bare 50 %", "bare 99 %", "bare CPU", "ours less bare: 50 %", "CPU", "wanted, idle")


@dataclass
class Spans:
    """Seconds of single calls by the wall clock, and of CPU of all of them together."""

    wall: list[float] = field(default_factory=list)
    cpu: float = 0.0

    async def add(self, count: int, call: Callable[[], Awaitable[Any]]) -> Any:
        """Make calls; return the last answer."""
        answer, below, before = None, cpu_below(), time.process_time()
        for _ in range(count):
            began = time.perf_counter()
            answer = await call()
            self.wall.append(time.perf_counter() - began)
        self.cpu += time.process_time() - before  # before others are looked at, which takes a while itself
        self.cpu += cpu_below() - below
        return answer

    @property
    def each(self) -> float:
        """Milliseconds of CPU of a call."""
        return 1e3 * self.cpu / len(self.wall)

    def at(self, part: float) -> float:
        """Return the milliseconds below which a part of all calls lies."""
        return 1e3 * share(self.wall, part)

    def text(self) -> str:
        """Return the three figures in words."""
        return (
            f"{self.at(0.5):.1f} at the median, {self.at(0.99):.1f} at 99 %, "
            f"CPU {self.each:.1f} ({len(self.wall)} times)"
        )


@dataclass
class Way(Spans):
    """One tool of one server, called over and over."""

    client: Any = None
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __init__(self, client: Any, tool: str, arguments: Mapping[str, Any]) -> None:
        """Begin without a call."""
        super().__init__()
        self.client, self.tool, self.arguments = client, tool, arguments

    async def call(self) -> None:
        """Make one call, which must not be refused."""
        answer = await self.client.call_tool(self.tool, dict(self.arguments))
        if answer.is_error:
            raise RuntimeError(answer.structured_content)


async def timed(ways: Sequence[Way], calls: int) -> None:
    """Time calls of all ways, in blocks by turns; the first calls of each are not counted."""
    for way in ways:
        for _ in range(5):
            await way.call()
    for _ in range(BLOCKS):
        for way in ways:
            await way.add(max(calls // BLOCKS, 1), way.call)


def row(what: str, ours: Spans, bare: Spans, wanted: tuple[float, float]) -> str:
    """Return a line of the table."""
    figures = [ours.at(0.5), ours.at(0.99), ours.each, bare.at(0.5), bare.at(0.99), bare.each]
    ratio = statistics.median(ours.wall) / statistics.median(bare.wall)
    more = f"{ours.at(0.5) - bare.at(0.5):+.2f} ({ratio:.1f} times)"
    return (
        f"| {what} | {' | '.join(f'{value:.2f}' for value in figures)} | {more} | {ours.each - bare.each:+.2f} "
        f"| {wanted[0]:g} / {wanted[1]:g} |"
    )
