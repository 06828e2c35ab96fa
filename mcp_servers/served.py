"""What the servers of one caller stand on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from ..evidence import Evaluator
from ..market.news import Shelf
from .access import Caller
from .entry import EVERYTHING, Entry, Record
from .handles import Handles
from .jobs import Jobs

__all__ = ["PANELS", "Served"]

PANELS = "panels"
"""The folder of a workspace where panels lie that were handed over."""


@dataclass(frozen=True, eq=False)
class Served:
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
    """

    opening: Callable[[], Evaluator]
    entry: Entry
    handles: Handles
    jobs: Jobs
    news: Shelf | None = None

    @property
    def evaluator(self) -> Evaluator:
        """The caller's run: servers are built, and answer what they have, before it is open."""
        return self.opening()

    @classmethod
    def ours(
        cls, evaluator: Evaluator, record: Record, clock: Callable[[], datetime], news: Shelf | None = None
    ) -> Served:
        """Return what a campaign's own agents are served: everything, under the same rules as anybody else."""
        entry = Entry(Caller(f"run:{evaluator.run}", EVERYTHING), record)
        return cls(lambda: evaluator, entry, Handles(evaluator.ledger.workspace / PANELS, clock), Jobs(), news)
