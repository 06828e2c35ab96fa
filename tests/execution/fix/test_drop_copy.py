"""The drop copy beside the reports of a session: what is a break, when, and what a later process knows of it."""

from __future__ import annotations

from collections.abc import Sequence, Set as AbstractSet
from pathlib import Path

from alphaloom.execution import ChildOrder, ExecutionReport
from alphaloom.execution.fix import CopiedVenue, DropCopy, DropCopyBreak, FixMessage, FixVenue, Outgoing
from alphaloom.execution.fix.drop_copy import COPY_GRACE_US
from alphaloom.execution.fix.message import Fields, format_price

from .wire import AT, HEAD, US

SECOND = 1_000_000


class PlainLink:
    """A session in which messages are put by the test; waiting moves its clock."""

    def __init__(self) -> None:
        self.now_us, self.inbox, self.sent = US, list[FixMessage](), dict[str, FixMessage]()

    @property
    def withdrawn(self) -> AbstractSet[str]:
        return set()

    def wait_until_ready(self, timeout_s: float) -> bool:
        return True

    def send(self, messages: Sequence[Outgoing]) -> None:
        self.sent |= {one.note: FixMessage("FIX.4.4", one.kind, one.fields) for one in messages}

    def receive(self, timeout_s: float) -> Sequence[FixMessage]:
        messages, self.inbox = self.inbox, []
        self.now_us += 0 if messages else round(timeout_s * SECOND)
        return messages

    def confirm(self) -> None: ...

    def find(self, note: str) -> FixMessage | None:
        return self.sent.get(note)

    def find_number(self, number: int) -> str:
        return ""

    def close(self) -> None: ...

    def tell(self, order: str, exec_id: str, price_e4: int = 100_000, sender: str = "") -> None:
        """Put the report of a fill of 10 shares into the session; `sender` marks a copy."""
        head: Fields = (*HEAD, (115, sender)) if sender else HEAD
        fields = (
            (37, "O"), (11, order), (17, exec_id), (150, "F"), (39, "2"), (55, "AAA"), (54, "1"), (32, "10"),
            (31, format_price(price_e4)), (151, "0"), (14, "10"), (60, AT),
        )  # fmt: skip  # a table
        self.inbox.append(FixMessage("FIX.4.4", "8", (*head, *fields)))


class Trial:
    """A session of the parents p and q, with its drop copy."""

    def __init__(self, folder: Path, own: Sequence[ExecutionReport] = (), known: Sequence[DropCopyBreak] = ()) -> None:
        self.link, self.copies, self.found = PlainLink(), PlainLink(), list[DropCopyBreak]()
        self.copy = DropCopy(self.copies, folder / "copies", "DESK", lambda: self.copies.now_us)
        venue = FixVenue("v", self.link, lambda: self.copies.now_us)
        self.venue = CopiedVenue(venue, self.copy, {"p", "q"}, own, known, self.found.extend)
        self.venue.send([ChildOrder(id, id[0], "AAA", "buy", 10, "market", None, US) for id in ("p-0", "q-0", "old-0")])

    def list_breaks(self) -> list[tuple[str, str]]:
        return [(one.kind, one.order) for one in self.found]


def test_only_what_is_ours_and_differs_is_a_break(tmp_path: Path) -> None:
    one = Trial(tmp_path)
    one.link.tell("p-0", "1")
    one.copies.tell("p-0", "1", sender="DESK")
    one.copies.tell("old-0", "2", sender="DESK")  # of an earlier session, which answered for it
    one.copies.tell("x-0", "3", sender="OTHER")
    assert [report.exec_id for report in one.venue.read_reports(1)] == ["1"]
    assert one.venue.settle()
    one.link.tell("q-0", "4")
    one.copies.tell("q-0", "4", 100_001, sender="DESK")
    one.copies.tell("x-1", "5", sender="DESK")  # we never sent it, so there is nothing to wait for
    one.venue.read_reports(1)
    assert sorted(one.list_breaks()) == [("another fill", "q-0"), ("fill only at the venue", "x-1")]
    assert not one.venue.settle()
    assert len(one.found) == 2


def test_a_side_that_is_silent_is_a_break_once_it_is_late(tmp_path: Path) -> None:
    one = Trial(tmp_path)
    one.link.tell("p-0", "1")
    one.copies.tell("q-0", "2", sender="DESK")
    one.venue.read_reports(1)
    one.copies.now_us += COPY_GRACE_US - 1
    one.venue.read_reports(0)
    assert one.found == []
    assert not one.venue.settle()
    assert sorted(one.list_breaks()) == [("fill only at the venue", "q-0"), ("fill only in our records", "p-0")]
    one.copies.tell("p-0", "1", sender="DESK")  # it comes after all, and is as ours
    one.venue.read_reports(0)
    assert len(one.found) == 2


def test_a_later_process_knows_the_copies_and_takes_in_a_released_fill(tmp_path: Path) -> None:
    first = Trial(tmp_path)
    first.link.tell("p-0", "1")
    first.copies.tell("p-0", "1", sender="DESK")
    first.copies.tell("q-0", "2", sender="DESK")
    own = first.venue.read_reports(1)
    assert not first.venue.settle()
    first.venue.close()
    (found,) = first.found
    assert DropCopyBreak.restore(found.record()) == found

    halted = Trial(tmp_path, own)
    assert not halted.venue.settle()
    assert halted.found == [found]
    halted.venue.close()

    released = Trial(tmp_path, own, [found])
    assert [(report.order, report.shares) for report in released.venue.read_reports(1)] == [("q-0", 10)]
    assert released.venue.settle()
    assert released.found == []
    assert released.venue.read_reports(0) == []
    released.venue.close()
