"""The market server: the available data, on the search window only."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from mcp.types import CallToolResult, ResourceLink
from numpy.typing import NDArray
from pydantic import Field

from ...evaluation import Evaluator
from ...evidence.scoring import round_significant
from ...market import (
    NOT_POINT_IN_TIME,
    SHARE_COUNT_FIELDS,
    UNKNOWN_GROUP,
    Panel,
    find_adjusted_fields,
    has_unsafe_volume_levels,
    reset_volume_levels,
)
from ..access import Scope
from ..answers import json_tool, make_result, paginate, result_tool
from ..arguments import READ_HINTS, Cursor, FirstDay, LastDay
from ..errors import BadArguments, McpServerError
from ..handles import HandedFile
from ..served_caller import ServedCaller
from ..server import ToolServer
from ..tool_schemas import answer, array, integer, mapping, string

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

NO_FIELD_HINT = (
    "No name or meaning holds this word. An empty query lists all; what is no field may be a formula, "
    "such as high - low."
)

FieldName = Annotated[str, Field(max_length=200, description="Field from search_fields", examples=["close"])]

MARKET_SCOPES = dict.fromkeys(
    ("search_fields", "describe_universe", "get_history", "preview_panel", "get_calendar"), Scope.DATA_READ
)
"""The scope that each tool requires."""

MARKET_ANSWERS = {
    "search_fields": answer(
        fields=array("{name, meaning}"), groups=array("Groupings, e.g. for neutralize: {name, count, labels}")
    ),
    "describe_universe": answer(
        window=mapping("Search window: {first, last, days}"),
        names=integer("Symbols"),
        horizon_days=integer("Days of the return that factors are scored on"),
        adjustment=string("Price adjustment"),
    ),
    "get_calendar": answer(days=array("{day, names: symbols present}"), next_cursor=string("Empty: last page")),
    "preview_panel": answer(
        dates=array("Rows of values"), symbols=array("Columns of values"), values=array("Numbers or null")
    ),
    "get_history": answer(
        parts=array("{uri, rows}: files for resources/read"),
        rows=integer("Days"),
        values=array("Preview"),
    ),
}
"""The answer of each tool."""

MAX_LABELS_SHOWN = 100


def build_market_server(served: ServedCaller) -> ToolServer:
    """Return the market server of one panel; it never shows data after the search window."""
    visible = VisiblePanel(served)
    server = ToolServer(
        "alphaloom-market",
        entry=served.entry,
        scopes=MARKET_SCOPES,
        reading=Scope.DATA_READ,
        answers=MARKET_ANSWERS,
        instructions="Market data of the search window (past days on which factors are scored); later days are not "
        "served. Call search_fields first: it lists the fields that formulas may read. get_history returns a whole field "
        "as Parquet. Do not download prices to test a formula: score_factor computes it.",
    )

    @server.tool(title="Search fields", annotations=READ_HINTS)
    @json_tool
    def search_fields(
        query: Annotated[
            str, Field(max_length=200, description="Word of a name or meaning, e.g. price; empty: all")
        ] = "",
    ) -> dict[str, Any]:
        """Return the fields and groupings that formulas may read; use it before you write a formula."""
        fields, groups = _list_fields(visible, query), visible.labels(query.strip().lower())
        return {"fields": fields, "groups": groups, **({} if fields or groups else {"hint": NO_FIELD_HINT})}

    @server.tool(title="Describe the market", annotations=READ_HINTS)
    @json_tool
    def describe_universe() -> dict[str, Any]:
        """Return the days, number of symbols and scored horizon of the data; use it to choose windows and horizons."""
        return _describe_universe(visible)

    @server.tool(title="Trading days", annotations=READ_HINTS)
    @json_tool
    def get_calendar(
        first_day: FirstDay = None,
        last_day: LastDay = None,
        limit: Annotated[int, Field(ge=1, le=500, description="Rows per page")] = 100,
        cursor: Cursor = "",
    ) -> dict[str, Any]:
        """Return the trading days of the search window; use it if dates matter."""
        first, stop = _find_span(visible, first_day, last_day)
        members = visible.panel.universe[first:stop].sum(axis=1)
        rows = [{"day": day, "names": int(n)} for day, n in zip(visible.days[first:stop], members, strict=True)]
        return paginate("days", rows, limit, cursor, {"first": first, "stop": stop})

    @server.tool(title="Preview a field", annotations=READ_HINTS)
    @json_tool
    def preview_panel(
        field: FieldName,
        rows: Annotated[int, Field(ge=1, le=MAX_PREVIEW_ROWS, description="Last days")] = 5,
    ) -> dict[str, Any]:
        """Return a field's last values for ten symbols; use it to see what a field looks like."""
        name, days = visible.field(field), visible.panel.days
        return _build_preview(visible, name, max(days - rows, 0), days, visible.names[:MAX_PREVIEW_NAMES])

    _add_history(server, served, visible)
    _add_resources(server, served, visible)
    return server


