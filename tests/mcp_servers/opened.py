"""Sessions of a caller who may do everything, in memory; what was called is kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from alphaloom.evaluation import Evaluator
from alphaloom.ledger.calls import ToolCall
from alphaloom.mcp_servers import Session, open_sessions
from alphaloom.mcp_servers.served_caller import ServedCaller
from alphaloom.mcp_servers.tools import SERVERS, build_server


def clock() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


def unrecorded(call: ToolCall) -> None:
    """Keep nothing of a call."""


def served_to(evaluator: Evaluator, calls: list[ToolCall] | None = None) -> ServedCaller:
    return ServedCaller.for_campaign(evaluator, unrecorded if calls is None else calls.append, clock)


@asynccontextmanager
async def opened_to(served: ServedCaller | Evaluator) -> AsyncIterator[dict[str, Session]]:
    """Open a session on every server of a caller; of an evaluator alone, of one who may do everything."""
    told = served if isinstance(served, ServedCaller) else served_to(served)
    async with open_sessions({name: build_server(name, told) for name in SERVERS}) as sessions:
        yield sessions
    if told is not served:
        told.jobs.close()
