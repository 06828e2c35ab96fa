"""One worker at a time: a lease in the store that lives as long as its worker, and little longer."""

from __future__ import annotations

import threading
import uuid
from contextlib import suppress

from ...errors import StoreUnusable
from .store import ByteStore

LEASE_SECONDS = 20.0
"""A worker that dies is replaced after so long."""


class Lease:
    """The right to make what belongs under a key, prolonged by a thread of its own until it is given back.

    A lease spares work and guards nothing: whoever writes first is kept, so a worker that lost its lease does no harm.
    """

    def __init__(self, store: ByteStore, key: str, seconds: float = LEASE_SECONDS) -> None:
        self._store, self._key, self._seconds = store, key, seconds
        self._owner = uuid.uuid4().hex
        self._ended = threading.Event()
        self._pulse: threading.Thread | None = None

    def take(self) -> bool:
        """Tell whether the lease is ours now; then it must be given back."""
        if not self._store.lease(self._key, self._owner, self._seconds):
            return False
        self._pulse = threading.Thread(target=self._beat, name="context lease", daemon=True)
        self._pulse.start()
        return True

    def give(self) -> None:
        """Give it back, if it is ours."""
        if self._pulse is not None:
            self._ended.set()
            self._pulse.join()
            with suppress(StoreUnusable):  # it runs out by itself
                self._store.release(self._key, self._owner)

    def _beat(self) -> None:
        while not self._ended.wait(self._seconds / 3):
            try:
                if not self._store.lease(self._key, self._owner, self._seconds):
                    return
            except StoreUnusable:  # the worker meets it too when it writes
                return
