"""The servers by name, and all of them as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from mcp.server import MCPServer
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context
from mcp.types import (
    CallToolResult,
    Completion,
    CompletionArgument,
    CompletionContext,
    GetPromptResult,
    InputRequiredResult,
    Prompt,
    PromptReference,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    Tool,
)
from pydantic import AnyUrl

from ..served_caller import ServedCaller
from ..server import ToolServer
from .compliance import build_compliance_server
from .evaluation import build_evaluation_server
from .factors import build_factors_server
from .market import build_market_server
from .news import build_news_server

ALL_SERVERS = "all"
"""The name of the bundle of all servers of research."""

SERVERS: Mapping[str, Callable[[ServedCaller], ToolServer]] = {
    "evaluation": build_evaluation_server,
    "factors": build_factors_server,
    "market": build_market_server,
    "news": build_news_server,
}
"""The servers of research, by name; a campaign's own agents have a session on each."""

SUPERVISOR_SERVERS: Mapping[str, Callable[[ServedCaller], ToolServer]] = {"compliance": build_compliance_server}
"""The servers of supervisors; no bundle and no agent has them."""

SERVER_NAMES = (*sorted({**SERVERS, **SUPERVISOR_SERVERS}), ALL_SERVERS)
"""What may be served."""


def build_server(name: str, served: ServedCaller) -> MCPServer:
    """Return a caller's server by name, or the bundle of all; the name must be known."""
    if name == ALL_SERVERS:
        return Bundle([make(served) for make in SERVERS.values()])
    return {**SERVERS, **SUPERVISOR_SERVERS}[name](served)


class Bundle(MCPServer):
    """Passes every request to the server that has the name; the first server refuses unknown names for all of them."""

    def __init__(self, parts: Sequence[ToolServer]) -> None:
        instructions = "\n".join(f"{part.name}: {part.instructions}" for part in parts)
        super().__init__(
            "alphaloom",
            instructions=instructions,
            version=version("alphaloom"),
            subscriptions=False,
            log_level="WARNING",
        )
        self._parts = tuple(parts)
        for part in parts:
            part.beside = tuple(other for other in parts if other is not part)
        self.completion()(self._complete)  # type: ignore[no-untyped-call]

    async def list_tools(self) -> list[Tool]:
        """Return the tools that the caller may call."""
        return [tool for part in self._parts for tool in await part.list_tools()]

    async def list_resources(self) -> list[Resource]:
        """Return the resources that the caller may read."""
        return [resource for part in self._parts for resource in await part.list_resources()]

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """Return the resource templates that the caller may read."""
        return [template for part in self._parts for template in await part.list_resource_templates()]

    async def list_prompts(self) -> list[Prompt]:
        """Return the prompts that the caller may use."""
        return [prompt for part in self._parts for prompt in await part.list_prompts()]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool on the server that has it."""
        owners = [part for part in self._parts if await part.has_tool(name)]
        return await (owners or self._parts)[0].call_tool(name, arguments, context)

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Any, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Read a resource on the server that has it."""
        owners = [part for part in self._parts if await part.has_resource(str(uri))]
        return await (owners or self._parts)[0].read_resource(uri, context)

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """Get a prompt from the server that has it."""
        owners = [part for part in self._parts if await part.has_prompt(name)]
        return await (owners or self._parts)[0].get_prompt(name, arguments, context)

    async def _complete(
        self,
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion:
        for part in self._parts:
            if part.completes is not None and (completion := await part.completes(ref, argument, context)).values:
                return completion
        return Completion(values=[], total=0, has_more=False)
