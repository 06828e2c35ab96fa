"""Two hundred callers at once: no line of the record lost, no panel in wrong hands, flat memory.

`make mcp-endurance` runs it; MCP_LOAD_SECONDS says how long, two minutes by default, MCP_LOAD_CALLERS how many.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import os
import random
import ssl
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pyarrow.parquet as pq
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from alphaloom.campaign import Settings
from alphaloom.ledger import read_settings
from alphaloom.ledger.calls import read_latest
from alphaloom.market import Panel

from .asking import seconds
from .started import Served, Start, cpu_of, memory, over_http, share
from .test_long_http import RULES

SECONDS = seconds("MCP_LOAD_SECONDS", 120)
CALLERS = int(seconds("MCP_LOAD_CALLERS", 200))
MOST_GROWTH = 1.10
"""Memory at the end over memory after a third of the time, when every caller has had its servers for long."""
FIELDS = ("close", "open", "returns", "volume")
CLAIM = {
    "id": "h1",
    "mechanism": "control",
    "statement": "a formula of the tests",
    "direction": 1,
    "horizon_days": 5,
    "fields": ["high", "low"],
}
Line = tuple[str, str, str]
TLS = ssl.create_default_context()


@dataclass
class Load:
    """What all callers share: who handed over what, what was answered, and how long it took."""

    served: Served
    panel: Panel
    stop: int
    until: float
    lines: Counter[Line] = field(default_factory=Counter)
    handles: dict[int, str] = field(default_factory=dict)
    first: list[float] = field(default_factory=list)
    spans: list[float] = field(default_factory=list)
    ready: int = 0
    worked: float = 0.0
    own: float = 0.0


@dataclass
class Asking:
    """One caller, who asks for panels of names of its own."""

    load: Load
    number: int
    market: Client
    evaluation: Client
    rng: random.Random

    @property
    def who(self) -> str:
        return self.load.served.tokens[self.number].split("_")[1]

    @property
    def symbols(self) -> list[str]:
        """Two names that no other caller asks for together."""
        count = len(self.load.panel.symbols)
        return [self.load.panel.symbols[at % count] for at in (self.number, self.number + 1 + self.number // count)]

    def note(self, tool: str, outcome: str) -> None:
        self.load.lines[self.who, tool, outcome] += 1

    async def call(self, client: Client, tool: str, **arguments: Any) -> Any:
        """Call a tool and count the line that it leaves."""
        began = time.monotonic()
        answer = await client.call_tool(tool, arguments)
        self.load.spans.append(time.monotonic() - began)
        self.note(tool, "refused" if answer.is_error else "ok")
        return answer

    async def read(self, uri: str) -> bytes | None:
        """Read a part; None where it is refused."""
        try:
            read = await self.market.read_resource(uri, cache_mode="bypass")
        except MCPError:
            self.note("resources/read", "refused")
            return None
        self.note("resources/read", "ok")
        return base64.b64decode(read.contents[0].blob)  # type: ignore[union-attr]

    async def history(self) -> None:
        """Ask for a panel and see that it is the own one, value for value."""
        name = self.rng.choice(FIELDS)
        answer = await self.call(self.market, "get_history", field=name, symbols=self.symbols)
        assert not answer.is_error, answer.structured_content
        told = answer.structured_content
        files = [await self.read(part["uri"]) for part in told["parts"]]
        self.load.handles[self.number] = told["handle"]
        table = pq.read_table(io.BytesIO(files[0] or b""))
        assert table.column_names == ["date", *self.symbols]
        places = [self.load.panel.symbols.index(symbol) for symbol in self.symbols]
        wanted = self.load.panel.fields[name][: self.load.stop, places]
        values = np.array([column.to_numpy() for column in table.columns[1:]]).T
        assert np.array_equal(values, wanted[: len(values)], equal_nan=True), self.symbols
        assert len(values) == told["rows"] == self.load.stop
        assert hashed(files) == told["sha256"]

    async def foreign(self) -> None:
        """Ask for another caller's panel, which must be refused."""
        others = [number for number in self.load.handles if number != self.number]
        if others:
            assert await self.read(f"alphaloom://panels/{self.load.handles[self.rng.choice(others)]}/0") is None

    async def step(self) -> None:
        """Do one thing of those that clients do, now and then a wrong one."""
        chance = self.rng.random()
        if chance < 0.4:
            await self.history()
        elif chance < 0.5:
            await self.foreign()
        elif chance < 0.6:
            assert (await self.call(self.market, "preview_panel", field="close", rows=99)).is_error
        elif chance < 0.65:
            formula = f"rank(high / low) + {self.rng.randrange(10**6)}"
            await self.call(self.evaluation, "score_factor", text=formula, hypothesis=CLAIM, key=str(self.rng.random()))
        else:
            assert not (await self.call(self.evaluation, "get_budget")).is_error


