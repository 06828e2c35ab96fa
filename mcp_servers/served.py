"""What the servers of one caller stand on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from ..evaluation import Evaluator
from ..news import NewsStore
from ..search import SearchConstraints
from .access import Caller
from .entry import EVERY_SCOPE, CallerEntry, RecordCall
from .handles import Handles
from .jobs import Jobs

__all__ = ["PANELS_FOLDER", "ServedCaller", "VisibleColumns"]

PANELS_FOLDER = "panels"
"""The folder of a workspace where panels lie that were handed over."""


@dataclass(frozen=True)
class VisibleColumns:
    """The fields and groupings that a panel has, and the caller's limits on them."""

    fields: tuple[str, ...]
    groups: tuple[str, ...]
    mandate: SearchConstraints

    @property
    def readable(self) -> tuple[str, ...]:
        """Return the fields that a formula of the caller may name."""
        return self.mandate.names(self.fields)


@dataclass(frozen=True, eq=False)
class ServedCaller:
    """One caller, the rooms that it reaches, and what its calls leave behind.

    Attributes
    ----------
    opening : callable
        Returns its run, on data as they were known on its last day; the first who asks waits until it is open.
    entry : Entry
        Who it is, what it may do, and the record of its calls.
    handles : Handles
        Keeps what is handed over.
    jobs : Jobs
        Its long work.
    news : Shelf or None
        Texts, answered as of the end of its search window (`texts`); None: there are none.
    early : Columns or None
        What formulas may read, where that is known before the run is open; None: it is read from the panel.
    """

    opening: Callable[[], Evaluator]
    entry: CallerEntry
    handles: Handles
    jobs: Jobs
    news: NewsStore | None = None
    early: VisibleColumns | None = None

    @property
    def columns(self) -> VisibleColumns:
        """What formulas may read; a formula is checked against it without waiting for prices, where it is known."""
        if self.early is not None:
            return self.early
        panel = self.evaluator.panel
        return VisibleColumns(tuple(panel.fields), tuple(panel.groups), self.evaluator.mandate)

    @property
    def evaluator(self) -> Evaluator:
        """The caller's run: servers are built, and answer what they have, before it is open."""
        return self.opening()

    @classmethod
    def ours(
        cls, evaluator: Evaluator, record: RecordCall, clock: Callable[[], datetime], news: NewsStore | None = None
    ) -> ServedCaller:
        """Return what a campaign's own agents are served: everything, under the same rules as anybody else."""
        entry = CallerEntry(Caller(f"run:{evaluator.run}", EVERY_SCOPE), record)
        return cls(lambda: evaluator, entry, Handles(evaluator.ledger.workspace / PANELS_FOLDER, clock), Jobs(), news)
