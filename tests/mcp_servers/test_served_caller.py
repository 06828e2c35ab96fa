"""One caller on one server: its tools, what is refused, and that nothing is answered off the record."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp import Client

from alphaloom.ledger.calls import CallOutcome, ToolCall, digest_of_arguments
from alphaloom.ledger.errors import CallsUnwritable
from alphaloom.mcp_servers.access import Caller, Scope
from alphaloom.mcp_servers.answers import json_tool
from alphaloom.mcp_servers.errors import ToolError
from alphaloom.mcp_servers.served_caller import CallerEntry
from alphaloom.mcp_servers.server import ToolServer
from alphaloom.mcp_servers.session import Session

OPEN = "open_it"
SCOPES = {"read_it": Scope.DATA_READ, "score_it": Scope.EVAL_RUN, "break_it": Scope.DATA_READ}


def served(record: Any, *scopes: str) -> ToolServer:
    entry = CallerEntry(Caller("ann", frozenset(scopes)), record, seconds=iter(range(1000)).__next__)
    server = ToolServer("alphaloom-try", instructions="", entry=entry, scopes=SCOPES, reading=Scope.DATA_READ)

    @server.tool()
    @json_tool
    def read_it(rows: int = 2) -> dict[str, Any]:
        """Answer rows."""
        return {"rows": rows}

    @server.tool()
    @json_tool
    def score_it() -> dict[str, Any]:
        """Score."""
        return {}

    @server.tool()
    @json_tool
    def open_it() -> dict[str, Any]:
        """Ask for no scope, by a slip."""
        return {}

    @server.tool()
    @json_tool
    def break_it() -> dict[str, Any]:
        """Break."""
        raise RuntimeError("/secret/path")

    return server


def asked(server: ToolServer, name: str, **arguments: Any) -> dict[str, Any]:
    """Return the answer, or the refusal's record."""

    async def ask() -> dict[str, Any]:
        async with Client(server) as client:
            try:
                return await Session(client).call(name, arguments)
            except ToolError as refused:
                return refused.record()

    return asyncio.run(ask())


def test_a_caller_sees_and_may_call_what_its_scopes_allow_and_all_of_it_is_on_record() -> None:
    calls: list[ToolCall] = []
    server = served(calls.append, Scope.DATA_READ)
    assert [tool.name for tool in asyncio.run(server.list_tools())] == ["read_it", "break_it"]
    assert asked(server, "read_it", rows=3) == {"rows": 3}
    missing = asked(server, "score_it")
    assert (missing["code"], missing["allowed"]) == ("forbidden", "eval:run")
    assert asked(server, "read_it", row=3)["code"] == "arguments"
    assert "secret" not in str(asked(server, "break_it"))
    unknown = asked(server, "read_that")
    assert unknown["allowed"] == ["break_it", "read_it"], "what it may not call is not named"
    assert [(call.tool, call.outcome, call.code) for call in calls] == [
        ("read_it", CallOutcome.OK, ""),
        ("score_it", CallOutcome.REFUSED, "forbidden"),
        ("read_it", CallOutcome.REFUSED, "arguments"),
        ("break_it", CallOutcome.REFUSED, "failed"),
        ("read_that", CallOutcome.REFUSED, "unknown_tool"),
    ]
    assert {call.who for call in calls} == {"ann"}
    assert calls[0].rows == 3
    assert calls[0].arguments == digest_of_arguments({"rows": 3})
    assert calls[0].bytes == len('{"rows":3}')
    assert calls[0].duration_ms == 1000.0


def test_what_cannot_be_written_down_is_not_answered() -> None:
    def full(call: ToolCall) -> None:
        raise CallsUnwritable("calls cannot be recorded now")

    refused = asked(served(full, Scope.DATA_READ), "read_it")
    assert refused["code"] == CallsUnwritable.code


def test_a_tool_that_asks_for_no_scope_is_nobodys() -> None:
    server = served([].append, *SCOPES.values())
    assert OPEN not in [tool.name for tool in asyncio.run(server.list_tools())]
    assert asked(server, OPEN)["code"] == "forbidden"
