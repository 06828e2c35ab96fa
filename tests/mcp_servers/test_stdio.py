"""A server started by the command line, as any MCP client would."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mcp import Client, StdioServerParameters

from alphaloom.market import Panel

from ..evidence.lab import market

ROOT = Path(__file__).resolve().parents[2]


def written(panel: Panel, path: Path) -> Path:
    """Write a panel as the tidy file that a user has."""
    day, name = np.nonzero(panel.universe)
    columns = {field: panel.fields[field][day, name] for field in ("open", "high", "low", "close", "volume")}
    frame = pd.DataFrame(
        {"date": panel.dates[day].astype("datetime64[s]"), "symbol": np.array(panel.symbols)[name], **columns}
    )
    frame.to_parquet(path, index=False)
    return path


def test_a_server_answers_over_standard_input_and_output(tmp_path: Path) -> None:
    panel = written(market(5, days=700, names=30), tmp_path / "prices.parquet")
    command = ["-m", "alphaloom", "serve", "mcp", "market", "--panel", str(panel), "--workspace", str(tmp_path / "w")]
    inherited = {**os.environ, "PYTHONPATH": str(ROOT / ".root")}
    server = StdioServerParameters(command=sys.executable, args=command, env=inherited, cwd=tmp_path)

    async def ask() -> tuple[list[str], dict[str, Any], dict[str, Any]]:
        async with Client(server) as client:
            tools = sorted(tool.name for tool in (await client.list_tools()).tools)
            said = await client.call_tool("preview_panel", {"field": "close", "rows": 2})
            refused = await client.call_tool("preview_panel", {"field": "close", "rows": 99})
            assert refused.is_error
            return tools, dict(said.structured_content or {}), dict(refused.structured_content or {})

    tools, said, refusal = asyncio.run(asyncio.wait_for(ask(), 60))
    assert tools == ["describe_universe", "get_calendar", "get_history", "preview_panel", "search_fields"]
    assert (said["field"], len(said["dates"])) == ("close", 2)
    assert refusal["code"] == "arguments"
