"""The page on which a person puts a paper book under a scenario; nothing is recorded."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ....ledger import AlphaloomError
from ...errors import DeskError
from ...facts.stress import compute_stress, find_recorded_settings
from ..pages import PageRequest, Problem

if TYPE_CHECKING:
    from ....campaign import Settings
    from ....ledger import Ledger

MAX_SCENARIO_CHARS: Final = 80
_ONE_PANEL = threading.Lock()
"""One market is opened at a time: each takes the memory of a panel."""


@dataclass(frozen=True)
class BookStressPage:
    """A book under the scenario of the query, as `alphaloom book stress --json` gives it.

    `facts` is None before a scenario is named, and where `problem` says why there is none.
    """

    book: str
    scenario: str
    facts: dict[str, Any] | None
    problem: Problem | None


def load_stress(view: PageRequest) -> BookStressPage:
    """Return what a book would lose, on the data of the run to which it is held, or of the newest campaign."""
    from ....campaign import find_book

    book = find_book(view.ledger, view.path["book"])[0].removeprefix("book-")
    scenario = " ".join(view.query.get("scenario", "").split())[:MAX_SCENARIO_CHARS]
    if not scenario:
        return BookStressPage(book, "", None, None)
    try:
        # A name alone: a table of moves would be a path, which no field of a page may name.
        with _ONE_PANEL:
            facts = compute_stress(view.ledger, book, (scenario, None), lambda run: _find_settings(view.ledger, run))
    except AlphaloomError as error:
        return BookStressPage(book, scenario, None, Problem(error.message, error.hint))
    return BookStressPage(book, scenario, facts, None)


def _find_settings(ledger: Ledger, run: str) -> Settings:
    found = find_recorded_settings(ledger, run)
    if found is None:
        raise DeskError(
            "No campaign of this workspace says which data is meant.",
            field="--panel",
            hint="On the command line a file can be named: --panel FILE.",
            code="no_data",
        )
    return found
