"""Rows that are missing and times that go back: traces of an edit that did not renumber the rest.

Every table numbers its rows without gaps. Who removes the last row of a table, or renumbers all others, leaves no trace here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from .database.protocol import Database
from .database.schema import REGISTERS, TABLE_KEYS
from .records import Run

CLOCK_SLACK = timedelta(days=1)
"""How far a clock may be set back: machines that share a database have clocks of their own."""
_NUMBER_COLUMNS = {name: keys[0][0] for name, keys in TABLE_KEYS.items() if keys[0][0] in ("seq", "id")}
_TIMED_TABLES = ("runs", "statuses", "trials", "openings", "verdicts", "artefacts", "library", "standings")


@dataclass(frozen=True)
class Break:
    """One place where a table of the ledger does not go on as it was written."""

    table: str
    recorded: str
    said: str


def breaks(database: Database, run: Run) -> Iterator[Break]:
    """Yield the gaps in every table, and the times that go back or lie before the run of their row began."""
    for table, column in _NUMBER_COLUMNS.items():
        yield from _gaps(database, table, column)
    for table in _TIMED_TABLES:
        yield from _find_backward_times(database, table)
    began = _parse_time(run.started_at)
    for table in ("trials", "openings", "statuses", *(name for name, key in REGISTERS.items() if key[0] == "run")):
        for (at,) in database.rows(f"SELECT min(at) FROM {table} WHERE run = ?", (run.id,)):
            if at and began and _is_before(at, began):
                yield Break(table, at, f"the run began at {run.started_at}")
    for (at,) in database.rows("SELECT at FROM runs WHERE id = ?", (run.id,)):
        if began and _is_before(at, began):
            yield Break("runs", at, f"the run began at {run.started_at}")


def _gaps(database: Database, table: str, column: str) -> Iterator[Break]:
    ((count, last),) = database.rows(f"SELECT count(*), coalesce(max({column}), 0) FROM {table}")
    if count != last:
        yield Break(table, f"{count} rows, numbered up to {last}", f"{last - count} are gone")


def _find_backward_times(database: Database, table: str) -> Iterator[Break]:
    latest = None
    for number, at in database.rows(
        f"SELECT {_NUMBER_COLUMNS[table]}, at FROM {table} ORDER BY {_NUMBER_COLUMNS[table]}"
    ):
        if latest and _is_before(at, latest):
            yield Break(table, f"row {number} at {at}", f"an earlier row was written at {latest.isoformat()}")
            return
        latest = max(filter(None, (latest, _parse_time(at))), default=None)


def _is_before(at: str, other: datetime) -> bool:
    """Tell whether a time lies so far before another that no clock was merely set right."""
    time = _parse_time(at)
    return time is None or time < other - CLOCK_SLACK


def _parse_time(at: str) -> datetime | None:
    """Return a time in UTC; None for what is no time."""
    try:
        time = datetime.fromisoformat(at)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
