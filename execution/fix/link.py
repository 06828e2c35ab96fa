"""What a venue needs of a FIX engine: ours, or QuickFIX."""

from __future__ import annotations

from collections.abc import Sequence, Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from .message import Fields, FixMessage


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to send.

    Attributes
    ----------
    kind, fields
        MsgType and body.
    note
        Its ClOrdID, under which it is kept.
    """

    kind: str
    fields: Fields
    note: str


class FixLink(Protocol):
    """A trading side's session with its connection. Calls are made from one thread.

    Attributes
    ----------
    withdrawn : set of str
        Notes of the messages that the counterparty missed and that were not sent again.
    """

    @property
    def withdrawn(self) -> AbstractSet[str]:
        """Return the notes of messages that will never be sent again."""
        ...

    def wait_until_ready(self, timeout_s: float) -> bool:
        """Connect where there is no connection, and return whether the other side has what was sent before."""
        ...

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Put messages on record, each under its note, and send them where the session is up."""
        ...

    def receive(self, timeout_s: float) -> Sequence[FixMessage]:
        """Return the messages that came, the oldest first, and wait for one for at most so many seconds."""
        ...

    def confirm(self) -> None:
        """Note that what was received is on record."""
        ...

    def find(self, note: str) -> FixMessage | None:
        """Return the message that was put on record under a note."""
        ...

    def find_number(self, number: int) -> str:
        """Return the note of the message that had a MsgSeqNum; empty where there is none."""
        ...

    def close(self) -> None:
        """Log out and close."""
        ...
