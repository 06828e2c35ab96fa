"""Fair order of tenants at an endpoint: a free place goes to the tenant with the least service for its share.

scheduler = FairScheduler(FairnessSettings(places=16), clock=time.monotonic)
async with scheduler.acquire("research", tokens_in=900, most_tokens_out=400) as slot:
    ...                                   # one of the endpoint's 16 places is ours
    slot.report_output(tokens_out=212)

The order is that of the virtual token counter (VTC; Sheng et al., arXiv 2401.00588). A tenant's counter is its weighted
tokens divided by its share; a free place goes to the smallest counter among the waiting tenants, first come first
served within a tenant; a tenant that returns from idle time begins at the smallest level of those who wait.

The bound. Let L_in and L_out be the most tokens in and out of one call, P the places, s the smallest share, and
B = (w_in (L_in + P E) + w_out P L_out) / s, where E is the largest error in a call's estimated tokens in (0 where they
are known). For two tenants that have a call waiting all the time, which no quota blocks, the served tokens divided by
share differ by at most 2 B over any stretch of time, however the others behave. With M for the tokens in and out that
all places hold at once, E = 0 and w_in <= w_out this is within the paper's 2 max(w_in L_in, w_out M). Proof: levels of
waiting tenants fall only by corrections of estimates for calls that hold places, and so does the smallest of them, m. A
dispatched tenant has the smallest counter, hence a level of at most m plus the reservations on the places that others
hold; before its next dispatch it is charged at most its new call and the rest of its running ones, and all places
together hold P calls, each of which is corrected once. So every level is between m and m + B. The reservation may be
any value from 0 to the most that a call can take; the mean of recent replies is used.

No tenant of a fixed set starves. Each new name begins at the level of those who wait, so a caller who could invent
names without limit would always be first: names must come from the callers' credentials.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias

from ..errors import CallTooLarge, QueueFull, QuotaReached, ServingError
from .tenants import MAX_CALL_TOKENS, FairnessSettings, Tenant, TenantCall

PickTenant: TypeAlias = Callable[[Sequence[Tenant]], Tenant]
"""Choose the next tenant among those with a waiting call that their quotas admit."""

REBASE_LEVEL = float(2**30)
"""The level at which levels are rebased: a float of this size still resolves a millionth of a token."""
WAKE_MARGIN_S = 1e-3
"""Seconds added to the time at which a quota has room, so that a rounded clock has passed it."""


def pick_fairest(ready: Sequence[Tenant]) -> Tenant:
    """Return the tenant with the smallest counter; of equal ones, the one whose call came first."""
    return min(ready, key=lambda tenant: (tenant.counter, tenant.waiting[0].number))


def compute_fairness_bound(
    settings: FairnessSettings, most_tokens_in: int, most_tokens_out: int, misjudged: int = 0
) -> float:
    """Return 2 B, the largest difference of served tokens by share over any time in which two tenants both wait."""
    input_tokens = most_tokens_in + settings.places * misjudged
    work = settings.input_weight * input_tokens + settings.output_weight * settings.places * most_tokens_out
    return 2.0 * work / min(tenant.share for tenant in (settings.default, *settings.tenants.values()))


class Slot:
    """One of the endpoint's places, while a call holds it."""

    def __init__(self, scheduler: FairScheduler, call: TenantCall) -> None:
        self._scheduler = scheduler
        self._call = call

    def report_output(self, tokens_out: int) -> None:
        """Report the tokens of the reply so far, or in total; without a report the reservation is charged."""
        _check_counts(tokens_out=tokens_out)
        before = self._call.reported or 0
        if tokens_out < before:
            raise ServingError(
                "the tokens of a reply cannot become fewer",
                field="tokens_out",
                got=tokens_out,
                allowed=f"at least {before}",
                hint="Say how many there are so far in all, not how many are new.",
            )
        self._scheduler.report(self._call, tokens_out)

    def correct_input(self, tokens_in: int) -> None:
        """Report the actual tokens in of the call, where they were an estimate."""
        self._scheduler.correct_input(self._call, tokens_in)


