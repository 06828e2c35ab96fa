"""What a person asks of a run that another process works on: to stop, or to end its search and close.

A request is an event of the run, so that nobody has to find the process, and what was asked is on record.
"""

from __future__ import annotations

from contextlib import suppress

from .errors import LedgerConflict
from .store import Ledger

STOP_EVENT, CLOSE_EVENT = "stop", "close"
"""Kinds of the events: requests to stop are numbered, to close once is enough."""


def count_stops(ledger: Ledger, run: str) -> int:
    """Count the requests to stop that a run was ever given; a process heeds those that come after it began."""
    return len(ledger.events(run, STOP_EVENT))


def ask_to_stop(ledger: Ledger, run: str, by: str) -> None:
    """Ask the process that works on a run to halt after the step under way."""
    with suppress(LedgerConflict):  # somebody else asked at the same moment, which serves as well
        ledger.record_event(run, STOP_EVENT, f"{count_stops(ledger, run) + 1:06d}", {"by": by})


def ask_to_close(ledger: Ledger, run: str, by: str) -> None:
    """Ask that a run's search end after the step under way, and the run be closed; this holds for good."""
    with suppress(LedgerConflict):
        ledger.record_event(run, CLOSE_EVENT, "asked", {"by": by})


def is_closing(ledger: Ledger, run: str) -> bool:
    """Tell whether somebody asked that a run be closed."""
    return ledger.event(run, CLOSE_EVENT, "asked") is not None