def _add_history(server: ToolServer, served: ServedCaller, visible: VisiblePanel) -> None:
    @server.tool(title="Get history", annotations=READ_HINTS)
    @result_tool
    def get_history(
        field: FieldName,
        first_day: FirstDay = None,
        last_day: LastDay = None,
        symbols: Annotated[
            list[Annotated[str, Field(max_length=40)]],
            Field(
                max_length=MAX_SYMBOLS_LISTED,
                description="Symbols, from preview_panel; empty: all",
                examples=[["AAPL"]],
            ),
        ] = [],  # noqa: B006 - never written to; a schema without null is easier to fill in
    ) -> CallToolResult:
        """Return links to a field's values as Parquet, valid for an hour; use it only to work on the data yourself.

        Columns: date, then one for each symbol; NaN: no value.
        """
        name, columns = visible.field(field), visible.columns(symbols)
        first, stop = _find_span(visible, first_day, last_day)
        values, _ = visible.values(name, first, stop, columns)
        days = pa.array(visible.panel.dates[first:stop].astype("datetime64[D]"))
        names = [visible.panel.symbols[place] for place in columns]
        table = pa.table([days, *_split_columns(values)], names=["date", *names])
        handed = served.handles.hand_over(table, *_spell_owner(served))
        preview = _build_preview(visible, name, max(stop - 3, first), stop, columns[:5])
        answer = {**preview, **handed.record(), "first_day": visible.days[first], "last_day": visible.days[stop - 1]}
        return make_result(answer, links=_build_links(handed, name))

    @server.resource("alphaloom://panels/{handle}/{part}", mime_type=PARQUET, name="panel part")
    def panel_part(handle: str, part: str) -> bytes:
        """Return one part of a panel that get_history handed over."""
        number = int(part) if part.isdecimal() and len(part) < 7 else -1
        return served.handles.fetch(handle, number, *_spell_owner(served))


def _add_resources(server: ToolServer, served: ServedCaller, visible: VisiblePanel) -> None:
    @server.resource("alphaloom://fields", mime_type="application/json", name="fields")
    def fields() -> str:
        """List the fields and groups that factors may use."""
        return json.dumps({"fields": _list_fields(visible, ""), "groups": visible.labels()})

    @server.resource("alphaloom://universe", mime_type="application/json", name="universe")
    def universe() -> str:
        """List the names of the search window, its span, and how prices are adjusted."""
        return json.dumps({**_describe_universe(visible), "symbols": visible.symbols[:MAX_SYMBOLS_LISTED]})


def _split_columns(values: NDArray[np.float64]) -> list[pa.Array]:
    """Return the columns of values ``[days, names]`` as slices of one copy; a copy of each takes twice as long."""
    days, names = values.shape
    flat = pa.array(np.ascontiguousarray(values.T).ravel())
    return [flat.slice(at * days, days) for at in range(names)]


