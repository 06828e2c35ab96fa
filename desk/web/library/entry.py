"""The page of one factor of the library: its evidence by window and over its new days, and where it is used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...facts.library import describe_fully
from ...revalidation import ASKED_STATUSES, digest_entry, may_revalidate
from ..pages import PageRequest
from .drawings import draw_evidence, draw_windows, list_windows

if TYPE_CHECKING:
    from ....ledger import Ledger
    from ....library import Condition, Entry


@dataclass(frozen=True)
class EntryPage:
    """One factor of the library.

    Attributes
    ----------
    facts
        The factor as `alphaloom library show --json` gives it.
    windows
        RankIC by window in the direction held, with half the width of its 95 % interval.
    bars
        Their drawing.
    charts
        Title, drawing and note of each chart over the new days.
    can_retire, can_revalidate
        What a person may decide.
    is_due
        Whether the day has come by which a person looks at it again.
    is_scored
        Whether a campaign here has its evidence.
    shown
        Digest of the facts that a decision was made on.
    """

    facts: dict[str, Any]
    windows: list[dict[str, Any]]
    bars: str
    charts: list[tuple[str, str, str]]
    can_retire: bool
    can_revalidate: bool
    is_due: bool
    is_scored: bool
    shown: str


def load_entry(view: PageRequest) -> EntryPage:
    """Return one factor of the library or the watchlist."""
    condition = read_condition(view)
    entry, facts = condition.entry, describe_fully(view.ledger, condition)
    windows = list_windows(facts, _read_selection_t(view.ledger, entry))
    due = facts["revalidation"]["due"] if facts["revalidation"] else None
    return EntryPage(
        facts=facts,
        windows=windows,
        bars=draw_windows(windows),
        charts=draw_evidence(facts, condition.rules.retire_e),
        can_retire=entry.status in ASKED_STATUSES,
        can_revalidate=may_revalidate(entry),
        is_due=due is not None and due <= view.now.date().isoformat(),
        is_scored=bool(entry.run) and view.ledger.evaluations.get(entry.run, entry.factor_id) is not None,
        shown=digest_entry(facts),
    )


def read_condition(view: PageRequest) -> Condition:
    """Return the condition of the factor in the address, by the rules that are shipped."""
    from ....evidence import LibrarySettings
    from ....library import find_condition

    return find_condition(view.ledger, view.path["factor"], LibrarySettings())


def _read_selection_t(ledger: Ledger, entry: Entry) -> float | None:
    """Return the t of a factor on selection, where its run judged it."""
    verdict = ledger.verdicts.get(entry.run, entry.factor_id) if entry.run else None
    found = (verdict.metrics.get("selection") or {}).get("t") if verdict else None
    return float(found) if isinstance(found, int | float) else None
