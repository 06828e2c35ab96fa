"""Own records beside the venue's drop copy: a difference is a break, and a break halts trading."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from ...ledger import JSON
from ..orders import US_PER_SECOND, ChildOrder, ExecutionReport
from .fix_venue import FixVenue
from .journal import LineJournal
from .link import FixLink
from .reports import read_report

BreakKind = Literal["fill only at the venue", "fill only in our records", "another fill"]
COPY_GRACE_US: Final = 5 * US_PER_SECOND
"""How long after a fill its copy may come, or after the copy the fill: then it is a break."""
QUIET_SECONDS: Final = 0.2
"""At the end of a session copies count as complete if none comes for so long."""


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

    @classmethod
    def restore(cls, record: Mapping[str, Any]) -> DropCopyBreak:
        """Return the break of a record."""
        own, copy = (ExecutionReport(**side) if side else None for side in (record["own"], record["copy"]))
        return cls(record["kind"], record["order"], record["exec_id"], own, copy)

    def record(self) -> dict[str, JSON]:
        """Return the break as a JSON-able object."""
        own, copy = (side.record() if side else None for side in (self.own, self.copy))
        return {"kind": self.kind, "order": self.order, "exec_id": self.exec_id, "own": own, "copy": copy}

    @property
    def reason(self) -> str:
        """Return the reason of the halt in one line."""
        return f"drop copy: {self.kind}, order {self.order}, execution {self.exec_id}"


def reconcile_drop_copy(own: Iterable[ExecutionReport], copy: Iterable[ExecutionReport]) -> tuple[DropCopyBreak, ...]:
    """Return every difference between the fills of own records and those of a drop copy, by time and id.

    Parameters
    ----------
    own, copy
        Reports of one session; one that comes twice counts once. Reports that are no fill are left out.
    """
    ours, theirs = _collect_fills(own), _collect_fills(copy)
    breaks: list[tuple[int, DropCopyBreak]] = []
    for exec_id in ours.keys() | theirs.keys():
        mine, their = ours.get(exec_id), theirs.get(exec_id)
        fill = mine or their
        assert fill is not None
        if mine is None or their is None:
            kind: BreakKind = "fill only at the venue" if mine is None else "fill only in our records"
        elif _describe(mine) == _describe(their):
            continue
        else:
            kind = "another fill"
        breaks.append((fill.at_us, DropCopyBreak(kind, fill.order, exec_id, mine, their)))
    return tuple(one for _, one in sorted(breaks, key=lambda pair: (pair[0], pair[1].exec_id)))


def _collect_fills(reports: Iterable[ExecutionReport]) -> dict[str, ExecutionReport]:
    return {report.exec_id: report for report in reports if report.kind == "filled"}


def _describe(fill: ExecutionReport) -> tuple[str, int, int]:
    return fill.order, fill.shares, fill.price_e4


class DropCopy:
    """The copies that a venue sends of the reports of one of our sessions.

    Each is in a file before it counts as received: a later process compares those of an earlier one again.

    Parameters
    ----------
    link
        The session that gets the copies.
    path
        The file.
    sender
        SenderCompID of the session whose reports count: the venue names it in OnBehalfOfCompID.
    clock_us
        Returns the time in microseconds since 1970.
    """

    def __init__(self, link: FixLink, path: Path, sender: str, clock_us: Callable[[], int]) -> None:
        self._link, self._sender = link, sender
        self.now_us = clock_us
        self._journal = LineJournal(path)
        self.kept = [ExecutionReport(**json.loads(line)) for line in self._journal.lines]
        self._journal.lines.clear()

    def read(self, timeout_s: float) -> list[ExecutionReport]:
        """Return the copies that came, and wait for one for at most so many seconds."""
        messages = [one for one in self._link.receive(timeout_s) if one.kind == "8" and one.get(115) == self._sender]
        came = [report for report in map(read_report, messages) if report is not None]
        for report in came:
            self._journal.add(json.dumps(report.record()))
        self._journal.sync()
        self._link.confirm()
        return came

    def close(self) -> None:
        """End the session and let the file go."""
        self._link.close()
        self._journal.close()


class CopiedVenue:
    """A venue over FIX whose fills are compared with its drop copy; implements `SettlingVenue`.

    Parameters
    ----------
    venue
        The venue.
    copy
        Its drop copy.
    parents
        Ids of the parents of this session. It also answers for orders that our FIX session never sent.
    own
        Reports of this session that are on record.
    known
        Breaks of this session that are on record: people have let trading go on after them. A fill of its orders that
        only the venue had is taken in now.
    found
        Is called with new breaks: halts trading and records them.
    """

    def __init__(
        self,
        venue: FixVenue,
        copy: DropCopy,
        parents: AbstractSet[str],
        own: Iterable[ExecutionReport],
        known: Iterable[DropCopyBreak],
        found: Callable[[Sequence[DropCopyBreak]], None],
    ) -> None:
        self.name = venue.name
        self._venue, self._copy, self._parents, self._found = venue, copy, parents, found
        self._fills: dict[str, ExecutionReport] = {}
        self._copies: dict[str, ExecutionReport] = {}
        self._since: dict[str, int] = {}
        self._take(self._fills, own)
        self._take(self._copies, filter(self._is_planned, copy.kept))
        self._known = {(one.kind, one.exec_id) for one in known}
        copies = [one.copy for one in known if one.kind == "fill only at the venue" and one.copy is not None]
        self._missed = [one for one in copies if self._is_planned(one) and one.exec_id not in self._fills]
        self._agrees = True

    def send(self, orders: Sequence[ChildOrder]) -> None:
        """Send orders."""
        self._venue.send(orders)

    def has_sent(self, id: str) -> bool:
        """Return whether an order was handed to the session, by this process or an earlier one."""
        return self._venue.has_sent(id)

    def cancel(self, ids: Sequence[str]) -> None:
        """Ask for the end of orders."""
        self._venue.cancel(ids)

    def read_reports(self, timeout_s: float) -> list[ExecutionReport]:
        """Return what the venue said since the last call, after it was compared with the copies that came."""
        missed, self._missed = self._missed, []
        reports = [*missed, *self._venue.read_reports(0.0 if missed else timeout_s)]
        self._take(self._fills, reports)
        self._take(self._copies, self._copy.read(0.0))
        self._compare()
        return reports

    def settle(self) -> bool:
        """Wait for copies until all came or are too late, and return whether this process found no break."""
        came = True
        while came or self._since:
            copies = self._copy.read(QUIET_SECONDS)
            came = bool(copies)
            self._take(self._copies, copies)
            self._compare()
        return self._agrees

    def close(self) -> None:
        """End both sessions."""
        self._venue.close()
        self._copy.close()

    def _is_planned(self, report: ExecutionReport) -> bool:
        return report.order.partition("-")[0] in self._parents

    def _take(self, side: dict[str, ExecutionReport], reports: Iterable[ExecutionReport]) -> None:
        """Note fills of one side that are to be compared; an order that we never sent need not be waited for."""
        for report in reports:
            planned = self._is_planned(report)
            ours = report.kind == "filled" and (planned or not self._venue.has_sent(report.order))
            if ours and report.exec_id not in side:
                side[report.exec_id] = report
                self._since.setdefault(report.exec_id, self._copy.now_us() if planned else 0)

    def _compare(self) -> None:
        """Find the breaks among fills that both sides have, or that one side has for too long."""
        fills, copies, late_us = self._fills, self._copies, self._copy.now_us() - COPY_GRACE_US
        due = [one for one, since in self._since.items() if since <= late_us or (one in fills and one in copies)]
        for exec_id in due:
            del self._since[exec_id]
        own, copy = ([side[one] for one in due if one in side] for side in (fills, copies))
        breaks = [one for one in reconcile_drop_copy(own, copy) if (one.kind, one.exec_id) not in self._known]
        if breaks:
            self._agrees = False
            self._known.update((one.kind, one.exec_id) for one in breaks)
            self._found(breaks)
