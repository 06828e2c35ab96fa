"""What a step of a book learns of the library: it is watched on the panel before any target is computed.

The watch is that of `alphaloom library watch`, with its rules: no sealed day is read, and a day counts once. A step
reads each status as it was known at the close of its own day, so a book that is taken through many days at once has
the weights that it would have had day by day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from ..evidence import EvidenceError, EvidenceSettings
from ..ledger import Ledger, wait_while_locked
from ..library import LibraryWatch, find_known_row, list_entries
from ..market import Panel
from ..sandbox import Runner


def watch_library(
    ledger: Ledger,
    panel: Panel,
    dataset: str,
    rules: EvidenceSettings,
    runner: Runner | None,
    noted: Callable[[str], None],
) -> None:
    """Score the library on the new days of a panel and record what follows; say why where that is refused.

    A refusal ends no step: prices that were corrected are a matter of the factors' record, which a person settles by
    `alphaloom library watch --revised`. Until then the statuses on record hold.
    """
    watch = LibraryWatch(ledger, panel, dataset, rules, runner)
    try:
        readings = wait_while_locked(watch.run, "since another process watches the library")
    except EvidenceError as error:
        noted(f"The library was not watched, so its statuses are those of before: {error.message} {error.hint or ''}")
        return
    for reading in readings:
        if reading.lacking:
            noted(f"{reading.entry.factor_id} was not watched: {reading.lacking}")
        for change in reading.changes:
            if change.status != reading.entry.status:
                noted(f"{change.factor_id} is {change.status} from {change.day} on: {change.reason}")


def split_rows(ledger: Ledger, panel: Panel, rows: range) -> Iterator[Sequence[int]]:
    """Yield runs of rows within which the library's statuses do not change."""
    known = (find_known_row(entry, change, panel.dates) for entry in list_entries(ledger) for change in entry.history)
    edges = [rows.start, *sorted({row for row in known if rows.start < row < rows.stop}), rows.stop]
    for first, stop in pairwise(edges):
        yield range(first, stop)
