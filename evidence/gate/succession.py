"""Successors of factors that decay: what a successor is judged on.

Redundancy keeps the library from holding one thing twice, and the gate from being asked again what it has answered: a near
copy of an accepted factor meets selection days that are known to be kind to it. So that a successor resembles what it
succeeds may be waived only if that is taken out before the look. The likeness to the one factor that is flagged does not
count; in return, selection judges what is left of the successor's ranks when those of its
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

from ...factors import Expression, parse, rank_rows
from ...ledger import Ledger
from ..newey_west import newey_west_t
from ..originality.incremental import MIN_ADDED_T, residual_ranks
from ..proposal import Claim
from ..scoring.scorer import Scorer
from ..values.computing import Computing
from ..windows import Window
from .verdict import Case

Values = NDArray[np.float32]

DECAYING_EVENT = "decaying"
"""Kind of the event that notes what a run is told of decay."""
SUCCEEDS = "succeeds"
"""Key of a hypothesis that names the factor which it is to succeed."""


def read_decaying(ledger: Ledger, run: str) -> list[dict[str, Any]]:
    """Return what a run was told as it began; nothing for a run of before there was such a note."""
    noted = ledger.events(run, DECAYING_EVENT)
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
        name = _predecessor_id(case.claim)
        if (
            case.members
            or case.expression.code
            or name not in {each["id"] for each in read_decaying(self.ledger, self.run)}
        ):
            return ""
        left = self.beyond(case.values, name, self.search)
        if left is None:
            return ""
        test = newey_west_t(self.scorer.daily_rank_ic(left, self.search), self.scorer.lag)
        return name if case.sign * test.t >= MIN_ADDED_T else ""

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
        fields = tuple(rows[0].sheet.get("fields", ())) if rows else ()
        return parse(rows[0].text, fields=fields, refuse_units=False) if rows else None


def _predecessor_id(claim: Claim) -> str:
    return str(claim.detail.get(SUCCEEDS) or "")


def _ranks(values: Values) -> NDArray[np.float64]:
    return rank_rows(np.ascontiguousarray(values)) - 0.5
