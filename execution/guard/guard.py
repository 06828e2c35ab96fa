"""The guard: a process with a FIX session of its own that cancels every open order once the halt file is there.

It shares nothing with the process that trades: no model, no record, no event loop. The venue must let the guard's
session see copies of the desk's reports, and cancel the orders of the desk's other sessions. One mass cancel ends all;
where the venue refuses it, each order that the guard has seen gets a cancel of its own. The guard asks again, while
trading is halted, for as long as orders are open or come in.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from ..fix import UNKNOWN_ORDER, FixLink, FixMessage, Outgoing, format_time
from ..halt import HaltSwitch
from ..orders import US_PER_SECOND

WATCH_SECONDS: Final = 0.005
"""How long the guard waits for a message before it looks at the halt file again."""
ASK_AGAIN_US: Final = US_PER_SECOND // 2
"""Orders that are still open after this time, or a mass cancel without an answer, are asked for again."""
EXEC_CANCELLED, EXEC_ACCEPTED, EXEC_FILLED = "4", "0", "F"
ENDING_EXECS: Final = frozenset("48C3")
ORDER_TAGS: Final = (55, 54, 38)
"""What a cancel says of an order beside its id: symbol, side and shares."""
ANSWERS_FILE: Final = "guard-answers.jsonl"


@dataclass(frozen=True, slots=True)
class GuardAnswer:
    """What the guard did about one halt; times in microseconds since 1970.

    Attributes
    ----------
    halted_us
        When the halt was made, as its file says; 0 where it does not say.
    noticed_us
        When the guard saw the file.
    ended_us
        When the last cancel was acknowledged, or the venue said that nothing was open.
    cancelled
        Orders whose cancel was acknowledged.
    one_by_one
        Whether the venue refused the mass cancel. An order from before the guard's start may then still be open.
    """

    halted_us: int
    noticed_us: int
    ended_us: int
    cancelled: int
    one_by_one: bool = False

    @property
    def took_ms(self) -> float:
        """Return the milliseconds from the guard's notice to the last acknowledgement."""
        return (self.ended_us - self.noticed_us) / 1000


