"""Whether a model may be asked: closed (yes), open (it rests), half-open (one call tries whether it is back).

permit = breaker.enter()                 # None: it rests, ask another
breaker.succeed(permit)                  # or fail(permit), or leave(permit) where nothing was learned

closed --fail, as often as allowed, or at once--> open
open --rest is over (a model without an address), a look at it (one with an address), or a late answer--> half-open
half-open --the trial answers--> closed          half-open --the trial fails--> open, for twice as long

What is said of a call that was let through before the last change counts for nothing: fifty calls that one death ends are
one failure, and those that end late never close a model that came back. An answer is the one exception: it is a sign of life.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..timing import Timing

BreakerState: TypeAlias = Literal["closed", "open", "half-open"]
MAX_REST_S = 300.0


@dataclass(frozen=True)
class Permit:
    """Leave to ask once; `epoch` says between which changes of state it was given."""

    epoch: int
    trial: bool


class Breaker:
    """The state of one model.

    Parameters
    ----------
    failures : int
        Failures in a row that open it.
    rest_s : float
        Seconds of the first rest.
    timing : Timing
        Clock and chance.
    by_time : bool
        Whether the end of the rest lets a trial through; otherwise a look has to (`note_alive`).
    """

    def __init__(self, failures: int, rest_s: float, timing: Timing, *, by_time: bool) -> None:
        self._failures = failures
        self._rest_s = rest_s
        self._timing = timing
        self._by_time = by_time
        self._state: BreakerState = "closed"
        self._failed = 0
        self._openings = 0
        self._until = 0.0
        self._epoch = 0
        self._trying = False

    @property
    def state(self) -> BreakerState:
        """The state, now."""
        if self._state == "open" and self._by_time and self.rested:
            self._state = "half-open"
        return self._state

    @property
    def rested(self) -> bool:
        """Whether no rest is left."""
        return self._timing.clock() >= self._until

    def enter(self, *, force: bool = False) -> Permit | None:
        """Return leave to ask, if there is one; `force` is for a model that has no other beside it."""
        if self.state == "closed" or force:
            return Permit(self._epoch, trial=False)
        if self._state == "open" or self._trying:
            return None
        self._trying = True
        return Permit(self._epoch, trial=True)

    def succeed(self, permit: Permit) -> None:
        """Count an answer."""
        if permit.epoch != self._epoch:
            self.note_alive()
            return
        if self._state != "closed":
            self._change("closed")
            self._openings = 0
        self._failed = 0

    def fail(self, permit: Permit, *, at_once: bool = False, rest_s: float = 0.0) -> None:
        """Count a failure; `at_once` opens, for `rest_s` at least."""
        if permit.epoch != self._epoch:
            return
        self._failed += 1
        if at_once or self.state != "closed" or self._failed >= self._failures:
            self._openings += 1
            self._open(max(rest_s, min(self._rest_s * 2.0 ** min(self._openings - 1, 30), MAX_REST_S)))

    def leave(self, permit: Permit) -> None:
        """End a call that says nothing of the model."""
        if permit.epoch == self._epoch and permit.trial:
            self._trying = False

    def note_alive(self) -> None:
        """Take a sign of life: who rests may be tried."""
        if self._state == "open":
            self._state = "half-open"

    def note_gone(self) -> None:
        """Take a look that found nobody: no call is sent before another look finds it."""
        self._openings = max(self._openings, 1)
        self._open(self._rest_s)

    def _open(self, seconds: float) -> None:
        """Begin a rest."""
        self._until = self._timing.clock() + self._timing.spread(seconds)
        self._change("open")

    def _change(self, state: BreakerState) -> None:
        """Enter a state; permits of before are stale."""
        self._state = state
        self._epoch += 1
        self._failed = 0
        self._trying = False
