"""The Python library of the handshake era, in an environment of its own; the argument is a file of servers."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from .steps import Answer, question_to_verdict


async def opened(stack: AsyncExitStack, told: dict[str, Any]) -> tuple[Any, str]:
    if "url" in told:
        from mcp.client.streamable_http import streamablehttp_client  # type: ignore[attr-defined]

        headers = {"Authorization": f"Bearer {told['token']}"}
        streams = await stack.enter_async_context(streamablehttp_client(told["url"], headers=headers))
    else:
        streams = await stack.enter_async_context(stdio_client(StdioServerParameters(**told)))
    session = await stack.enter_async_context(ClientSession(streams[0], streams[1]))
    greeted: Any = await session.initialize()
    await session.list_tools()
    return session, greeted.protocolVersion


async def main(file: Path) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        servers = json.loads(file.read_text())["servers"]
        sessions = {name: await opened(stack, told) for name, told in servers.items()}

        async def call(server: str, tool: str, told: dict[str, Any]) -> Answer:
            session, _ = sessions.get(server) or sessions["all"]
            answer: Any = await session.call_tool(tool, told)
            return Answer(answer.content[0].text, answer.structuredContent, answer.isError)

        return {"version": next(iter(sessions.values()))[1], **await question_to_verdict(call)}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Path(sys.argv[1])))))
