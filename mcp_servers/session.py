"""Client sessions on our servers in memory, for a campaign's own agents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.server import MCPServer
from mcp.types import CallToolResult, TextContent

from ..evaluation import Evaluator
from ..ledger.calls import CALLS_FOLDER, CallLog
from ..news import NEWS_FOLDER, NewsStore
from .errors import ToolError
from .served_caller import ServedCaller
from .tools.servers import SERVERS, build_server


@dataclass(frozen=True)
class Session:
    """One open session on one server."""

    client: Client

    async def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool and return its JSON object.

        Raises
        ------
        ToolError
            The tool refused the call; the error has its code (in `record`), field, value and hint.
        """
        result = await self.client.call_tool(name, dict(arguments))
        body: dict[str, Any] = dict(result.structured_content or {})
        if result.is_error:
            raise _build_error(name, result, body)
        return body

    async def tools(self) -> list[str]:
        """Return the names of the server's tools."""
        return sorted(tool.name for tool in (await self.client.list_tools()).tools)


def _build_error(name: str, result: CallToolResult, body: dict[str, Any]) -> ToolError:
    text = " ".join(part.text for part in result.content if isinstance(part, TextContent))
    error = ToolError(
        str(body.get("message") or text or f"{name} failed"),
        field=str(body.get("field") or name),
        got=body.get("got"),
        allowed=body.get("allowed"),
        hint=str(body.get("hint") or ""),
    )
    error.refused_as = str(body.get("code") or "")
    return error


@asynccontextmanager
async def open_own_sessions(evaluator: Evaluator, clock: Callable[[], datetime]) -> AsyncIterator[dict[str, Session]]:
    """Open one session on each server for a campaign's own agents, with the rules and record of any other caller."""
    workspace = evaluator.ledger.workspace
    with CallLog.open(workspace / CALLS_FOLDER, clock=clock) as calls, _open_news(workspace / NEWS_FOLDER) as news:
        served = ServedCaller.for_campaign(evaluator, calls.append, clock, news)
        try:
            async with open_sessions({name: build_server(name, served) for name in SERVERS}) as sessions:
                yield sessions
        finally:
            served.jobs.close()


@contextmanager
def _open_news(folder: Path) -> Iterator[NewsStore | None]:
    """Open the news store of a workspace; None, without creating it, where the workspace has none."""
    with ExitStack() as stack:
        yield stack.enter_context(NewsStore(folder)) if folder.is_dir() else None


@asynccontextmanager
async def open_sessions(servers: Mapping[str, MCPServer]) -> AsyncIterator[dict[str, Session]]:
    """Open one session on each server and close them all at the end.

    An error inside the context is raised unchanged; the clients' task groups would wrap it in an `ExceptionGroup`.
    """
    failed: Exception | None = None
    async with AsyncExitStack() as stack:
        clients = {name: await stack.enter_async_context(Client(server)) for name, server in servers.items()}
        try:
            yield {name: Session(client) for name, client in clients.items()}
        except Exception as error:  # noqa: BLE001 - raised again below, outside the task groups
            failed = error
    if failed is not None:
        raise failed
