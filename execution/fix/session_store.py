"""The memory of a FIX session: both sequence numbers and what was sent, on the disk before it leaves the process."""

from __future__ import annotations

from pathlib import Path

from .errors import FixError
from .journal import LineJournal

SENT, NEXT_OUT, NEXT_IN, WITHDRAWN, RESET = "SOIWX"


class SessionStore:
    """The numbers and the sent messages of one session, in a `LineJournal`.

    Attributes
    ----------
    next_out, next_in
        Number of the next message to send, and of the next one expected.
    notes : dict of str to int
        Number of each sent message that has a note: the application's own id of it, such as the ClOrdID. A note
        outlives a reset, so an application knows after a crash what it has handed over.
    withdrawn : set of str
        Notes of messages that were asked for again and not sent again: the other side got a gap in their place.
    resets : int
        How often both numbers began anew.
    """

    def __init__(self, path: Path) -> None:
        self._journal = LineJournal(path)
        self.next_out = self.next_in = 1
        self.notes: dict[str, int] = {}
        self.withdrawn: set[str] = set()
        self.resets = 0
        self._sent: dict[int, tuple[str, str]] = {}
        self._binding = False
        try:
            for line in self._journal.lines:
                self._apply(line)
        except ValueError:
            self._journal.close()
            raise FixError(
                "A file of a FIX session has a line that is none.", field=str(path), code="fix_store"
            ) from None
        self._journal.lines.clear()

    def _apply(self, line: str) -> None:
        kind, _, rest = line.partition(" ")
        if kind == SENT:
            number, note, text = rest.split(" ", 2)
            self.next_out = int(number) + 1
            self._sent[int(number)] = (note, text)
            if note:
                self.notes[note] = int(number)
        elif kind == NEXT_OUT:
            self.next_out = int(rest)
        elif kind == NEXT_IN:
            self.next_in = int(rest)
        elif kind == WITHDRAWN:
            self.withdrawn.add(rest)
        elif kind == RESET:
            self.next_out = self.next_in = 1
            self.resets += 1
            self._sent.clear()
        else:
            raise ValueError(kind)

    def _write(self, line: str) -> None:
        self._journal.add(line)
        self._apply(line)
        self._binding = True

    def add_sent(self, number: int, note: str, text: str) -> None:
        """Keep an application message under its number; `note` has no blank."""
        self._write(f"{SENT} {number} {note} {text}")

    def set_next_out(self, number: int) -> None:
        """Set the number of the next message to send: a session message takes one and is not kept."""
        self._write(f"{NEXT_OUT} {number}")

    def set_next_in(self, number: int) -> None:
        """Set the number of the next expected message.

        `sync` does not wait for the disk on its account alone: after a power cut a message then comes again.
        """
        if number != self.next_in:
            line = f"{NEXT_IN} {number}"
            self._journal.add(line)
            self._apply(line)

    def withdraw(self, note: str) -> None:
        """Keep that a message will never be sent again."""
        if note not in self.withdrawn:
            self._write(f"{WITHDRAWN} {note}")

    def reset(self) -> None:
        """Begin with 1 on both sides; notes stay."""
        self._write(RESET)

    def read_sent(self, number: int) -> tuple[str, str] | None:
        """Return note and text of the application message with a number; None where it was a session message."""
        return self._sent.get(number)

    def write(self) -> None:
        """Hand all of it to the system, without a wait for the disk."""
        self._journal.write()

    def sync(self) -> None:
        """Hand all of it to the system, and wait until what was sent is on the disk."""
        if self._binding:
            self._journal.sync()
            self._binding = False
        else:
            self._journal.write()

    def close(self) -> None:
        """Let the file go."""
        self._journal.close()