class Guard:
    """Watches a halt switch, and cancels over a session of its own.

    Parameters
    ----------
    switch
        Of the workspace.
    link
        The guard's session.
    clock_us
        Returns the time in microseconds since 1970.
    keep
        Is called with each answer, and again with a later one where more orders had to be cancelled.
    """

    def __init__(
        self, switch: HaltSwitch, link: FixLink, clock_us: Callable[[], int], keep: Callable[[GuardAnswer], None]
    ) -> None:
        self._switch, self._link, self._clock_us, self._keep = switch, link, clock_us, keep
        self._open: dict[tuple[str, str], tuple[tuple[int, str], ...]] = {}
        self._asked: set[tuple[str, str]] = set()
        self._answer: GuardAnswer | None = None
        self._asked_us, self._last = 0, ""
        self._due: dict[str, int | None] = {}
        self._seen = 0
        self._one_by_one = False

    @property
    def open_orders(self) -> int:
        """Return how many orders are open, as far as the copies say."""
        return len(self._open)

    def step(self) -> None:
        """Look at the halt file, ask for what is due, and take in what the venue says."""
        if self._switch.is_set():
            self._answer_halt()
        else:
            self._answer, self._last, self._seen = None, "", 0
            self._due.clear()
            self._asked.clear()
            self._one_by_one = False
        for message in self._link.receive(WATCH_SECONDS):
            self._take(message)
            if self._answer is not None:
                self._end(self._answer)
        self._link.confirm()

    def _answer_halt(self) -> None:
        now_us = self._clock_us()
        if self._answer is None:
            halt = self._switch.read()
            self._answer = GuardAnswer(halt.at_us if halt else 0, now_us, 0, 0)
            self._ask(now_us)
        elif now_us - self._asked_us > ASK_AGAIN_US and (self._open or not self._answer.ended_us):
            self._ask_again(now_us)

    def _ask_again(self, now_us: int) -> None:
        """Ask again where the session is up; else what was asked before leaves with the next one."""
        if self._link.wait_until_ready(0.0):
            self._ask(now_us)

    def _ask(self, now_us: int) -> None:
        """Ask the venue to cancel everything: with one message, or each order by itself."""
        self._asked_us = now_us
        ids, time = self._make_ids(now_us), (60, format_time(now_us))
        if self._one_by_one:
            new = {order: fields for order, fields in self._open.items() if order not in self._asked}
            self._asked |= new.keys()
            cancels = [
                Outgoing("F", ((115, session), (41, order), (11, id), *fields, time), id)
                for id, ((session, order), fields) in zip(ids, new.items(), strict=False)
            ]
        else:
            self._last = next(ids)
            cancels = [Outgoing("q", ((11, self._last), (530, "7"), time), self._last)]
        self._due.update((cancel.note, None) for cancel in cancels)
        self._link.send(cancels)

    def _make_ids(self, now_us: int) -> Iterator[str]:
        """Yield ids of cancels that were never used."""
        names = (f"halt-{now_us}-{number}" for number in itertools.count(1))
        return (name for name in names if self._link.find(name) is None)

    def _take(self, message: FixMessage) -> None:
        asked = message.get(11) in self._due
        if message.kind == "8":
            self._count(message)
        elif message.kind == "r" and asked and message.get(531) != "0":
            self._due[message.get(11)] = message.number(533)
        elif (message.kind == "r" and asked) or (message.kind in ("3", "j") and message.get(372) == "q"):
            self._cancel_each()
        elif message.kind == "9" and asked and (cancel := self._link.find(message.get(11))) is not None:
            order = (cancel.get(115), cancel.get(41))
            self._asked.discard(order)  # while it is open, it is asked for again
            if message.get(102) == UNKNOWN_ORDER:
                self._open.pop(order, None)

    def _cancel_each(self) -> None:
        """Go on with one cancel an order, until the halt is released: the venue refused the mass cancel."""
        if self._answer is not None and not self._one_by_one:
            self._one_by_one = True
            self._ask(self._clock_us())

    def _count(self, message: FixMessage) -> None:
        """Note from a copy which orders are open, and which were cancelled as the guard asked."""
        kind, order = message.get(150), (message.get(115), message.get(41) or message.get(11))
        if kind in ENDING_EXECS or (kind == EXEC_FILLED and not message.number(151)):
            self._open.pop(order, None)
        elif kind in (EXEC_ACCEPTED, EXEC_FILLED):
            self._open[order] = tuple((tag, message.get(tag)) for tag in ORDER_TAGS if message.get(tag))
        self._seen += kind == EXEC_CANCELLED and message.get(11) in self._due

    def _end(self, answer: GuardAnswer) -> None:
        """Keep the answer once every cancel that is due has come."""
        if self._one_by_one:
            cancelled, done = self._seen, not self._open
        else:
            cancelled = sum(due or 0 for due in self._due.values())
            done = self._seen >= cancelled and self._due.get(self._last) is not None
        if done and (cancelled > answer.cancelled or not answer.ended_us):
            self._answer = replace(answer, ended_us=self._clock_us(), cancelled=cancelled, one_by_one=self._one_by_one)
            self._keep(self._answer)


def keep_answer(workspace: Path, answer: GuardAnswer) -> None:
    """Append an answer to the file of answers, and wait until it is on the disk."""
    with open(workspace / ANSWERS_FILE, "ab") as stream:
        stream.write(json.dumps(asdict(answer), sort_keys=True).encode() + b"\n")
        stream.flush()
        os.fsync(stream.fileno())


def list_answers(workspace: Path) -> list[GuardAnswer]:
    """Return what guards did about the halts of a workspace, the oldest first."""
    path = workspace / ANSWERS_FILE
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [GuardAnswer(**json.loads(line)) for line in lines]
