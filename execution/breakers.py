"""Circuit breakers: what is observed goes in, trips come out. Entry is automatic, exit is a person's.

Each breaker compares a whole number with its limit; a value equal to the limit passes, and one that is not known trips.
A tripped breaker stays tripped until a named person clears it with a reason; where it halts, a second one approves.
Nothing here reads a clock, a file or a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from ..ledger import JSON
from ..risk import BP, Mode
from .errors import ExecutionError
from .orders import US_PER_SECOND, refuse_unless

BreakerName = Literal[
    "drawdown", "loss", "reject_ratio", "data_staleness", "version_change", "disagreement", "cost", "injection",
    "clock", "log", "heartbeat",
]  # fmt: skip  # a table
BREAKERS: Final[tuple[str, ...]] = get_args(BreakerName)
_US_PER_MS: Final = 1_000


class BreakerLimits(BaseModel):
    """Limits in whole numbers; a value above its limit trips the breaker."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    drawdown_bp: StrictInt = Field(default=1_500, ge=0, description="fall of equity from its highest value")
    loss_bp: StrictInt = Field(default=300, ge=0, description="loss of the day, of equity at its start")
    reject_ratio_bp: StrictInt = Field(default=2_000, ge=0, description="orders that the venue rejected, of those sent")
    reject_ratio_from: StrictInt = Field(default=10, ge=1, description="orders that must be sent before it is computed")
    data_staleness: StrictInt = Field(
        default=2, ge=0, description="sessions between the newest closes and the session; without a calendar, weekdays"
    )
    version_change: StrictInt = Field(
        default=0,
        ge=0,
        description="models and prompts behind what is traded that are new since the book began, or was cleared",
    )
    disagreement: StrictInt = Field(
        default=0, ge=0, description="processes that decided otherwise than most from the same inputs"
    )
    cost_micros: StrictInt = Field(
        default=100_000_000,
        ge=0,
        description="spent on models of the workspace in a day (UTC), in millionths of a US dollar",
    )
    injection: StrictInt = Field(
        default=0, ge=0, description="news texts with orders to a model in them, since the day of the closes"
    )
    clock_ms: StrictInt = Field(
        default=1_000, ge=0, description="milliseconds by which the clock went otherwise than one that is never set"
    )
    log: StrictInt = Field(default=0, ge=0, description="records that could not be written")
    heartbeat_s: StrictInt = Field(default=15, ge=0, description="seconds since the guard, once started, gave a sign")
    halting: tuple[BreakerName, ...] = Field(
        default=("drawdown", "disagreement", "clock", "log", "heartbeat"),
        description="breakers that halt; the others let pass what reduces",
    )


