"""Hard caps: money spent, worst cases of the calls under way, and whether one more call fits.

The ledger is the authority, for every process that works with it. The caps of a run are its own; those of a day and of a
tenant hold over all runs of the ledger, and each process goes by the caps of its own settings.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal, TypeVar
from weakref import WeakKeyDictionary

from ...ledger import PICO, Cap, CapReached, CapScope, Event, Hold, Ledger, ModelCall, Wish, picos
from ...ledger.database import Wait
from ..config import ModelBudget
from ..errors import BudgetEnded

CAP_POLL_SECONDS = 0.1
"""Poll interval for calls of other processes; calls of this process wake those who wait."""

T = TypeVar("T")


@dataclass(frozen=True)
class Amount:
    """Calls, tokens and US dollars."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0


@dataclass
class Reservation:
    """What one call holds while it is under way."""

    hold: Hold


@dataclass
class _Loop:
    """What belongs to one event loop: a router may outlive it, a lock may not."""

    queue: asyncio.Lock = field(default_factory=asyncio.Lock)
    settled: asyncio.Event = field(default_factory=asyncio.Event)


class RunAccount:
    """What one run may still spend.

    Parameters
    ----------
    ledger : Ledger
        Knows what all recorded calls took, and what those under way hold.
    budget : ModelBudget
        The caps.
    run : str
        Who pays.
    """

    def __init__(self, ledger: Ledger, budget: ModelBudget, run: str) -> None:
        self._ledger, self._budget, self._run = ledger, budget, run
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = WeakKeyDictionary()

    @property
    def spent(self) -> Amount:
        """What the recorded calls of the run took."""
        taken = self._ledger.holds.spent(self._run)
        return Amount(taken.calls, taken.tokens, taken.picos / PICO)

    @asynccontextmanager
    async def reserve(
        self, key: str, worst: Amount, seconds: float, tenant: str = ""
    ) -> AsyncIterator[Reservation | None]:
        """Hold the worst case of a call while it is under way; None where somebody else has got its reply meanwhile.

        A call that fits only once the calls under way have settled below their worst waits for them, and those asked
        after it wait behind it: the budget then ends at the call at which it would end one by one. `seconds` is the
        longest that the call can take.

        Raises
        ------
        BudgetEnded
            If the call could pass a cap.
        """
        wish = Wish(self._run, key, tenant, worst.tokens, worst.usd)
        caps = [*self._run_caps(), *self._shared_caps(tenant)]
        hold = await self._await_grant(lambda: self._ledger.holds.hold(wish, caps, seconds), tenant)
        if not isinstance(hold, Hold):
            yield None
            return
        held = Reservation(hold)
        try:
            yield held
        finally:
            self._ledger.holds.release(held.hold)
            self._tell()

    def covers(self, held: Reservation, worst: Amount) -> bool:
        """Let a call hold another amount from now on; False where that does not fit now, and it holds what it held.

        A call is held at the worst of the model that is asked, and of those that were asked before and may be on the bill:
        of a killed process this is what stays counted.
        """
        hold = held.hold
        if (hold.tokens, hold.picos) == (worst.tokens, picos(worst.usd)):
            return True
        found = self._ledger.holds.change(
            hold, worst.tokens, worst.usd, [*self._run_caps(), *self._shared_caps(hold.tenant)]
        )
        if isinstance(found, Hold):
            held.hold = found
            self._tell()
        return isinstance(found, Hold)

    def settle(self, held: Reservation, call: ModelCall, note: Event) -> None:
        """Record what came of a call, with a note, and let go of what it held."""
        self._ledger.holds.settle(held.hold, call, note)

    async def enter(self, call: ModelCall, note: Event) -> None:
        """Record a reply that another run had paid for, at its price.

        Raises
        ------
        BudgetEnded
            If it passes a cap of the run; nothing was paid, so no other cap counts.
        """
        await self._await_grant(lambda: self._ledger.holds.enter(call, note, self._run_caps()), call.tenant)

    async def _await_grant(self, ask: Callable[[], T | CapReached | Literal["busy"]], tenant: str) -> T:
        """Ask until there is room, in the order of those who wait for it."""
        loop, elsewhere = self._loop(), Wait()
        while True:
            async with loop.queue:
                while isinstance(found := ask(), CapReached):
                    if not _may_fit(found):
                        raise self._ended(found, tenant)
                    await self._wait(loop)
            if found != "busy":
                return found
            elsewhere.note("since another run is asking a model the same")
            await self._wait(loop)

    async def _wait(self, loop: _Loop) -> None:
        """Wait until a call under way has ended, or may have; its process may have been killed."""
        if not self._ledger.holds.lapse(self._run):
            with suppress(TimeoutError):
                await asyncio.wait_for(loop.settled.wait(), CAP_POLL_SECONDS)

    def _tell(self) -> None:
        """Wake those who wait for a call to end."""
        loop = self._loop()
        loop.settled.set()
        loop.settled = asyncio.Event()

    def _loop(self) -> _Loop:
        return self._loops.setdefault(asyncio.get_running_loop(), _Loop())

    def _run_caps(self) -> list[Cap]:
        budget = self._budget
        return [Cap("run", "calls", budget.calls), Cap("run", "tokens", budget.tokens), Cap("run", "usd", budget.usd)]

    def _shared_caps(self, tenant: str) -> list[Cap]:
        """Return the caps over all runs that count a call of a tenant."""
        own = self._budget.tenants.get(tenant)
        caps: list[tuple[CapScope, float | None]] = [("day", self._budget.day_usd)]
        caps += [("tenant", own.usd), ("tenant_day", own.day_usd)] if own else []
        return [Cap(of, "usd", limit) for of, limit in caps if limit is not None]

    def _ended(self, found: CapReached, tenant: str) -> BudgetEnded:
        """Return the error that says which cap is reached, and whose."""
        cap, kind = found.cap, found.cap.what
        whose, name, larger = {
            "run": ("the model budget", f"budget.{kind}", "model budget (calls, tokens, usd)"),
            "day": (f"the model budget of all runs on {found.day} (UTC)", "budget.day_usd", "budget.day_usd, or tomorrow,"),
            "tenant": (f"the model budget of the tenant {tenant}", f"budget.tenants.{tenant}.usd", "budget of the tenant"),
            "tenant_day": (
                f"the model budget of the tenant {tenant} on {found.day} (UTC)", f"budget.tenants.{tenant}.day_usd",
                "budget of the tenant, or tomorrow,",
            ),
        }[cap.of]  # fmt: skip
        held = f" and {found.held:,.6g} held by calls under way ({found.holds})" if found.held else ""
        return BudgetEnded(
            f"{whose} is spent: {found.spent:,.6g} of {cap.limit:,.6g} {kind}{held}, "
            f"and the next call may need {found.need:,.6g}",
            field=name,
            got=found.spent + found.held + found.need,
            allowed=cap.limit,
            hint=f"What was found is kept. A new run with a larger {larger} goes further.",
        )


def _may_fit(found: CapReached) -> bool:
    """Tell whether a call may fit once the calls under way have ended.

    A run waits for all of its own, so that what it says at its end is the same each time; for those of others it waits
    only where that may help.
    """
    if found.cap.of == "run":
        return found.holds > 0
    return found.held > 0 and found.spent + found.need <= found.cap.limit