def _spell_owner(served: ServedCaller) -> tuple[str, str]:
    """Return the owner of a handle as text: the caller with the data that it may read, and its last day."""
    caller = served.entry.caller
    fields = None if caller.fields is None else sorted(caller.fields)
    return json.dumps([caller.id, fields, sorted(caller.labels)]), str(served.entry.as_of)


def _build_links(handed: HandedFile, name: str) -> list[ResourceLink]:
    return [
        ResourceLink(
            type="resource_link",
            uri=handed.uri(at),
            name=f"{name}, part {at + 1} of {len(handed.parts)}",
            mime_type=PARQUET,
        )
        for at in range(len(handed.parts))
    ]


def _find_span(visible: VisiblePanel, first_day: date | None, last_day: date | None) -> tuple[int, int]:
    """Return the first row, and the row after the last, of a span of days within the search window."""
    dates = visible.panel.dates
    first = 0 if first_day is None else int(np.searchsorted(dates, np.datetime64(first_day, "D"), side="left"))
    stop = len(dates) if last_day is None else int(np.searchsorted(dates, np.datetime64(last_day, "D"), side="right"))
    if first >= stop:
        raise BadArguments(
            "No trading day of the search window lies in this span.",
            field="first_day" if first_day else "last_day",
            got=str(first_day or last_day),
            allowed=f"{dates[0]} to {dates[-1]}",
            hint="Leave both away for the whole search window.",
        )
    return first, stop


def _build_preview(visible: VisiblePanel, name: str, first: int, stop: int, columns: list[int]) -> dict[str, Any]:
    values, scale = visible.values(name, first, stop, columns)
    return {
        "field": name,
        "dates": visible.days[first:stop],
        "symbols": [visible.panel.symbols[place] for place in columns],
        "values": [[round_significant(value) for value in row] for row in values],
        "adjustment": visible.adjustment,
        **scale,
    }


def _describe_universe(visible: VisiblePanel) -> dict[str, Any]:
    present = visible.panel.universe.sum(axis=1)
    return {
        "window": visible.evaluator.windows.search.record(),
        "names": len(visible.names),
        "names_per_day": {"least": int(present.min()), "median": int(np.median(present)), "most": int(present.max())},
        "horizon_days": visible.evaluator.settings.horizon_days,
        "adjustment": visible.adjustment,
        "notes": list(visible.evaluator.panel.stamps),  # other notes may reveal days and names after the window
    }


def _list_fields(visible: VisiblePanel, query: str) -> list[dict[str, str]]:
    rows = [
        {"name": name, "meaning": MEANINGS.get(name, "a column of the user's panel")}
        for name in visible.evaluator.mandate.columns(visible.evaluator.panel)
    ]
    word = query.strip().lower()
    matches = [row for row in rows if word in f"{row['name']} {row['meaning']}".lower()]
    return sorted(matches, key=lambda row: row["name"])