@dataclass(frozen=True, slots=True)
class BreakerTrip:
    """A breaker that tripped.

    Attributes
    ----------
    breaker
        Its name.
    actual, limit
        The compared numbers; an actual value of None is not known.
    at_us
        When, microseconds since 1970 in UTC.
    mode
        What it does: "reducing" or "halted".
    about
        What tripped it: the names of models, prompts or processes; empty elsewhere.
    """

    breaker: str
    actual: int | None
    limit: int
    at_us: int
    mode: Mode
    about: str = ""

    def record(self) -> dict[str, JSON]:
        """Return the trip as a JSON-able object."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class BreakerClearing:
    """A person cleared a breaker; `second` is who approved it, empty where none had to."""

    trip: BreakerTrip
    by: str
    reason: str
    second: str
    at_us: int

    def record(self) -> dict[str, JSON]:
        """Return the clearing as a JSON-able object."""
        return {
            "trip": self.trip.record(),
            "by": self.by,
            "reason": self.reason,
            "second": self.second,
            "at_us": self.at_us,
        }


class Breakers:
    """The breakers of one book.

    Parameters
    ----------
    limits
        When they trip.
    tripped
        Those that had tripped before, from the record: they stay tripped after a restart.
    """

    def __init__(self, limits: BreakerLimits, tripped: Iterable[BreakerTrip] = ()) -> None:
        self.limits = limits
        self._trips = {trip.breaker: trip for trip in tripped}
        self._clock: tuple[int, int] | None = None

    @property
    def trips(self) -> tuple[BreakerTrip, ...]:
        """Return those that are tripped, in the order of `BREAKERS`."""
        return tuple(self._trips[name] for name in BREAKERS if name in self._trips)

    @property
    def mode(self) -> Mode:
        """Return what may pass: the strictest that a tripped breaker asks for."""
        if any(trip.mode == "halted" for trip in self._trips.values()):
            return "halted"
        return "reducing" if self._trips else "active"

    def see_equity(self, equity: int, highest: int, began: int, at_us: int) -> tuple[BreakerTrip, ...]:
        """Compare equity with its highest value and with that at the start of the day, in any one unit of money."""
        drawdown = _round_up((highest - equity) * BP, highest) if highest > 0 else None
        loss = _round_up((began - equity) * BP, began) if began > 0 else None
        return (
            *self._compare("drawdown", drawdown, self.limits.drawdown_bp, at_us),
            *self._compare("loss", loss, self.limits.loss_bp, at_us),
        )

    def see_orders(self, sent: int, rejected: int, at_us: int) -> tuple[BreakerTrip, ...]:
        """Compare the orders of the day that the venue rejected with those sent."""
        if sent < self.limits.reject_ratio_from:
            return ()
        ratio = _round_up(rejected * BP, sent)
        return self._compare("reject_ratio", ratio, self.limits.reject_ratio_bp, at_us)

    def see_data(self, missed: int, at_us: int) -> tuple[BreakerTrip, ...]:
        """Compare the sessions between the newest closes and the session."""
        return self._compare("data_staleness", missed, self.limits.data_staleness, at_us)

    def see_versions(self, unapproved: Sequence[str], at_us: int) -> tuple[BreakerTrip, ...]:
        """Compare the models and prompts behind what is traded that nobody has approved, by name."""
        return self._compare("version_change", len(unapproved), self.limits.version_change, at_us, unapproved)

    def see_decisions(self, decisions: Mapping[str, str], at_us: int) -> tuple[BreakerTrip, ...]:
        """Compare the decision ids that processes computed from the same inputs, by process.

        Those outside the largest group that agrees are counted; of two groups of a size, the one whose id is first in
        the alphabet.
        """
        ids = sorted(decisions.values())
        most = max(ids, key=ids.count) if ids else ""
        nodes = [node for node in sorted(decisions) if decisions[node] != most]
        return self._compare("disagreement", len(nodes), self.limits.disagreement, at_us, nodes)

    def see_cost(self, spent_micros: int, at_us: int) -> tuple[BreakerTrip, ...]:
        """Compare what models cost on this day, in millionths of a US dollar."""
        return self._compare("cost", spent_micros, self.limits.cost_micros, at_us)

    def see_injections(self, hits: int, at_us: int) -> tuple[BreakerTrip, ...]:
        """Compare the texts in which orders to a model were found."""
        return self._compare("injection", hits, self.limits.injection, at_us)

    def see_clock(self, steady_us: int, at_us: int) -> tuple[BreakerTrip, ...]:
        """Compare how far the clock went since the first call with one that is never set, such as time.monotonic."""
        if self._clock is None:
            self._clock = (steady_us, at_us)
            return ()
        drift = abs((at_us - self._clock[1]) - (steady_us - self._clock[0]))
        return self._compare("clock", drift, self.limits.clock_ms * _US_PER_MS, at_us)

    def see_log(self, failed: int, at_us: int) -> tuple[BreakerTrip, ...]:
        """Compare the records that could not be written."""
        return self._compare("log", failed, self.limits.log, at_us)

    def see_heartbeat(self, beat_us: int, at_us: int) -> tuple[BreakerTrip, ...]:
        """Compare the guard's last sign of life with now."""
        return self._compare("heartbeat", at_us - beat_us, self.limits.heartbeat_s * US_PER_SECOND, at_us)

    def clear(self, breaker: str, by: str, reason: str, at_us: int, second: str = "") -> BreakerClearing:
        """Let a person clear a tripped breaker; it trips again at the next observation above its limit.

        Raises
        ------
        ExecutionError
            It is not tripped, no name or reason is given, or it halts and nobody else approves.
        """
        trip = self._trips.get(breaker)
        if trip is None:
            raise ExecutionError(
                "This breaker is not tripped.",
                field="breaker",
                got=breaker,
                allowed=", ".join(one.breaker for one in self.trips) or "none is tripped",
                code="breaker",
            )
        by, second = by.strip(), second.strip()
        refuse_unless(bool(by), "by", by, "the name of a person")
        refuse_unless(bool(reason.strip()), "reason", reason, "why trading may go on")
        if trip.mode == "halted" and second.casefold() in ("", by.casefold()):
            raise ExecutionError(
                "Leaving HALTED takes a second person.",
                field="second",
                got=second,
                allowed=f"the name of somebody else than {by}",
                code="second_approver",
                exit_code=1,
            )
        del self._trips[breaker]
        if breaker == "clock":
            self._clock = None
        return BreakerClearing(trip, by, reason.strip(), second, at_us)

    def _compare(
        self, breaker: BreakerName, actual: int | None, limit: int, at_us: int, about: Sequence[str] = ()
    ) -> tuple[BreakerTrip, ...]:
        """Return a new trip if a value is above its limit, or not known; none of a breaker that is tripped."""
        if breaker in self._trips or (actual is not None and actual <= limit):
            return ()
        mode: Mode = "halted" if breaker in self.limits.halting else "reducing"
        trip = BreakerTrip(breaker, actual, limit, at_us, mode, ", ".join(about))
        self._trips[breaker] = trip
        return (trip,)


def _round_up(part: int, whole: int) -> int:
    """Return part over whole, rounded up, so that any excess over a limit counts."""
    return -(-part // whole)
