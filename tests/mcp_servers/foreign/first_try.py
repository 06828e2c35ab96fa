"""An agent of LangGraph scores a formula in one call; it runs in an environment of its own, without Alphaloom.

The argument is a file with the servers. The arguments of the call are fixed. They use only what the list of tools says,
as LangChain hands it to a model; their author knew the project, so they show that the list suffices, not how often a
model succeeds.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_mcp_adapters.client import MultiServerMCPClient  # type: ignore[import-not-found]

FIRST_TRY: dict[str, Any] = {
    "text": "-rank(ts_corr(close, volume, 10)) * rank(ts_std(returns, 60))",
    "hypothesis": {
        "mechanism": "buying pressure that ends",
        "statement": "Volatile stocks whose price rose together with volume for two weeks were pushed up by buyers and "
        "fall back.",
        "direction": 1,
        "horizon_days": 5,
        "fields": ["close", "volume", "returns"],
    },
}


async def main(file: Path) -> dict[str, Any]:
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    servers = json.loads(file.read_text())["servers"]
    client = MultiServerMCPClient({name: {"transport": "stdio", **told} for name, told in servers.items()})
    tools = await client.get_tools()
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "tools")
    call = {"name": "score_factor", "args": FIRST_TRY, "id": "1", "type": "tool_call"}
    answered = await graph.compile().ainvoke({"messages": [AIMessage(content="", tool_calls=[call])]})
    message = answered["messages"][-1]
    content = message.content if isinstance(message.content, str) else message.content[0]["text"]
    return {
        "tools": [convert_to_openai_tool(tool)["function"] for tool in tools],
        "asked": FIRST_TRY,
        "status": message.status,
        "answer": json.loads(content),
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Path(sys.argv[1])))))
