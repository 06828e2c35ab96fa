"""The list of the library and the watchlist, with the evidence of each factor over its new days."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ...facts.library import list_rows, summarise_sealed
from ..campaigns import find_page
from ..pages import PageRequest
from .drawings import draw_evidence_spark

if TYPE_CHECKING:
    from ....ledger import Ledger

ENTRIES_A_PAGE: Final = 50
MAX_CHANGES_SHOWN: Final = 15


@dataclass(frozen=True)
class StatusLine:
    """A change of a status; `text` is the factor's formula."""

    day: str
    factor_id: str
    text: str
    status: str
    by: str
    reason: str


@dataclass(frozen=True)
class LibraryPage:
    """One page of the library.

    Attributes
    ----------
    factors
        Rows as `alphaloom library list --json` gives them.
    summary
        What the sealed days say of the whole list.
    sparks
        For each row its evidence over the ends of quarters, with the limit: of the watchlist what proves it, of the
        library what retires it. Empty before the first whole quarter.
    statuses
        How many entries have each status.
    chosen
        The status that was asked for; empty for all.
    changes
        The newest changes of statuses.
    """

    factors: list[dict[str, Any]]
    summary: str
    sparks: list[str]
    statuses: dict[str, int]
    chosen: str
    total: int
    number: int
    pages: int
    changes: list[StatusLine]


def load_library(view: PageRequest) -> LibraryPage:
    """Return the entries that have the status of the query."""
    from ....evidence import LibrarySettings
    from ....library import list_conditions

    conditions = list_conditions(view.ledger, LibrarySettings())
    chosen = view.query.get("status", "")
    statuses = Counter(condition.entry.status for condition in conditions)
    found = [one for one in conditions if chosen in ("", one.entry.status)]
    number, pages = find_page(view, len(found), ENTRIES_A_PAGE)
    start = (number - 1) * ENTRIES_A_PAGE
    rows = list_rows(view.ledger, found)
    return LibraryPage(
        factors=rows[start : start + ENTRIES_A_PAGE],
        summary=summarise_sealed(rows) if rows else "",
        sparks=[draw_evidence_spark(one) for one in found[start : start + ENTRIES_A_PAGE]],
        statuses=dict(sorted(statuses.items())),
        chosen=chosen if chosen in statuses else "",
        total=len(conditions),
        number=number,
        pages=pages,
        changes=_list_changes(view.ledger, {one.entry.factor_id: one.entry.canonical for one in conditions}),
    )


def _list_changes(ledger: Ledger, texts: dict[str, str]) -> list[StatusLine]:
    newest = sorted(ledger.library.standings(), key=lambda change: change.day, reverse=True)
    known = (one for one in newest if one.factor_id in texts and one.key != "watched")
    return [
        StatusLine(one.day, one.factor_id, texts[one.factor_id], one.status, one.by, one.reason)
        for one in islice(known, MAX_CHANGES_SHOWN)
    ]
