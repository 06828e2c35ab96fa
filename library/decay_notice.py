"""Which factors of the library decay, as a run may be told of them.

What is told is a formula, its hypothesis and the end of the quarter in which it was flagged: no figure. The flag rests on
days after the panel on which the factor was judged. They may be told of because no test reads them again: a run is told only
of flags whose days all lie outside its own selection and sealed windows, and what is put on the watchlist from then on is
watched on days after every day that the library was watched on. What a run is told is noted as it begins.
"""

from __future__ import annotations

from ..evidence import RunArchive, Windows
from ..ledger import Ledger
from .entries import MIN_PANEL_NAME_SHARE, Entry, list_entries

__all__ = ["list_decaying"]

MAX_FACTORS_TOLD = 20
"""Factors that a run is told of; a prompt must not grow with the library."""


def list_decaying(ledger: Ledger, windows: Windows) -> list[dict[str, str]]:
    """Return the factors that decay and may be told of in a run with these windows, by id.

    Returns
    -------
    list of dict
        ``{id, text, mechanism, hypothesis, since}``; `since` is the end of the quarter that flagged it. Nothing where the
        workspace knows the run's returns under other dates: days of the watch cannot be held against its windows then.
    """
    if ledger.known_as(windows.key(windows.search)):
        return []
    shown = [
        entry for entry in list_entries(ledger) if entry.status == "decaying" and _may_be_told(entry, ledger, windows)
    ]
    return [_line(entry, ledger) for entry in shown[:MAX_FACTORS_TOLD]]


def _may_be_told(entry: Entry, ledger: Ledger, windows: Windows) -> bool:
    """Tell whether a factor is of these names, and was flagged by days that no window of the gate holds."""
    names = set(entry.terms.names) if entry.terms else set()
    own = len(names.intersection(windows.boundaries.names))
    closed = windows.selection.first_day, windows.sealed.last_day
    days = [each.day for each in ledger.kept.sightings(entry.factor_id)]
    return own >= MIN_PANEL_NAME_SHARE * max(len(names), 1) and not any(closed[0] <= day <= closed[1] for day in days)


def _line(entry: Entry, ledger: Ledger) -> dict[str, str]:
    claim = RunArchive(ledger, ledger.run(entry.run)).claims.get(entry.factor_id)
    since = next(each.day for each in reversed(entry.history) if each.status == "decaying")
    return {
        "id": entry.factor_id,
        "text": entry.canonical,
        "mechanism": claim.mechanism if claim else "",
        "hypothesis": entry.hypothesis,
        "since": since,
    }
