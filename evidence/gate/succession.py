"""Successors of decaying factors: how the gate judges a factor that replaces one of the library.

The redundancy step keeps the library from holding a factor twice, and the gate from testing it twice: a near copy of an
accepted factor meets selection days that are known to favour it. The likeness of a successor to its predecessor is
therefore waived only if the test removes the predecessor. Selection then judges the residual of the successor's ranks
on its predecessor's ranks, day by day. The residual must be significant alone, since the common part has decayed.
Nothing is waived where too little is left on search (t below 2). All other factors of the library count as usual, and a
formula that nearly copies that of its predecessor is not original.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...factors import Expression, parse
from ...ledger import Ledger
from ..newey_west import newey_west_t
from ..originality.incremental import MIN_ADDED_T, cut_ranks, residual_ranks
from ..proposal import Claim
from ..scoring.scorer import Scorer
from ..values.computing import Computing
from ..windows import Window
from .verdict import Case

Values = NDArray[np.float32]

DECAYING_EVENT = "decaying"
"""Kind of the event that records which library factors a run was told are decaying."""
SUCCEEDS = "succeeds"
"""Key of a hypothesis that names its predecessor in the library."""


def read_decaying(ledger: Ledger, run: str) -> list[dict[str, Any]]:
    """Return the decaying factors that a run was told of as it began; empty for a run older than this event."""
    events = ledger.events.of(run, DECAYING_EVENT)
    return list(events[0].body) if events else []


@dataclass(frozen=True)
class Succession:
    """Judges successors for one run."""

    ledger: Ledger
    run: str
    scorer: Scorer
    search: Window
    computing: Computing | None

    def predecessor(self, case: Case) -> str:
        """Return the id of the factor that a case succeeds if their likeness is waived, else an empty text.

        The hypothesis must name it, and the run must have been told that it decays. Both must be formulas, and the
        residual of the case on search must have a t of at least 2 in the case's direction.
        """
        name = _read_predecessor_id(case.claim)
        if (
            case.members
            or case.expression.code
            or name not in {row["id"] for row in read_decaying(self.ledger, self.run)}
        ):
            return ""
        residual = self.beyond(case.values, name, self.search)
        if residual is None:
            return ""
        test = newey_west_t(self.scorer.daily_rank_ic(residual, self.search), self.scorer.lag)
        return name if case.sign * test.t >= MIN_ADDED_T else ""

    def beyond(self, values: Values, name: str, window: Window) -> Values | None:
        """Return the residual ranks `[T, N]` of values on a window after removing those of a library factor.

        NaN outside the window; None where the factor is Python code or cannot be computed.
        """
        other = self._parse_library_factor(name)
        if other is None or other.code or self.computing is None:
            return None
        ranks, removed = (cut_ranks(frame, window) for frame in (values, self.computing.evaluate([other])[0]))
        out = np.full(values.shape, np.nan, dtype=np.float32)
        window.cut(out)[:] = residual_ranks(ranks, [removed])[0]
        return out

    def _parse_library_factor(self, name: str) -> Expression | None:
        rows: Sequence[Any] = [row for row in self.ledger.library.rows() if row.factor_id == name]
        fields = tuple(rows[0].sheet.get("fields", ())) if rows else ()
        return parse(rows[0].text, fields=fields, refuse_units=False) if rows else None


def _read_predecessor_id(claim: Claim) -> str:
    return str(claim.detail.get(SUCCEEDS) or "")
