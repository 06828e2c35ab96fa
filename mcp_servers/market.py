"""The market server: what data there is, on the search window only."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from mcp.server import MCPServer
from mcp.types import ToolAnnotations
from numpy.typing import NDArray
from pydantic import Field

from ..evidence import Evaluator, tidy
from ..market.adjusted import adjusted_fields
from ..market.panel import UNKNOWN_GROUP
from .access import Scope
from .answers import tool
from .entry import Entry
from .errors import UnknownField
from .server import ToolServer

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


SCOPES = dict.fromkeys(("search_fields", "describe_universe", "preview_panel"), Scope.DATA_READ)
"""What each tool asks of a caller."""


def market_server(evaluator: Evaluator, entry: Entry | None = None) -> MCPServer:
    """Return the market server of one panel. Nothing after the search window leaves it."""
    server = ToolServer(
        "alphaloom-market", instructions="Fields and previews of the search window.", entry=entry, scopes=SCOPES
    )

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
        told = list(evaluator.panel.stamps)  # other notes may tell of days and names after the window
        return {
            "window": window.record(),
            "names": len(_names(evaluator)),
            "names_per_day": {
                "least": int(present.min()),
                "median": int(np.median(present)),
                "most": int(present.max()),
            },
            "horizon_days": evaluator.settings.horizon_days,
            "notes": told,
        }

    @server.tool(annotations=READ_ONLY)
    @tool
    def preview_panel(
        field: Annotated[str, Field(description="a field that search_fields names")],
        rows: Annotated[int, Field(ge=1, le=MOST_ROWS, description="last days of the search window")] = 5,
    ) -> dict[str, Any]:
        """Return the last rows of a field on the search window for the first names."""
        name, window, names = _field(evaluator, field), evaluator.windows.search, _names(evaluator)[:MOST_NAMES]
        block = window.cut(evaluator.panel.fields[name])[-rows:, names]
        dates = [str(day) for day in evaluator.panel.dates[window.stop - block.shape[0] : window.stop]]
        scale, said = _as_known(evaluator, name)
        values = [[tidy(value) for value in row] for row in block * scale[names]]
        symbols = [evaluator.panel.symbols[place] for place in names]
        return {"field": name, "dates": dates, "symbols": symbols, "values": values, **said}

    return server


def _as_known(evaluator: Evaluator, name: str) -> tuple[NDArray[np.float64], dict[str, str]]:
    """Return what turns a field `[T, N]` into levels as they were known when the search window ended, and what to say.

    Adjusted backwards, the level of a price is the quoted one times every later split and dividend. Scaled to the quoted
    close of the last search day, or to 100 where none is there, it tells of none that came after.
    """
    panel, window = evaluator.panel, evaluator.windows.search
    known = panel.rows(window.start, window.stop)
    own = name.startswith("adj")
    if not panel.back_adjusted or not (own or name in adjusted_fields(known)):
        return np.ones(panel.names), {}
    last = _last(known.fields[name] if own else known.fields["close"])
    quoted = known.fields.get("close_raw")
    base = np.ones(panel.names) if own else _last(quoted) if quoted is not None else np.full(panel.names, 100.0)
    to = "1" if own else "the quoted close" if quoted is not None else "100"
    return base / last, {"scaled": f"each name to {to} at the end of the search window"}


def _last(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the last known value of each name `[N]`, NaN without any."""
    seen = ~np.isnan(values)
    row = values.shape[0] - 1 - seen[::-1].argmax(axis=0)
    return np.where(seen.any(axis=0), values[row, np.arange(values.shape[1])], np.nan).astype(np.float64)


def _names(evaluator: Evaluator) -> list[int]:
    """Return the columns of the names that are members on a day of the search window; later ones are not known yet."""
    seen = evaluator.windows.search.cut(evaluator.panel.universe).any(axis=0)
    return [int(place) for place in np.flatnonzero(seen)]


def _field(evaluator: Evaluator, text: str) -> str:
    """Return the field that a text names; the parser refuses an unknown name, and says which is nearest."""
    root = evaluator.read(text).root
    if root.op == "field" and root.name in evaluator.panel.fields:
        return root.name
    raise UnknownField(
        "Only fields can be previewed, not formulas.", field="field", got=text[:100],
        allowed=sorted(evaluator.panel.fields), hint="Score a formula with score_factor of the evaluation server.",
    )  # fmt: skip


def _fields(evaluator: Evaluator, query: str) -> list[dict[str, str]]:
    rows = [
        {"name": name, "meaning": MEANINGS.get(name, "a column of the user's panel")}
        for name in evaluator.mandate.columns(evaluator.panel)
    ]
    word = query.strip().lower()
    return [
        row for row in sorted(rows, key=lambda row: row["name"]) if word in f"{row['name']} {row['meaning']}".lower()
    ]


def _groups(evaluator: Evaluator) -> list[dict[str, Any]]:
    """Return the groupings with the labels that a name of the search window bears."""
    panel, names = evaluator.panel, _names(evaluator)
    seen = {
        name: sorted({int(code) for code in codes[names]} - {UNKNOWN_GROUP}) for name, codes in panel.groups.items()
    }
    return [{"name": name, "labels": [panel.group_labels[name][code] for code in seen[name]]} for name in sorted(seen)]
