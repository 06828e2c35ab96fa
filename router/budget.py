"""Hard caps: what is spent, what is under way at its worst, and whether one more call fits."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from ..ledger import ModelCall
from .config import ModelBudget
from .errors import BudgetEnded


@dataclass(frozen=True)
class Amount:
    """Calls, tokens and US dollars."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: Amount) -> Amount:
        """Return the sum."""
        return Amount(self.calls + other.calls, self.tokens + other.tokens, self.usd + other.usd)


class Account:
    """What one run has spent, and what its calls under way may still spend; used from one event loop at a time."""

    def __init__(self, budget: ModelBudget, recorded: Iterable[ModelCall]) -> None:
        calls = list(recorded)
        tokens = sum(call.tokens_in + call.tokens_out for call in calls)
        self._budget = budget
        self._spent = Amount(len(calls), tokens, math.fsum(call.cost_usd for call in calls))
        self._reserved: dict[object, Amount] = {}
        self._settled = asyncio.Event()
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    @property
    def spent(self) -> Amount:
        """What the recorded calls took."""
        return self._spent

    @asynccontextmanager
    async def reserve(self, worst: Amount) -> AsyncIterator[None]:
        """Hold the worst case of a call while it is under way.

        A call that fits only once the calls under way have settled below their worst waits for them, and those asked
        after it wait behind it: the budget then ends at the call at which it would end one by one.

        Raises
        ------
        BudgetEnded
            If the call could pass a cap.
        """
        ticket = object()
        async with self._queue():
            while self._over(self._total() + worst) and self._reserved:
                await self._settled.wait()
            self.check(worst)
            self._reserved[ticket] = worst
        try:
            yield
        finally:
            del self._reserved[ticket]
            self._settled.set()
            self._settled = asyncio.Event()

    def check(self, worst: Amount) -> None:
        """Raise `BudgetEnded` if an amount, on top of what is spent, passes a cap."""
        if cap := self._over(self._spent + worst):
            raise self._ended(cap, worst)

    def add(self, call: ModelCall) -> None:
        """Count a call that was recorded."""
        self._spent += Amount(1, call.tokens_in + call.tokens_out, call.cost_usd)

    def _queue(self) -> asyncio.Lock:
        """Return the queue of this event loop; a router may outlive a loop, a lock may not."""
        return self._queues.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    def _total(self) -> Amount:
        """Return what is spent, and the worst of what is under way."""
        total = self._spent
        for amount in self._reserved.values():
            total += amount
        return total

    def _over(self, amount: Amount) -> str:
        """Return the name of the cap that an amount passes, or nothing."""
        for cap in ("calls", "tokens", "usd"):
            if getattr(amount, cap) > getattr(self._budget, cap):
                return cap
        return ""

    def _ended(self, cap: str, worst: Amount) -> BudgetEnded:
        """Return the error that says which cap is reached."""
        spent, limit, need = (getattr(each, cap) for each in (self._spent, self._budget, worst))
        return BudgetEnded(
            f"the model budget is spent: {spent:,.6g} of {limit:,.6g} {cap}, and the next call may need {need:,.6g}",
            field=f"budget.{cap}",
            got=spent + need,
            allowed=limit,
            hint="What was found is kept. A new run with a larger model budget (calls, tokens, usd) goes further.",
        )
