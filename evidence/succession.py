"""Successors of factors that decay: what agents are told, and what a successor is judged on.

What is told is a formula, its hypothesis and the end of the quarter in which it was flagged: no figure. The flag rests on
days after the panel on which the factor was judged. They may be told of because no test reads them again: a run is told only
of flags whose days all lie outside its own selection and sealed windows, and what is put on the watchlist from then on is
watched on days after every day that the library was watched on. What a run is told is noted as it begins.

What a successor is judged on. Redundancy keeps the library from holding one thing twice, and the gate from being asked again
what it has answered: a near copy of an accepted factor meets selection days that are known to be kind to it. So that a
successor resembles what it succeeds may be waived only if that is taken out before the look. The likeness to the one factor
that is flagged does not count; in return, selection judges what is left of the successor's ranks when those of its
predecessor are taken out, day by day. What it says beyond the decayed one must carry it alone: what they have in common has
decayed. Where too little is left on search (t below 2), nothing is waived. All other factors of the library count as ever, and
a formula that nearly copies its predecessor's is not original.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..factors import Expression, parse, rank_rows
from ..ledger import Ledger
from .alignment import Claim
from .archive import Archive
from .case import Case
from .computing import Computing
from .entries import SHARED, Entry, entries
from .incremental import WEAK_T, residual_ranks
from .score import Scorer
from .significance import newey_west_t
from .windows import Window, Windows

__all__ = ["DECAYING", "SUCCEEDS", "Succession", "decaying_for", "told_as_decaying"]

Values = NDArray[np.float32]

DECAYING = "decaying"
"""Kind of the event that notes what a run is told of decay."""
MOST_TOLD = 20
"""Factors that a run is told of; a prompt must not grow with the library."""
SUCCEEDS = "succeeds"
"""Key of a hypothesis that names the factor which it is to succeed."""


def decaying_for(ledger: Ledger, windows: Windows) -> list[dict[str, str]]:
    """Return the factors that decay and may be told of in a run with these windows, by id.

    Returns
    -------
    list of dict
        ``{id, text, mechanism, hypothesis, since}``; `since` is the end of the quarter that flagged it. Nothing where the
        workspace knows the run's returns under other dates: days of the watch cannot be held against its windows then.
    """
    if ledger.known_as(windows.key(windows.search)):
        return []
    shown = [entry for entry in entries(ledger) if entry.status == "decaying" and _may_be_told(entry, ledger, windows)]
    return [_line(entry, ledger) for entry in shown[:MOST_TOLD]]


def _may_be_told(entry: Entry, ledger: Ledger, windows: Windows) -> bool:
    """Tell whether a factor is of these names, and was flagged by days that no window of the gate holds."""
    names = set(entry.terms.names) if entry.terms else set()
    own = len(names.intersection(windows.boundaries.names))
    closed = windows.selection.first_day, windows.sealed.last_day
    days = [each.day for each in ledger.kept.sightings(entry.factor_id)]
    return own >= SHARED * max(len(names), 1) and not any(closed[0] <= day <= closed[1] for day in days)


def _line(entry: Entry, ledger: Ledger) -> dict[str, str]:
    claim = Archive(ledger, ledger.run(entry.run)).claims.get(entry.factor_id)
    since = next(each.day for each in reversed(entry.history) if each.status == "decaying")
    return {
        "id": entry.factor_id,
        "text": entry.canonical,
        "mechanism": claim.mechanism if claim else "",
        "hypothesis": entry.hypothesis,
        "since": since,
    }


def told_as_decaying(ledger: Ledger, run: str) -> list[dict[str, Any]]:
    """Return what a run was told as it began; nothing for a run of before there was such a note."""
    noted = ledger.events(run, DECAYING)
    return list(noted[0].body) if noted else []


@dataclass(frozen=True)
class Succession:
    """Judges successors for one run."""

    ledger: Ledger
    run: str
    scorer: Scorer
    search: Window
    computing: Computing | None

    def predecessor(self, case: Case) -> str:
        """Return the factor that a case succeeds, where its likeness to it is waived; else nothing.

        It must be named by the hypothesis, told to this run as decaying, and leave something: both are formulas, and what
        is left of the case on search has a t of 2 in its direction.
        """
        name = _named(case.claim)
        if (
            case.members
            or case.expression.code
            or name not in {each["id"] for each in told_as_decaying(self.ledger, self.run)}
        ):
            return ""
        left = self.beyond(case.values, name, self.search)
        if left is None:
            return ""
        test = newey_west_t(self.scorer.daily_rank_ic(left, self.search), self.scorer.lag)
        return name if case.sign * test.t >= WEAK_T else ""

    def beyond(self, values: Values, name: str, window: Window) -> Values | None:
        """Return what is left of values `[T, N]` on a window when the ranks of a library factor are taken out.

        NaN outside the window; None where the factor is Python code or nothing can compute it.
        """
        other = self._expression(name)
        if other is None or other.code or self.computing is None:
            return None
        own, taken = (_ranks(window.cut(each)) for each in (values, self.computing.evaluate([other])[0]))
        out = np.full(values.shape, np.nan, dtype=np.float32)
        window.cut(out)[:] = residual_ranks(own, [taken])[0]
        return out

    def _expression(self, name: str) -> Expression | None:
        rows: Sequence[Any] = [row for row in self.ledger.library() if row.factor_id == name]
        return parse(rows[0].text, fields=tuple(rows[0].sheet.get("fields", ()))) if rows else None


def _named(claim: Claim) -> str:
    return str(claim.detail.get(SUCCEEDS) or "")


def _ranks(values: Values) -> NDArray[np.float64]:
    return rank_rows(np.ascontiguousarray(values)) - 0.5
