"""The market server: what data there is, on the search window only."""

from __future__ import annotations

import json
from datetime import date
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from mcp.types import CallToolResult, ResourceLink
from numpy.typing import NDArray
from pydantic import Field

from ...evidence import round_significant
from ..access import Scope
from ..answers import json_tool, make_result, result_tool
from ..arguments import READ_HINTS, Cursor, Day
from ..errors import BadArguments
from ..handles import HandedFile
from ..paging import paginate
from ..served import ServedCaller
from ..server import ToolServer
from .visibility import VisiblePanel

MAX_PREVIEW_ROWS = 20
MAX_PREVIEW_NAMES = 10
MAX_SYMBOLS_LISTED = 2_000
PARQUET = "application/vnd.apache.parquet"

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

NO_FIELD_HINT = "No name or meaning holds this word. An empty query lists all; what is no field may be a formula, such as high - low."

FieldName = Annotated[str, Field(max_length=200, description="a field that search_fields names, such as close")]

MARKET_SCOPES = dict.fromkeys(
    ("search_fields", "describe_universe", "get_history", "preview_panel", "get_calendar"), Scope.DATA_READ
)
"""What each tool asks of a caller."""


def market_server(served: ServedCaller) -> ToolServer:
    """Return the market server of one panel. Nothing after the search window leaves it."""
    shown = VisiblePanel(served)
    server = ToolServer(
        "alphaloom-market", entry=served.entry, scopes=MARKET_SCOPES, reading=Scope.DATA_READ,
        instructions="Fields, names, days and values of the search window; nothing later can be had. Begin with search_fields. "
        "get_history hands over a whole field as Parquet; do not ask for what score_factor can compute.",
    )  # fmt: skip

    @server.tool(annotations=READ_HINTS)
    @json_tool
    def search_fields(
        query: Annotated[str, Field(max_length=200, description="a word of a name or meaning; empty for all")] = "",
    ) -> dict[str, Any]:
        """Return the fields and groups that factors may use, filtered by a word of their name or meaning."""
        fields, groups = _fields(shown, query), shown.labels(query.strip().lower())
        return {"fields": fields, "groups": groups, **({} if fields or groups else {"hint": NO_FIELD_HINT})}

    @server.tool(annotations=READ_HINTS)
    @json_tool
    def describe_universe() -> dict[str, Any]:
        """Return the size and span of the search window, how many names are present, and how prices are adjusted."""
        return _universe(shown)

    @server.tool(annotations=READ_HINTS)
    @json_tool
    def get_calendar(
        first_day: Day = None,
        last_day: Day = None,
        limit: Annotated[int, Field(ge=1, le=500, description="days of a page")] = 100,
        cursor: Cursor = "",
    ) -> dict[str, Any]:
        """Return the trading days of the search window, each with the number of names that are members then."""
        first, stop = _span(shown, first_day, last_day)
        members = shown.panel.universe[first:stop].sum(axis=1)
        rows = [{"day": day, "names": int(n)} for day, n in zip(shown.days[first:stop], members, strict=True)]
        return paginate("days", rows, limit, cursor, {"first": first, "stop": stop})

    @server.tool(annotations=READ_HINTS)
    @json_tool
    def preview_panel(
        field: FieldName,
        rows: Annotated[int, Field(ge=1, le=MAX_PREVIEW_ROWS, description="last days of the search window")] = 5,
    ) -> dict[str, Any]:
        """Return the last rows of a field on the search window for the first names, to look at; get_history gives it whole."""
        name, days = shown.field(field), shown.panel.days
        return _preview(shown, name, max(days - rows, 0), days, shown.names[:MAX_PREVIEW_NAMES])

    _add_history(server, served, shown)
    _add_resources(server, served, shown)
    return server


def _add_history(server: ToolServer, served: ServedCaller, shown: VisiblePanel) -> None:
    @server.tool(annotations=READ_HINTS)
    @result_tool
    def get_history(
        field: FieldName,
        first_day: Day = None,
        last_day: Day = None,
        symbols: Annotated[
            list[Annotated[str, Field(max_length=40)]],
            Field(
                max_length=MAX_SYMBOLS_LISTED, description="names to hand over; none given: all of the search window"
            ),
        ] = [],  # noqa: B006 - never written to; a schema without null is easier to fill in
    ) -> CallToolResult:
        """Hand over a field on the search window as Parquet: a column `date`, then one for each name, NaN where there is none.

        The answer has a handle, links to the parts (read them with resources/read) and a look at the last rows. The handle
        opens for an hour, for you alone.
        """
        name, columns = shown.field(field), shown.columns(symbols)
        first, stop = _span(shown, first_day, last_day)
        values, _ = shown.values(name, first, stop, columns)
        days = pa.array(shown.panel.dates[first:stop].astype("datetime64[D]"))
        symbols_of = [shown.panel.symbols[place] for place in columns]
        table = pa.table([days, *_columns(values)], names=["date", *symbols_of])
        handed = served.handles.hand(table, *_handle_owner(served))
        look = _preview(shown, name, max(stop - 3, first), stop, columns[:5])
        told = {**look, **handed.record(), "first_day": shown.days[first], "last_day": shown.days[stop - 1]}
        return make_result(told, links=_links(handed, name))

    @server.resource("alphaloom://panels/{handle}/{part}", mime_type=PARQUET, name="panel part")
    def panel_part(handle: str, part: str) -> bytes:
        """Return one part of a panel that get_history handed over."""
        number = int(part) if part.isdecimal() and len(part) < 7 else -1
        return served.handles.fetch(handle, number, *_handle_owner(served))


