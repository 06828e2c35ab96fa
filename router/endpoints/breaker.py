"""Whether a model may be asked: closed (yes), open (it rests), half-open (one call tries whether it is back).

permit = breaker.enter()                 # None: it rests, ask another model
breaker.succeed(permit)                  # or fail(permit), or leave(permit) without an outcome

closed --the allowed number of failures, or one that opens at once--> open
open --end of the rest (without an address), a successful probe (with an address), or a late answer--> half-open
half-open --the trial answers--> closed          half-open --the trial fails--> open, for twice as long

Outcomes of calls that were admitted before the last change of state are ignored. So fifty calls that end with one crash
are one failure, and calls that end late do not open the breaker of a model that is back. The exception is an answer,
which shows that the server is alive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..timing import Timing

BreakerState: TypeAlias = Literal["closed", "open", "half-open"]
MAX_REST_S = 300.0


@dataclass(frozen=True)
class Permit:
    """Permission for one call; `epoch` numbers the changes of state before it."""

    epoch: int
    trial: bool


class Breaker:
    """The state of one model.

    Parameters
    ----------
    failures : int
        Consecutive failures that open it.
    rest_s : float
        Seconds of the first rest.
    timing : Timing
        Clock and jitter.
    by_time : bool
        Whether the end of the rest admits a trial; otherwise a probe must find the server (`note_alive`).
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
        """The current state."""
        if self._state == "open" and self._by_time and self.rested:
            self._state = "half-open"
        return self._state

    @property
    def rested(self) -> bool:
        """Whether the rest is over."""
        return self._timing.clock() >= self._until

    def enter(self, *, force: bool = False) -> Permit | None:
        """Return a permit, or None while it rests; `force` admits a call to the only model of a route."""
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
        """Count a failure; `at_once` opens the breaker, for at least `rest_s` seconds."""
        if permit.epoch != self._epoch:
            return
        self._failed += 1
        if at_once or self.state != "closed" or self._failed >= self._failures:
            self._openings += 1
            self._open(max(rest_s, min(self._rest_s * 2.0 ** min(self._openings - 1, 30), MAX_REST_S)))

    def leave(self, permit: Permit) -> None:
        """End a call without an outcome."""
        if permit.epoch == self._epoch and permit.trial:
            self._trying = False

    def note_alive(self) -> None:
        """Note that the server is alive: a resting model may be tried."""
        if self._state == "open":
            self._state = "half-open"

    def note_gone(self) -> None:
        """Note that a probe found no server: no call is sent until another probe finds it."""
        self._openings = max(self._openings, 1)
        self._open(self._rest_s)

    def _open(self, seconds: float) -> None:
        self._until = self._timing.clock() + self._timing.spread(seconds)
        self._change("open")

    def _change(self, state: BreakerState) -> None:
        """Change the state, which makes earlier permits stale."""
        self._state = state
        self._epoch += 1
        self._failed = 0
        self._trying = False