class FairScheduler:
    """Schedule calls of many tenants to one endpoint; used from one event loop at a time.

    Parameters
    ----------
    settings : FairnessSettings
        Places, weights, shares and quotas.
    clock : callable
        Seconds, for the quotas; `time.monotonic`, or a test's.
    order : callable
        Chooses the next tenant; the virtual token counter unless a benchmark compares others.
    """

    def __init__(
        self, settings: FairnessSettings, *, clock: Callable[[], float], order: PickTenant = pick_fairest
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._order = order
        self._tenants: dict[str, Tenant] = {}
        self._queued: dict[str, Tenant] = {}
        self._ready: dict[str, Tenant] = {}
        self._level = 0.0
        self._free = settings.places
        self._numbers = itertools.count(1)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def free(self) -> int:
        """Return the number of free places."""
        return self._free

    def served_tokens(self, name: str) -> float:
        """Return the weighted tokens that a tenant was served."""
        return self._tenants[name].served if name in self._tenants else 0.0

    def count_waiting(self, name: str) -> int:
        """Return how many calls of a tenant wait."""
        return len(self._tenants[name].waiting) if name in self._tenants else 0

    def count_running(self, name: str) -> int:
        """Return how many places a tenant holds."""
        return len(self._tenants[name].running) if name in self._tenants else 0

    @asynccontextmanager
    async def acquire(self, tenant: str, tokens_in: int, most_tokens_out: int) -> AsyncIterator[Slot]:
        """Wait for a place and hold it; it is released however the call or the wait ends.

        Raises
        ------
        QueueFull
            If as many calls of the tenant wait as may wait.
        CallTooLarge
            If the call is larger than the tenant's quota.
        QuotaReached
            If it is beyond the quota, and the tenant's calls are refused instead of waiting.
        """
        call = self._join(tenant, tokens_in, most_tokens_out)
        try:
            self._serve()
            self._refuse_crowd(call)
            await call.granted
            yield Slot(self, call)
        finally:
            self._leave(call)

    def report(self, call: TenantCall, tokens_out: int) -> None:
        """Charge the output of a call so far, while it holds its place."""
        if call in call.tenant.running:
            call.tenant.report(call, tokens_out)

    def correct_input(self, call: TenantCall, tokens_in: int) -> None:
        """Charge the actual input of a call, while it holds its place."""
        _check_counts(tokens_in=tokens_in)
        if call in call.tenant.running:
            call.tenant.correct_input(call, tokens_in)

    def _join(self, name: str, tokens_in: int, most_tokens_out: int) -> TenantCall:
        """Append a call to its tenant's queue, if the tenant's quota allows it."""
        _check_counts(tokens_in=tokens_in, most_tokens_out=most_tokens_out)
        loop = self._bind_loop()
        tenant = self._tenants.setdefault(name, Tenant(name, self._settings))
        call = TenantCall(tenant, tokens_in, most_tokens_out, next(self._numbers), loop.create_future())
        self._check_quota(call)
        tenant.waiting.append(call)
        self._queued[name] = tenant
        return call

    def _bind_loop(self) -> asyncio.AbstractEventLoop:
        """Return the running event loop; the scheduler may outlive a loop, calls of a closed loop are dropped."""
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return loop
        calls = [call for tenant in self._tenants.values() for call in (*tenant.waiting, *tenant.running)]
        if calls and self._loop is not None and not self._loop.is_closed():
            raise ServingError(
                "another event loop has calls at this gate",
                hint="Use one event loop at a time, or make a gate for each.",
            )
        self._loop = loop
        for call in calls:
            self._remove(call)
        return loop

    def _check_quota(self, call: TenantCall) -> None:
        """Refuse a call that never fits the quota, or that does not fit it now and must not wait."""
        own, name = call.tenant.own, call.tenant.name
        if own.tokens_per_minute is not None and call.worst > own.tokens_per_minute:
            raise CallTooLarge(
                f"a call of {name} may take {call.worst:,} tokens, more than {name} may take in a minute",
                field=f"tenants.{name}.tokens_per_minute",
                got=call.worst,
                allowed=own.tokens_per_minute,
                hint="Ask for less at once (a shorter prompt, a smaller max_tokens), or raise the quota.",
            )
        if own.over == "wait":
            return
        self._refuse_beyond(call)
        call.take = call.tenant.meter.take(call.worst, self._clock())

    def _refuse_beyond(self, call: TenantCall) -> None:
        """Refuse a call that a quota blocks now, with the seconds until it would not."""
        own, name = call.tenant.own, call.tenant.name
        seconds = call.tenant.meter.wait_seconds(call.worst, self._clock())
        if math.isinf(seconds):
            raise QuotaReached(
                f"{name} has as many calls under way as it may have",
                field=f"tenants.{name}.calls",
                allowed=own.calls,
                hint="Ask again when one has ended, or raise the quota.",
            )
        if seconds > 0:
            reached = QuotaReached(
                f"{name} has taken its tokens of this minute; this call may take {call.worst:,}",
                field=f"tenants.{name}.tokens_per_minute",
                allowed=own.tokens_per_minute,
                hint=(
                    f"Ask again in {math.ceil(seconds)} s, or raise the quota, "
                    "or let calls wait (over: wait, and a queue)."
                ),
            )
            reached.seconds = seconds
            raise reached

    def _refuse_crowd(self, call: TenantCall) -> None:
        """Refuse a call that got no place and has no room to wait."""
        tenant = call.tenant
        if not call.granted.done() and len(tenant.waiting) > tenant.own.queue:
            self._refuse_beyond(call)
            raise QueueFull(
                f"{tenant.own.queue} calls of {tenant.name} wait already",
                field=f"tenants.{tenant.name}.queue",
                allowed=tenant.own.queue,
                hint="Ask again when some were answered, ask fewer at once, or raise the limit.",
            )

    def _serve(self) -> None:
        """Give the free places to waiting calls; those that still wait need a place or a quota."""
        now = self._clock()
        while ready := self._ready_tenants(now):
            if not self._free:
                break
            tenant = self._order(ready)
            call = tenant.waiting[0]
            try:
                tenant.start(now, next(self._numbers))
            except Exception as error:  # noqa: BLE001 - an error of this call must not stop the others
                tenant.withdraw(call)
                call.granted.set_exception(error)
            else:
                self._free -= 1
                call.granted.set_result(None)
            self._dequeue(tenant)
        self._wake_later(now)

    def _ready_tenants(self, now: float) -> list[Tenant]:
        """Return the tenants whose first call may go; newly ready ones are lifted to the level."""
        for tenant in list(self._queued.values()):
            while tenant.waiting and tenant.waiting[0].granted.done():  # cancelled a moment ago
                tenant.withdraw(tenant.waiting[0])
            self._dequeue(tenant)
        ready = {name: tenant for name, tenant in self._queued.items() if tenant.wait_seconds(now) <= 0}
        staying = [tenant.level for name, tenant in ready.items() if name in self._ready]
        level = min(staying, default=self._level)
        for name in ready.keys() - self._ready.keys():
            ready[name].lift(level)
        self._ready = ready
        self._level = min((tenant.level for tenant in ready.values()), default=self._level)
        self._rebase()
        return list(ready.values())

    def _rebase(self) -> None:
        """Subtract the level from all tenants once it is high.

        Only differences matter, and tenants below the level will be lifted to it.
        """
        if self._level > REBASE_LEVEL:
            for tenant in self._tenants.values():
                tenant.rebase(self._level)
            self._level = 0.0

    def _dequeue(self, tenant: Tenant) -> None:
        """Remove a tenant without waiting calls from the queue."""
        if not tenant.waiting:
            self._queued.pop(tenant.name, None)

    def _wake_later(self, now: float) -> None:
        """Serve again when the first quota has room; the end of a call serves the others."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        seconds = min((tenant.wait_seconds(now) for tenant in self._list_blocked()), default=math.inf)
        if math.isfinite(seconds) and self._loop is not None and not self._loop.is_closed():
            self._timer = self._loop.call_later(seconds + WAKE_MARGIN_S, self._serve)

    def _list_blocked(self) -> list[Tenant]:
        """Return the tenants whose quotas block their first call."""
        return [tenant for name, tenant in self._queued.items() if name not in self._ready]

    def _leave(self, call: TenantCall) -> None:
        """End a call or its wait, and serve the next."""
        self._remove(call)
        self._serve()

    def _remove(self, call: TenantCall) -> None:
        """Remove a call, running or waiting."""
        tenant = call.tenant
        if call in tenant.running:
            tenant.finish(call)
            self._free += 1
        elif call in tenant.waiting:
            tenant.withdraw(call)
            self._dequeue(tenant)


def _check_counts(**tokens: int) -> None:
    """Refuse negative and impossibly large numbers of tokens."""
    for field, value in tokens.items():
        if value < 0:
            raise ServingError("a call has no fewer tokens than 0", field=field, got=value, allowed="0 or more")
        if value > MAX_CALL_TOKENS:
            raise ServingError("no call has so many tokens", field=field, allowed=f"0 to {MAX_CALL_TOKENS:,}")
