"""A panel of 500 x 500 handed over: by handle, its parts read as resources, and inline as the bare SDK would."""

from __future__ import annotations

import base64
import io
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .bare import DAYS
from .timing import Spans

FIELDS = ("close", "open", "returns", "volume")
INLINE = 3


async def handed_over(market: Any, bare: Any, panels: int) -> list[str]:
    """Return a line for each way, in milliseconds."""
    calendar = await _calendar(market)
    starts = [(field, first) for first in range(len(calendar) - DAYS + 1) for field in FIELDS]
    new, same, parts, inline = Spans(), Spans(), Spans(), Spans()
    told = await _history(market, *_asked(starts[-1], calendar))
    for start in starts[:panels]:
        told = await new.add(1, partial(_history, market, *_asked(start, calendar)))
    asked = _asked(starts[panels - 1], calendar)
    for _ in range(panels):
        again = await same.add(1, partial(_history, market, *asked))
        assert again["handle"] == told["handle"]
    files = [await parts.add(1, partial(_part, market, part["uri"])) for part in told["parts"]]
    whole = pa.concat_tables(pq.read_table(io.BytesIO(content)) for content in files)
    assert (whole.num_rows, whole.num_columns) == (told["rows"], told["columns"])
    await inline.add(INLINE, partial(bare.call_tool, "get_panel", {}))
    largest = max(map(len, files))
    every = 1e3 * sum(parts.wall)
    return [
        f"{told['rows']} days x {told['columns'] - 1} names, {told['bytes']:,} bytes as Parquet",
        f"get_history, new content: {new.text()}; wanted 20 at the median on an idle machine",
        f"get_history, the same content: {same.text()}",
        f"resources/read of a part (largest {largest:,} bytes): {parts.text()}; all of them {every:.0f}",
        f"the same panel inline, bare SDK: {inline.text()}",
    ]


async def _calendar(market: Any) -> list[str]:
    """Return the days of the search window."""
    days, cursor = list[str](), ""
    while True:
        body = (await market.call_tool("get_calendar", {"limit": 500, "cursor": cursor})).structured_content
        days += [row["day"] for row in body["days"]]
        if not (cursor := body["next_cursor"]):
            return days


def _asked(start: tuple[str, int], calendar: list[str]) -> tuple[str, str, str]:
    field, first = start
    return field, calendar[first], calendar[first + DAYS - 1]


async def _history(market: Any, field: str, first: str, last: str) -> dict[str, Any]:
    said = await market.call_tool("get_history", {"field": field, "first_day": first, "last_day": last})
    if said.is_error:
        raise RuntimeError(said.structured_content)
    told: dict[str, Any] = said.structured_content
    return told


async def _part(market: Any, uri: str) -> bytes:
    read = await market.read_resource(uri, cache_mode="bypass")
    return base64.b64decode(read.contents[0].blob)
