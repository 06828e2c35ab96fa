"""The benchmark of the MCP servers leaves no tool out, and tells what calls take."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mcp import Client

from bench.mcp_calls import largest
from bench.mcp_calls.bare import bare_server
from bench.mcp_calls.timing import Way, row, timed
from tests.evidence.lab import SMALL, Lab, market, read
from tests.mcp_servers.opened import opened_to

IN_PASSING = {
    "factors.register_factor",
    "factors.get_factor",
    "evaluation.score_factor",
    "evaluation.submit_to_gate",
    "evaluation.get_job",
    "news.get_news",
}
"""Asked on the way to others; a verdict has words of a fixed size, and of texts the benchmark has none."""


def test_every_tool_is_asked_for_all_that_it_gives(tmp_path: Path) -> None:
    async def listed(lab: Lab) -> set[str]:
        async with opened_to(lab.evaluator) as sessions:
            return {f"{name}.{tool}" for name, session in sessions.items() for tool in await session.tools()}

    with read(tmp_path / "workspace") as ledger:
        there = asyncio.run(listed(Lab.open(ledger, "run", market(), SMALL)))
    assert there == {*largest.GREEDY, *IN_PASSING, *(f"evaluation.{tool}" for tool in largest.JOBS)}


def test_calls_of_several_are_timed_by_turns() -> None:
    async def both() -> tuple[Way, Way]:
        async with Client(bare_server()) as client:
            one, other = (Way(client, "get_budget", {}) for _ in range(2))
            await timed([one, other], 20)
            return one, other

    one, other = asyncio.run(both())
    assert len(one.wall) == len(other.wall) == 20
    assert 0 < one.at(0.5) <= one.at(0.99)
    assert row("get_budget", one, one, (1.0, 3.0)).count("+0.00") == 2
