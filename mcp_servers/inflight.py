"""Calls that are worked on: what ends the servers waits for them, so that none has its effect without its line on record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from .errors import ServersEnd

__all__ = ["InFlightCalls"]


class InFlightCalls:
    """Counts the calls of all callers."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._calls, self._ending = 0, False

    @contextmanager
    def call(self) -> Iterator[None]:
        """Count a call while it is worked on and written down.

        Raises
        ------
        ServersEnd
            No more calls are taken.
        """
        with self._changed:
            if self._ending:
                raise ServersEnd("The servers end.", field="server", hint="Start them again, and ask again.")
            self._calls += 1
        try:
            yield
        finally:
            with self._changed:
                self._calls -= 1
                self._changed.notify_all()

    def end(self, wait_s: float) -> bool:
        """Take no more calls, and wait for those under way; return whether all of them ended within so many seconds."""
        with self._changed:
            self._ending = True
            return self._changed.wait_for(lambda: self._calls == 0, wait_s)
