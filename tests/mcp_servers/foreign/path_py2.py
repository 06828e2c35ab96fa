"""The Python library of both eras, as a client. Argument: a file that says where servers are, and the mode."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from .steps import Answer, question_to_verdict


async def opened(stack: AsyncExitStack, told: dict[str, Any], mode: Any) -> Client:
    if "url" not in told:
        return await stack.enter_async_context(Client(StdioServerParameters(**told), mode=mode))
    headers = {"Authorization": f"Bearer {told['token']}"}
    http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=60))
    return await stack.enter_async_context(Client(streamable_http_client(told["url"], http_client=http), mode=mode))


async def main(file: Path) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        asked = json.loads(file.read_text())
        clients = {name: await opened(stack, told, asked["mode"]) for name, told in asked["servers"].items()}
        for client in clients.values():
            await client.list_tools()

        async def call(server: str, tool: str, told: dict[str, Any]) -> Answer:
            answer = await (clients.get(server) or clients["all"]).call_tool(tool, told)
            assert isinstance(answer.content[0], TextContent)
            return Answer(answer.content[0].text, answer.structured_content or {}, bool(answer.is_error))

        return {"version": next(iter(clients.values())).protocol_version, **await question_to_verdict(call)}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Path(sys.argv[1])))))
