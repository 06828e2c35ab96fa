"""All servers as one: the same tools, resources, prompts and refusals, by one connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.types import PromptReference

from alphaloom.evaluation import Evaluator
from alphaloom.ledger.calls import ToolCall
from alphaloom.mcp_servers import Session
from alphaloom.mcp_servers.errors import ToolError
from alphaloom.mcp_servers.server import ToolServer
from alphaloom.mcp_servers.tools import SERVERS, build_server
from alphaloom.mcp_servers.tools.servers import Bundle

from .opened import opened_to, served_to

NOBODY: Any = None


def test_one_connection_has_what_all_servers_have(evaluator: Evaluator) -> None:
    calls: list[ToolCall] = []
    served = served_to(evaluator, calls)

    async def listed(client: Client) -> list[list[str]]:
        return [
            sorted(tool.name for tool in (await client.list_tools()).tools),
            sorted(str(one.uri) for one in (await client.list_resources()).resources),
            sorted(one.uri_template for one in (await client.list_resource_templates()).resource_templates),
            sorted(one.name for one in (await client.list_prompts()).prompts),
        ]

    async def ask() -> None:
        async with opened_to(served) as sessions, Client(build_server("all", served)) as client:
            apart = [await listed(session.client) for session in sessions.values()]
            assert await listed(client) == [sorted(name for names in apart for name in names[at]) for at in range(4)]
            together = Session(client)
            draft = await together.call("register_factor", {"text": "rank(close)", "name": "level"})
            with pytest.raises(ToolError) as refused:
                await together.call("get_bugdet", {})
            assert refused.value.hint == "Did you mean get_budget?"
            assert await together.call("get_budget", {}) == await sessions["evaluation"].call("get_budget", {})
            assert (await together.call("search_news", {}))["items"] == []
            assert (await client.read_resource("alphaloom://universe")).contents
            assert (await client.read_resource(f"alphaloom://library/{draft['id']}")).contents
            with pytest.raises(MCPError, match="no such resource"):
                await client.read_resource("alphaloom://sealed")
            assert (await client.get_prompt("review_factor", {"id": draft["id"]})).messages
            prompt = PromptReference(type="ref/prompt", name="review_factor")
            found: Any = await client.complete(prompt, {"name": "id", "value": "f"})
            assert found.completion.values == [draft["id"]]

    asyncio.run(ask())
    assert {call.server for call in calls} == {f"alphaloom-{name}" for name in SERVERS}


@pytest.mark.parametrize(
    "make", [lambda: Bundle([]), lambda: ToolServer("one", instructions="", entry=NOBODY, scopes={}, reading="")]
)
def test_servers_let_no_library_tell_of_its_requests(
    make: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])  # as in a process of which nobody set up the log
    monkeypatch.setattr(logging.root, "level", logging.WARNING)
    make()
    assert logging.root.handlers, "the SDK sets it up"
    assert not logging.getLogger("httpx2").isEnabledFor(logging.INFO)