def _add_resources(server: ToolServer, served: ServedCaller, shown: VisiblePanel) -> None:
    @server.resource("alphaloom://fields", mime_type="application/json", name="fields")
    def fields() -> str:
        """List the fields and groups that factors may use."""
        return json.dumps({"fields": _fields(shown, ""), "groups": shown.labels()})

    @server.resource("alphaloom://universe", mime_type="application/json", name="universe")
    def universe() -> str:
        """List the names of the search window, its span, and how prices are adjusted."""
        return json.dumps({**_universe(shown), "symbols": shown.symbols[:MAX_SYMBOLS_LISTED]})


def _columns(values: NDArray[np.float64]) -> list[pa.Array]:
    """Return the columns of values, copied at once: one by one takes twice as long."""
    days, names = values.shape
    flat = pa.array(np.ascontiguousarray(values.T).ravel())
    return [flat.slice(at * days, days) for at in range(names)]


def _handle_owner(served: ServedCaller) -> tuple[str, str]:
    """Return to whom a panel is handed: a caller and what it may read, and its last day."""
    caller = served.entry.caller
    fields = None if caller.fields is None else sorted(caller.fields)
    return json.dumps([caller.id, fields, sorted(caller.labels)]), str(served.entry.as_of)


def _links(handed: HandedFile, name: str) -> list[ResourceLink]:
    return [
        ResourceLink(
            type="resource_link",
            uri=handed.uri(at),
            name=f"{name}, part {at + 1} of {len(handed.parts)}",
            mime_type=PARQUET,
        )
        for at in range(len(handed.parts))
    ]


def _span(shown: VisiblePanel, first_day: date | None, last_day: date | None) -> tuple[int, int]:
    """Return the first row and the one after the last of a span of days, within the search window."""
    dates = shown.panel.dates
    first = 0 if first_day is None else int(np.searchsorted(dates, np.datetime64(first_day, "D"), side="left"))
    stop = len(dates) if last_day is None else int(np.searchsorted(dates, np.datetime64(last_day, "D"), side="right"))
    if first >= stop:
        raise BadArguments(
            "No trading day of the search window lies in this span.", field="first_day" if first_day else "last_day",
            got=str(first_day or last_day), allowed=f"{dates[0]} to {dates[-1]}",
            hint="Leave both away for the whole search window.",
        )  # fmt: skip
    return first, stop


def _preview(shown: VisiblePanel, name: str, first: int, stop: int, columns: list[int]) -> dict[str, Any]:
    values, said = shown.values(name, first, stop, columns)
    return {
        "field": name,
        "dates": shown.days[first:stop],
        "symbols": [shown.panel.symbols[place] for place in columns],
        "values": [[round_significant(value) for value in row] for row in values],
        "adjustment": shown.adjustment,
        **said,
    }


def _universe(shown: VisiblePanel) -> dict[str, Any]:
    present = shown.panel.universe.sum(axis=1)
    return {
        "window": shown.evaluator.windows.search.record(),
        "names": len(shown.names),
        "names_per_day": {"least": int(present.min()), "median": int(np.median(present)), "most": int(present.max())},
        "horizon_days": shown.evaluator.settings.horizon_days,
        "adjustment": shown.adjustment,
        "notes": list(shown.evaluator.panel.stamps),  # other notes may tell of days and names after the window
    }


def _fields(shown: VisiblePanel, query: str) -> list[dict[str, str]]:
    rows = [
        {"name": name, "meaning": MEANINGS.get(name, "a column of the user's panel")}
        for name in shown.evaluator.mandate.columns(shown.evaluator.panel)
    ]
    word = query.strip().lower()
    found = [row for row in rows if word in f"{row['name']} {row['meaning']}".lower()]
    return sorted(found, key=lambda row: row["name"])
