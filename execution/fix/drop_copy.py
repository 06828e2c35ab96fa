"""Own records beside the venue's drop copy: a difference is a break, and a break halts trading."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ...ledger import JSON
from ..orders import ExecutionReport

BreakKind = Literal["fill only at the venue", "fill only in our records", "another fill"]


@dataclass(frozen=True, slots=True)
class DropCopyBreak:
    """A difference between own records and the drop copy: trading halts until a person has explained it.

    Attributes
    ----------
    kind
        What differs.
    order, exec_id
        Of the fill.
    own, copy
        The fill as each side has it; None where it has none.
    """

    kind: BreakKind
    order: str
    exec_id: str
    own: ExecutionReport | None
    copy: ExecutionReport | None

    def record(self) -> dict[str, JSON]:
        """Return the break as a JSON-able object."""
        own, copy = (side.record() if side else None for side in (self.own, self.copy))
        return {"kind": self.kind, "order": self.order, "exec_id": self.exec_id, "own": own, "copy": copy}

    @property
    def reason(self) -> str:
        """Return the reason of the halt in one line."""
        return f"drop copy: {self.kind}, order {self.order}, execution {self.exec_id}"


def reconcile_drop_copy(
    own: Iterable[ExecutionReport], copy: Iterable[ExecutionReport], settled_us: int
) -> tuple[DropCopyBreak, ...]:
    """Return every difference between the fills of own records and those of a drop copy, by time and id.

    Parameters
    ----------
    own, copy
        All reports of one session and day; one that comes twice counts once. Reports that are no fill are left out.
    settled_us
        A fill that only one side has is a break if it was made before this time; a later one may still be on its way.
        Microseconds since 1970.
    """
    ours, theirs = _collect_fills(own), _collect_fills(copy)
    breaks: list[tuple[int, DropCopyBreak]] = []
    for exec_id in sorted(ours.keys() | theirs.keys()):
        mine, their = ours.get(exec_id), theirs.get(exec_id)
        fill = mine or their
        assert fill is not None
        if mine is None or their is None:
            late = fill.at_us >= settled_us
            kind: BreakKind = "fill only at the venue" if mine is None else "fill only in our records"
        else:
            late = _describe(mine) == _describe(their)
            kind = "another fill"
        if not late:
            breaks.append((fill.at_us, DropCopyBreak(kind, fill.order, exec_id, mine, their)))
    return tuple(one for _, one in sorted(breaks, key=lambda pair: (pair[0], pair[1].exec_id)))


def _collect_fills(reports: Iterable[ExecutionReport]) -> dict[str, ExecutionReport]:
    return {report.exec_id: report for report in reports if report.kind == "filled"}


def _describe(fill: ExecutionReport) -> tuple[str, int, int]:
    return fill.order, fill.shares, fill.price_e4