def hashed(files: list[bytes | None]) -> str:
    """Return the digest of a panel that came in one part: that part is the whole file."""
    assert len(files) == 1
    return hashlib.sha256(files[0] or b"").hexdigest()


async def one(load: Load, number: int) -> None:
    """Be one caller until the time is over."""
    rng = random.Random(number)
    headers = {"Authorization": f"Bearer {load.served.tokens[number]}"}
    await asyncio.sleep(rng.random() * 5)
    async with AsyncExitStack() as stack:
        began = time.monotonic()
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=120, verify=TLS))
        market, evaluation = [
            await stack.enter_async_context(
                Client(streamable_http_client(f"{load.served.url}/{name}/mcp", http_client=http))
            )
            for name in ("market", "evaluation")
        ]
        asking = Asking(load, number, market, evaluation, rng)
        await asking.history()
        load.first.append(time.monotonic() - began)
        load.ready += 1
        while time.monotonic() < load.until:
            await asking.step()
            await asyncio.sleep(rng.random())


async def stranger(load: Load) -> None:
    """Be somebody without a token, whose calls are on record too."""
    async with httpx2.AsyncClient(verify=TLS, timeout=120) as http:
        while time.monotonic() < load.until:
            assert (await http.post(f"{load.served.url}/market/mcp", json={})).status_code == 401
            load.lines["anonymous", "http", "refused"] += 1
            await asyncio.sleep(0.2)


async def everybody(load: Load) -> float:
    """Be all of them at once; return the servers' memory after a third of the time."""
    begun, before = time.monotonic(), cpu_of(load.served.process.pid)
    async with asyncio.TaskGroup() as tasks:
        for number in range(CALLERS):
            tasks.create_task(one(load, number))
        tasks.create_task(stranger(load))
        while load.ready < CALLERS:
            await asyncio.sleep(0.1)
        load.worked, took = cpu_of(load.served.process.pid), time.monotonic() - begun
        each = 1e3 * (load.worked - before) / CALLERS
        print(f"\n{CALLERS} callers ready after {took:.1f} s, with {each:.0f} ms of the servers' CPU for each")
        load.spans.clear()
        load.own = time.process_time()
        load.until = time.monotonic() + SECONDS
        await asyncio.sleep(SECONDS / 3)
        return memory(load.served.process.pid)


@pytest.mark.slow
def test_two_hundred_callers_at_once(tmp_path: Path) -> None:
    settings = read_settings(None, Settings, [f"market.synthetic={RULES['market']['synthetic']}".replace("'", '"')])
    panel, _ = settings.market.open(settings.seed)
    with over_http(tmp_path, Start(RULES, CALLERS)) as served:
        before = memory(served.process.pid)
        load = Load(served, panel, int(0.6 * panel.days), time.monotonic() + 3_600)
        warm = asyncio.run(everybody(load))
        last, load.worked = memory(served.process.pid), cpu_of(served.process.pid) - load.worked
        assert served.end() == 0
        told, log = served.verify(), served.log.read_text()
    written = Counter(
        (str(row["who"]), str(row["tool"]), str(row["outcome"])) for row in read_latest(served.record, 10**9)
    )
    figures = [1e3 * share(load.spans, part) for part in (0.5, 0.99)] + [share(load.first, 0.5), max(load.first)]
    print(
        "a call of a tool: {:.0f} ms at the median, {:.0f} at 99 %; to the first panel {:.1f} s, {:.1f} at most".format(
            *figures
        )
    )
    each, own = (1e3 * spent / len(load.spans) for spent in (load.worked, time.process_time() - load.own))
    print(
        f"{len(load.spans) / SECONDS:.0f} calls of tools a second, {each:.1f} ms of the servers' CPU for each, "
        f"{own:.1f} of the clients'"
    )
    print(f"load average {os.getloadavg()[0]:.1f}")
    print(f"memory of the servers: {before:.0f} MB before, {warm:.0f} after a third, {last:.0f} at the end")
    print(f"{load.lines.total():,} lines wanted, {told['calls']:,} on record; verified: {told['findings'] or 'sound'}")
    assert written == load.lines, (written - load.lines, load.lines - written)
    assert told["calls"] == load.lines.total()
    assert (told["exit"], told["findings"]) == (0, [])
    assert "Traceback" not in log, log[-5_000:]
    assert last < MOST_GROWTH * warm
