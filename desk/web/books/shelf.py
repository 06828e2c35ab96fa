"""The steps of books as short lines, kept between requests: a step never changes, and its record is long."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ...facts.books import StepLine

if TYPE_CHECKING:
    from ....ledger import Ledger

MAX_KEPT_BOOKS: Final = 20


@dataclass
class _KeptLines:
    """The lines of one book, the place of the last in the record, and day and time of the first and the last."""

    lines: list[StepLine] = field(default_factory=list)
    place: int = 0
    ends: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class StepShelf:
    """A cache alone: a restart of the desk loses nothing but its time. The book used last is at the end."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    kept: dict[tuple[str, str], _KeptLines] = field(default_factory=dict)

    def read(self, ledger: Ledger, book: str) -> list[StepLine]:
        """Return every step of a book; those that were read before are not read again."""
        from ....campaign import find_step_time, list_new_steps

        key = (str(ledger.workspace.resolve()), book)
        with self.lock:
            own = self.kept.pop(key, _KeptLines())
            # Another record may lie at the same place by now, or a step was deleted from it.
            if any(find_step_time(ledger, book, day) != at for day, at in own.ends):
                own = _KeptLines()
            for place, at, body in list_new_steps(ledger, book, own.place):
                own.lines.append(StepLine.of(body))
                own.place, own.ends = place, (*own.ends[:1], (body["day"], at))
            self.kept[key] = own
            while len(self.kept) > MAX_KEPT_BOOKS:
                del self.kept[next(iter(self.kept))]
            return list(own.lines)


SHELF: Final = StepShelf()
