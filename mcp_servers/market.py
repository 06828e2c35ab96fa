"""The market server: what data there is, on the search window only."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from mcp.server import MCPServer
from mcp.types import ToolAnnotations
from pydantic import Field

from ..evidence import Evaluator, tidy
from .answers import tool

READ_ONLY = ToolAnnotations(read_only_hint=True, idempotent_hint=True, destructive_hint=False, open_world_hint=False)
MOST_ROWS = 20
MOST_NAMES = 10

MEANINGS = {
    "open": "first price of the day, adjusted",
    "high": "highest price of the day, adjusted",
    "low": "lowest price of the day, adjusted",
    "close": "last price of the day, adjusted for splits and dividends",
    "close_raw": "last price of the day, as quoted",
    "volume": "shares traded in the day",
    "vwap": "average price of the day, weighted by volume",
    "returns": "close over the previous close, less one",
    "amount": "traded value of the day, in currency",
    "cap": "market capitalisation, in currency",
}


def market_server(evaluator: Evaluator) -> MCPServer:
    """Return the market server of one panel. Nothing after the search window leaves it."""
    server = MCPServer("alphaloom-market", instructions="Fields and previews of the search window.")

    @server.tool(annotations=READ_ONLY)
    @tool
    def search_fields(query: Annotated[str, Field(max_length=200)] = "") -> dict[str, Any]:
        """Return the fields and groups that factors may use, filtered by a word of their name or meaning."""
        return {"fields": _fields(evaluator, query), "groups": _groups(evaluator)}

    @server.tool(annotations=READ_ONLY)
    @tool
    def describe_universe() -> dict[str, Any]:
        """Return the size and span of the search window, and how many names are present."""
        window = evaluator.windows.search
        present = window.cut(evaluator.panel.universe).sum(axis=1)
        return {
            "window": window.record(),
            "names": evaluator.panel.names,
            "names_per_day": {
                "least": int(present.min()),
                "median": int(np.median(present)),
                "most": int(present.max()),
            },
            "horizon_days": evaluator.settings.horizon_days,
            "notes": list(evaluator.panel.notes),
        }

    @server.tool(annotations=READ_ONLY)
    @tool
    def preview_panel(
        field: Annotated[str, Field(description="a field that search_fields names")],
        rows: Annotated[int, Field(ge=1, le=MOST_ROWS, description="last days of the search window")] = 5,
    ) -> dict[str, Any]:
        """Return the last rows of a field on the search window for the first names."""
        evaluator.read(field)
        window = evaluator.windows.search
        block = window.cut(evaluator.panel.fields[field])[-rows:, :MOST_NAMES]
        dates = [str(day) for day in evaluator.panel.dates[window.stop - block.shape[0] : window.stop]]
        values = [[tidy(value) for value in row] for row in block]
        return {"field": field, "dates": dates, "symbols": list(evaluator.panel.symbols[:MOST_NAMES]), "values": values}

    return server


def _fields(evaluator: Evaluator, query: str) -> list[dict[str, str]]:
    rows = [
        {"name": name, "meaning": MEANINGS.get(name, "a column of the user's panel")} for name in evaluator.panel.fields
    ]
    word = query.strip().lower()
    return [
        row for row in sorted(rows, key=lambda row: row["name"]) if word in f"{row['name']} {row['meaning']}".lower()
    ]


def _groups(evaluator: Evaluator) -> list[dict[str, Any]]:
    return [{"name": name, "labels": list(labels)} for name, labels in sorted(evaluator.panel.group_labels.items())]
