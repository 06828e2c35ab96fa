"""What a call of the MCP servers costs, beside a server of the SDK alone; and how a panel of 500 x 500 is handed over.

python -m bench.mcp_calls              in memory, over stdio and over HTTP; some minutes
python -m bench.mcp_calls --calls 50   fewer calls

The servers over stdio and HTTP are those that the command line starts, with tokens and the record of calls; the client
is the SDK's. Ours and the bare server take turns in blocks. Milliseconds by the wall clock, since that is what waits,
and of CPU beside them (client, server and all that they started), since a shared machine cannot lengthen those.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from alphaloom.campaign import Settings
from alphaloom.ledger import Ledger, read_settings
from alphaloom.ledger.calls import CallLog
from alphaloom.mcp_servers.access import EVERY_SCOPE, Caller
from alphaloom.mcp_servers.callers import CallerContexts, ServerSetup
from alphaloom.mcp_servers.tools import SERVERS, build_server
from alphaloom.search.constraints import SearchConstraints
from tests.mcp_servers.started import ROOT, Start, campaign, client, environment, now, over_http, started, stdio

from .bare import PATH, bare_server
from .largest import largest
from .panels import handed_over
from .timing import TITLES, Way, row, timed

RULES: dict[str, Any] = {
    "market": {"synthetic": {"days": 900, "names": 500, "late_listings": 0.0, "delistings": 0.0}},
}
"""A search window of 540 days and all 500 names: panels of 500 days can begin on 40 of them."""
TARGETS = {"memory": (1.0, 3.0), "stdio": (3.0, 12.0), "HTTP": (6.0, 20.0)}
"""Median and 99 % of a small call on an idle machine, ms."""
CHECK = {"text": "rank(ts_mean(returns, 20)) * rank(volume)"}


@contextmanager
def in_memory(folder: Path) -> Any:
    """Yield the servers of a caller who may do everything, in this process."""
    settings = read_settings(campaign(folder, RULES), Settings, [])
    panel, dataset = settings.market.open(settings.seed)
    with ExitStack() as stack:
        ledger = stack.enter_context(Ledger.open(folder / "memory", clock=now))
        calls = stack.enter_context(CallLog.open(folder / "memory" / "audit", clock=now))
        ground = ServerSetup(
            lambda: (panel, dataset), ledger, settings.evidence, settings.budget, SearchConstraints(), now, calls.append
        )
        served = stack.enter_context(CallerContexts(ground)).serve(Caller("bench", EVERY_SCOPE))
        yield {name: build_server(name, served) for name in SERVERS}


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[dict[str, dict[str, Any]]]:
    """Yield clients by transport and server; `bare` is the rival."""
    bare_command = [sys.executable, "-m", "bench.mcp_calls.bare"]
    bare = StdioServerParameters(command=bare_command[0], args=bare_command[1:], env=environment(), cwd=ROOT)
    async with AsyncExitStack() as stack:
        servers = stack.enter_context(in_memory(folder))
        ours = stack.enter_context(over_http(folder, Start(RULES, options=("--per-minute", "1000000"))))
        _, rival = stack.enter_context(started([*bare_command, "0"], folder / "bare.log"))
        enter = stack.enter_async_context
        memory = {name: await enter(Client(server)) for name, server in servers.items()}
        yield {
            "memory": {**memory, "bare": await enter(Client(bare_server()))},
            "stdio": {
                "evaluation": await enter(Client(stdio(folder, RULES, "evaluation"))),
                "bare": await enter(Client(bare)),
            },
            "HTTP": {
                **{name: await enter(client(f"{ours.url}/{name}/mcp", ours.tokens[0])) for name in SERVERS},
                "bare": await enter(client(rival + PATH)),
            },
        }


async def small_calls(clients: dict[str, dict[str, Any]], calls: int) -> None:
    """Print a line for each small call on each transport."""
    print("| | " + " | ".join(TITLES) + " |")
    print("|---" * (len(TITLES) + 1) + "|")
    for transport, named in clients.items():
        bare = Way(named["bare"], "get_budget", {})
        ways = {"get_budget": Way(named["evaluation"], "get_budget", {})}
        if "factors" in named:
            ways["check_factor"] = Way(named["factors"], "check_factor", CHECK)
        await timed([bare, *ways.values()], calls)
        for name, way in ways.items():
            print(row(f"{name}, {transport}", way, bare, TARGETS[transport]), flush=True)


async def measure(folder: Path, calls: int, panels: int) -> None:
    """Print all tables."""
    async with opened(folder) as clients:
        await small_calls(clients, calls)
        print(f"\nload average {os.getloadavg()[0]:.1f}\n")
        for transport in ("memory", "HTTP"):
            for line in await handed_over(clients[transport]["market"], clients[transport]["bare"], panels):
                print(f"{transport}: {line}", flush=True)
        print(f"\nload average {os.getloadavg()[0]:.1f}\n")
        for line in await largest(clients["memory"]):
            print(line, flush=True)


def main() -> None:
    """Print what calls and panels cost."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=400, help="small calls of each kind on each transport")
    parser.add_argument("--panels", type=int, default=20, help="panels handed over")
    given = parser.parse_args()
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # the SDK's servers let it tell of every request
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} before; ms\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder), given.calls, given.panels))


if __name__ == "__main__":
    main()
