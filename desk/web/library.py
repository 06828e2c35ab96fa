"""The pages on the library: every factor that is known, and one with its days since, and its retirement."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..facts.library import describe_fully, list_rows, summarise_sealed
from .pages import PageRequest
from .review import read_inbox


@dataclass(frozen=True)
class LibraryPage:
    """The factors of the library and the watchlist, as `alphaloom library list --json` gives them."""

    factors: list[dict[str, Any]]
    summary: str


def load_library(view: PageRequest) -> LibraryPage:
    """Return the whole library."""
    from ...evidence import LibrarySettings
    from ...library import list_conditions

    rows = list_rows(view.ledger, list_conditions(view.ledger, LibrarySettings()))
    return LibraryPage(rows, summarise_sealed(rows) if rows else "")


@dataclass(frozen=True)
class EntryPage:
    """One factor, as `alphaloom library show --json` gives it; `is_scored`: a campaign here has its evidence."""

    facts: dict[str, Any]
    can_retire: bool
    is_scored: bool


def load_entry(view: PageRequest) -> EntryPage:
    """Return one factor of the library."""
    from ...evidence import LibrarySettings
    from ...library import PROMOTED, Condition, find_entry

    promoted = sum(row.origin == PROMOTED for row in view.ledger.library.rows())
    entry = find_entry(view.ledger, view.path["factor"])
    condition = Condition.of(entry, view.ledger, LibrarySettings(), promoted)
    facts = describe_fully(view.ledger, condition)
    is_scored = bool(entry.run) and view.ledger.evaluations.get(entry.run, entry.factor_id) is not None
    return EntryPage(facts, entry.status in ("live", "decaying"), is_scored)


def retire(view: PageRequest, form: dict[str, str]) -> str:
    """Retire a factor with a reason, and return the page of what waits next."""
    from ...evaluation import retire_factor
    from ..errors import DeskError

    reason = " ".join(form.get("reason", "").split())
    if not reason:
        raise DeskError("A retirement needs a reason.", field="reason", got="", hint="It is kept with the factor.")
    entry = retire_factor(
        view.ledger, view.path["factor"], f"{reason} ({view.person})", datetime.now(UTC).date().isoformat(), ""
    )
    return read_inbox(view.ledger, view.person).next_after(f"/library/{entry.factor_id}")
