"""Hard caps: money spent, worst cases of the calls under way, and whether one more call fits.

The ledger is the authority for all processes. The caps of a run are its own; those of a day and of a tenant hold over
all runs of the ledger. Each process applies the caps of its own settings.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal, TypeVar
from weakref import WeakKeyDictionary

from ...ledger import Cap, CapReached, CapScope, Event, Hold, Ledger, ModelCall, Wish, picos
from ...ledger.database import Wait
from ..config import ModelBudget
from ..errors import BudgetEnded

CAP_POLL_SECONDS = 0.1
"""Poll interval for calls of other processes; calls of this process wake the waiting ones."""

T = TypeVar("T")


@dataclass(frozen=True)
class Amount:
    """Tokens and US dollars of a call."""

    tokens: int = 0
    usd: float = 0.0


@dataclass
class Reservation:
    """The amount reserved for one call while it is under way."""

    hold: Hold


@dataclass
class _Loop:
    """The lock and event of one event loop: a router may outlive the loop, they may not."""

    queue: asyncio.Lock = field(default_factory=asyncio.Lock)
    settled: asyncio.Event = field(default_factory=asyncio.Event)


class RunAccount:
    """The budget of one run.

    Parameters
    ----------
    ledger : Ledger
        Has the spending of all recorded calls, and the reservations of those under way.
    budget : ModelBudget
        The caps.
    run : str
        The run that pays.
    """

    def __init__(self, ledger: Ledger, budget: ModelBudget, run: str) -> None:
        self._ledger, self._budget, self._run = ledger, budget, run
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = WeakKeyDictionary()

    @asynccontextmanager
    async def reserve(
        self, key: str, worst: Amount, seconds: float, tenant: str = ""
    ) -> AsyncIterator[Reservation | None]:
        """Reserve the worst case of a call while it is under way; None where another process got its reply meanwhile.

        A call that fits only after calls under way settle below their worst case waits for them, and later calls queue
        behind it. So the budget ends at the same call as with one call at a time. `seconds` is the maximum duration of
        the call.

        Raises
        ------
        BudgetEnded
            If the call could exceed a cap.
        """
        wish = Wish(self._run, key, tenant, worst.tokens, worst.usd)
        caps = [*self._list_run_caps(), *self._list_shared_caps(tenant)]
        hold = await self._await_grant(lambda: self._ledger.holds.hold(wish, caps, seconds), tenant)
        if not isinstance(hold, Hold):
            yield None
            return
        reservation = Reservation(hold)
        try:
            yield reservation
        finally:
            self._ledger.holds.release(reservation.hold)
            self._wake_waiting()

    def covers(self, reservation: Reservation, worst: Amount) -> bool:
        """Change the reserved amount of a call; False, without a change, where the new amount does not fit now.

        The amount is the worst case of the model that is asked, plus the earlier attempts that may be charged. If the
        process is killed, this amount stays counted.
        """
        hold = reservation.hold
        if (hold.tokens, hold.picos) == (worst.tokens, picos(worst.usd)):
            return True
        change = self._ledger.holds.change(
            hold, worst.tokens, worst.usd, [*self._list_run_caps(), *self._list_shared_caps(hold.tenant)]
        )
        if isinstance(change, Hold):
            reservation.hold = change
            self._wake_waiting()
        return isinstance(change, Hold)

    def settle(self, reservation: Reservation, call: ModelCall, note: Event) -> None:
        """Record the outcome of a call, with a note, and release its reservation."""
        self._ledger.holds.settle(reservation.hold, call, note)

    async def enter(self, call: ModelCall, note: Event) -> None:
        """Record a reply that another run paid for, at its price.

        Raises
        ------
        BudgetEnded
            If it exceeds a cap of the run. Nothing is paid here, so no other cap applies.
        """
        await self._await_grant(lambda: self._ledger.holds.enter(call, note, self._list_run_caps()), call.tenant)

    async def _await_grant(self, ask: Callable[[], T | CapReached | Literal["busy"]], tenant: str) -> T:
        """Retry until there is room; waiting calls are served in order."""
        loop, elsewhere = self._get_loop(), Wait()
        while True:
            async with loop.queue:
                grant = await self._await_room(ask, tenant, loop)
            if grant != "busy":
                return grant
            elsewhere.note("since another run is asking a model the same")
            await self._wait(loop)

    async def _await_room(
        self, ask: Callable[[], T | CapReached | Literal["busy"]], tenant: str, loop: _Loop
    ) -> T | Literal["busy"]:
        while isinstance(grant := ask(), CapReached):
            if not _may_fit(grant):
                raise self._explain_cap(grant, tenant)
            await self._wait(loop)
        return grant

    async def _wait(self, loop: _Loop) -> None:
        """Wait until a call of this process ends, at most one poll interval; skip it if a dead call's hold lapsed."""
        if not self._ledger.holds.lapse(self._run):
            with suppress(TimeoutError):
                await asyncio.wait_for(loop.settled.wait(), CAP_POLL_SECONDS)

    def _wake_waiting(self) -> None:
        loop = self._get_loop()
        loop.settled.set()
        loop.settled = asyncio.Event()

    def _get_loop(self) -> _Loop:
        return self._loops.setdefault(asyncio.get_running_loop(), _Loop())

    def _list_run_caps(self) -> list[Cap]:
        budget = self._budget
        return [Cap("run", "calls", budget.calls), Cap("run", "tokens", budget.tokens), Cap("run", "usd", budget.usd)]

    def _list_shared_caps(self, tenant: str) -> list[Cap]:
        """Return the caps over all runs that count a call of a tenant."""
        own = self._budget.tenants.get(tenant)
        caps: list[tuple[CapScope, float | None]] = [("day", self._budget.day_usd)]
        caps += [("tenant", own.usd), ("tenant_day", own.day_usd)] if own else []
        return [Cap(of, "usd", limit) for of, limit in caps if limit is not None]

    def _explain_cap(self, reached: CapReached, tenant: str) -> BudgetEnded:
        """Return the error that names the cap and its owner."""
        cap, kind = reached.cap, reached.cap.what
        whose, name, larger = {
            "run": ("the model budget", f"budget.{kind}", "model budget (calls, tokens, usd)"),
            "day": (
                f"the model budget of all runs on {reached.day} (UTC)",
                "budget.day_usd",
                "budget.day_usd, or tomorrow,",
            ),
            "tenant": (
                f"the model budget of the tenant {tenant}",
                f"budget.tenants.{tenant}.usd",
                "budget of the tenant",
            ),
            "tenant_day": (
                f"the model budget of the tenant {tenant} on {reached.day} (UTC)",
                f"budget.tenants.{tenant}.day_usd",
                "budget of the tenant, or tomorrow,",
            ),
        }[cap.of]
        reserved = f" and {reached.held:,.6g} held by calls under way ({reached.holds})" if reached.held else ""
        return BudgetEnded(
            f"{whose} is spent: {reached.spent:,.6g} of {cap.limit:,.6g} {kind}{reserved}, "
            f"and the next call may need {reached.need:,.6g}",
            field=name,
            got=reached.spent + reached.held + reached.need,
            allowed=cap.limit,
            hint=f"What was found is kept. A new run with a larger {larger} goes further.",
        )


def _may_fit(reached: CapReached) -> bool:
    """Return whether a call may fit after the calls under way have ended.

    A run always waits for its own calls, so that its final message is the same each time. It waits for calls of other
    runs only where their end could make room.
    """
    if reached.cap.of == "run":
        return reached.holds > 0
    return reached.held > 0 and reached.spent + reached.need <= reached.cap.limit
