"""The guard: a process with a FIX session of its own that cancels every open order once the halt file is there.

It shares nothing with the process that trades: no model, no record, no event loop. The venue must let the guard's
session see copies of the desk's reports, and end the orders of the desk's other sessions with one mass cancel. It asks
again, while trading is halted, for as long as orders are open or come in.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from ..fix import FixLink, FixMessage, Outgoing, format_time
from ..halt import HaltSwitch
from ..orders import US_PER_SECOND

WATCH_SECONDS: Final = 0.005
"""How long the guard waits for a message before it looks at the halt file again."""
ASK_AGAIN_US: Final = US_PER_SECOND // 2
"""A mass cancel whose answer has not come after this time is asked for again."""
EXEC_CANCELLED, EXEC_ACCEPTED, EXEC_FILLED = "4", "0", "F"
ENDING_EXECS: Final = frozenset("48C3")
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
    """

    halted_us: int
    noticed_us: int
    ended_us: int
    cancelled: int

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
        self._open: set[tuple[str, str]] = set()
        self._answer: GuardAnswer | None = None
        self._asked_us, self._last = 0, ""
        self._due: dict[str, int | None] = {}
        self._seen = 0

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
        for message in self._link.receive(WATCH_SECONDS):
            self._take(message)
        self._link.confirm()

    def _answer_halt(self) -> None:
        now_us = self._clock_us()
        if self._answer is None:
            halt = self._switch.read()
            self._answer = GuardAnswer(halt.at_us if halt else 0, now_us, 0, 0)
            self._ask(now_us)
        elif now_us - self._asked_us > ASK_AGAIN_US and (not self._answer.ended_us or self._open):
            self._ask(now_us)

    def _ask(self, now_us: int) -> None:
        """Ask the venue to cancel everything."""
        number = 1
        while self._link.find(f"halt-{now_us}-{number}") is not None:
            number += 1
        self._last, self._asked_us = f"halt-{now_us}-{number}", now_us
        self._due[self._last] = None
        fields = ((11, self._last), (530, "7"), (60, format_time(now_us)))
        self._link.send([Outgoing("q", fields, self._last)])

    def _take(self, message: FixMessage) -> None:
        if message.kind == "8":
            self._count(message)
        elif message.kind == "r" and message.get(11) in self._due and message.get(531) != "0":
            self._due[message.get(11)] = message.number(533)
        if self._answer is not None and self._due.get(self._last) is not None:
            self._end(self._answer)

    def _count(self, message: FixMessage) -> None:
        """Note from a copy which orders are open, and which were cancelled as the guard asked."""
        kind, order = message.get(150), (message.get(115), message.get(41) or message.get(11))
        if kind in ENDING_EXECS or (kind == EXEC_FILLED and not message.number(151)):
            self._open.discard(order)
        elif kind in (EXEC_ACCEPTED, EXEC_FILLED):
            self._open.add(order)
        self._seen += kind == EXEC_CANCELLED and message.get(11) in self._due

    def _end(self, answer: GuardAnswer) -> None:
        """Keep the answer once every cancel that the venue announced has come."""
        announced = sum(due or 0 for due in self._due.values())
        if self._seen >= announced and (announced > answer.cancelled or not answer.ended_us):
            self._answer = replace(answer, ended_us=self._clock_us(), cancelled=announced)
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