@dataclass(frozen=True)
class VisiblePanel:
    """The search window of a caller's panel."""

    served: ServedCaller

    @property
    def evaluator(self) -> Evaluator:
        """The caller's run."""
        return self.served.evaluator

    @cached_property
    def panel(self) -> Panel:
        """The rows of the search window, as factors read them."""
        window = self.evaluator.windows.search
        return reset_volume_levels(self.evaluator.engine.panel.rows(window.start, window.stop))

    @cached_property
    def names(self) -> list[int]:
        """The columns of the symbols that are members on a day of the window; later members are not known yet."""
        return [int(place) for place in np.flatnonzero(self.panel.universe.any(axis=0))]

    @property
    def symbols(self) -> list[str]:
        """The symbols of `names`."""
        return [self.panel.symbols[place] for place in self.names]

    @property
    def days(self) -> list[str]:
        """The trading days of the window."""
        return [str(day) for day in self.panel.dates]

    @property
    def adjustment(self) -> str:
        """How prices are adjusted for splits and dividends: as of a day, not at all, or not point in time."""
        stamps = self.evaluator.panel.stamps
        notes = [note for note in stamps if note == NOT_POINT_IN_TIME or note.startswith("prices: ")]
        if notes:
            return notes[0].removeprefix("adjustment: ")
        return NOT_POINT_IN_TIME.removeprefix("adjustment: ") if self.panel.back_adjusted else "none"

    def field(self, text: str) -> str:
        """Return the field that a text names; the parser refuses an unknown name with the nearest one.

        Raises
        ------
        FactorError
            If the text is no formula.
        McpServerError
            If it is a formula of more than a field, or a field that this caller may not read.
        """
        root = self.evaluator.read(text).root
        allowed = self.evaluator.mandate.columns(self.evaluator.panel)
        if root.op == "field" and root.name in allowed:
            return root.name
        message = (
            "This field may not be read here." if root.op == "field" else "Only fields can be shown, not formulas."
        )
        hint = "" if root.op == "field" else "Score a formula with score_factor of the evaluation server."
        raise McpServerError(
            message, field="field", got=text[:100], allowed=sorted(allowed), hint=hint, code="unknown_field"
        )

    def columns(self, symbols: list[str]) -> list[int]:
        """Return the columns of symbols; without any, those of all symbols in the window.

        Raises
        ------
        BadArguments
            If a symbol is not in the window.
        """
        if not symbols:
            return self.names
        places = dict(zip(self.symbols, self.names, strict=True))
        if strange := [symbol for symbol in symbols if symbol not in places]:
            raise BadArguments(
                "There is no such name in the search window.",
                field="symbols",
                got=strange[0][:80],
                allowed=self.symbols[:20],
                hint="describe_universe counts the names; preview_panel and get_history list them.",
            )
        return [places[symbol] for symbol in dict.fromkeys(symbols)]

    def values(
        self, name: str, first: int, stop: int, columns: list[int]
    ) -> tuple[NDArray[np.float64], dict[str, str]]:
        """Return a field's values as factors read them, and a note on their level.

        The level of a back-adjusted price contains every later split and dividend. Here prices are adjusted forwards,
        and the level of volumes that may be in shares of a later day is hidden.

        Parameters
        ----------
        name : str
        first, stop : int
            Rows of the search window.
        columns : list of int

        Returns
        -------
        array, float64, [stop - first, columns]
            NaN where there is no value.
        dict
            The note under the key "scaled"; empty if the level is that of the file.
        """
        return self.panel.fields[name][first:stop, columns], self._describe_scale(name)

    def _describe_scale(self, name: str) -> dict[str, str]:
        """Return a note on a field whose level is not that of the file, judged by the search window only."""
        if name in SHARE_COUNT_FIELDS and has_unsafe_volume_levels(self.panel):
            return {
                "scaled": "each name from 1,000,000 on its first day; `market.volumes: quoted` shows volumes as they "
                "are"
            }
        if name.startswith("adj"):
            return {"scaled": "each name from 1 on its first day"}
        if self.panel.back_adjusted and name in find_adjusted_fields(self.panel):
            begins = "the quoted close" if "close_raw" in self.panel.fields else "100"
            return {"scaled": f"adjusted forwards: each name from {begins} on its first day"}
        return {}

    def labels(self, word: str = "") -> list[dict[str, Any]]:
        """Return the groupings with the labels of the window's symbols, filtered by a word of their name or labels."""
        panel, groupings = self.evaluator.panel, list[dict[str, Any]]()
        for name in sorted(panel.groups):
            codes = sorted({int(code) for code in panel.groups[name][self.names]} - {UNKNOWN_GROUP})
            labels = [panel.group_labels[name][code] for code in codes]
            if word in " ".join([name, *labels]).lower():
                groupings.append({"name": name, "count": len(labels), "labels": labels[:MAX_LABELS_SHOWN]})
        return groupings
