"""One call, from the first model to the answer: retries, the next model, a second model beside the first.

LiteLLM makes one attempt at one model; everything else is decided here. A failed attempt is repeated at the same model
up to `retries` times, unless that model is gone or timed out; then the next model of the route is asked. A resting
model is skipped, but asked where there is no other. If no model answered and a server that was reachable before is
gone, the call waits for it.

An attempt without an answer may have been charged. At a model with a price it counts at its worst case, and after the
second such attempt the next model is asked. An attempt is made only if its worst case fits under the caps beside the
charges so far; otherwise the next model is asked, which may be cheaper. A call that is cancelled during an attempt is
charged for that attempt.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from ..calls.replies import HedgedAttempt, ModelAnswer
from ..timing import Timing
from .breaker import Permit
from .endpoint import Endpoint
from .failures import AttemptFailed, Failure, classify_failure, combine_failures
from .pool import Endpoints

T = TypeVar("T")
AttemptOutcome: TypeAlias = ModelAnswer | Failure
FIRST_RETRY_PAUSE_S, MAX_RETRY_PAUSE_S = 0.5, 60.0
MAX_UNANSWERED_CHARGED = 2
"""Attempts without an answer that may have been charged; after so many, the next model is asked."""
NO_ROOM = "the budget has no room for what it may cost"


@dataclass
class CallCosts:
    """The costs of a call.

    `covers` returns whether attempts, each at its possible cost, fit under the caps, and reserves them for the call.
    `beside` lists the charges beside the answer; the caller can read it also when the call ends without an answer.
    """

    covers: Callable[[Sequence[HedgedAttempt]], bool]
    beside: list[HedgedAttempt] = field(default_factory=list)


@dataclass(frozen=True)
class ModelRequest:
    """One request to the models of a route.

    `names` are the models in order. `send` makes one attempt at a model, and raises `AttemptFailed` without an answer.
    `fits` returns whether an answer is usable. `worst` is the worst-case cost of an attempt at a model, charged where
    its answer is unknown; `charge` is the cost of an answer; `tab` limits the cost of the call. `hedged` allows a
    second model beside the first.
    """

    names: tuple[str, ...]
    send: Callable[[str], Awaitable[ModelAnswer]]
    fits: Callable[[ModelAnswer], bool]
    worst: Callable[[str], HedgedAttempt]
    charge: Callable[[ModelAnswer], HedgedAttempt]
    tab: CallCosts
    retries: int
    hedged: bool = False


class FailoverRun:
    """The course of one call."""

    def __init__(self, call: ModelRequest, endpoints: Endpoints, timing: Timing) -> None:
        self._call = call
        self._endpoints = endpoints
        self._timing = timing
        self._failures: list[Failure] = []
        self._beside = call.tab.beside
        self._sent = 0
        self._lost: Counter[str] = Counter()
        self._unaffordable: dict[str, str] = {}
        self._won = False
        self._gone: set[str] = set()
        self._coming: Endpoint | None = None

    async def run(self) -> ModelAnswer:
        """Return the first answer.

        Raises
        ------
        ModelFailed
            If no model answered; a subclass where asking again is of no use.
        """
        async with self._endpoints.watch():
            try:
                answer = await self._ask_in_turn()
            finally:
                self._note_begin()
        if answer is None:
            raise combine_failures(self._failures, self._endpoints.list_resting(self._call.names) | self._unaffordable)
        return replace(answer, attempts=self._sent, beside=tuple(self._beside))

    async def _ask_in_turn(self) -> ModelAnswer | None:
        async with contextlib.aclosing(self._yield_models()) as turns:
            async for name, force in turns:
                answer = await self._try(name, force)
                if answer is not None:
                    return answer
        return None

    async def _yield_models(self) -> AsyncGenerator[tuple[str, bool], None]:
        """Yield the next model, and whether to force it: all in order, then the skipped ones, then returning ones."""
        names = await self._endpoints.order(self._call.names)
        self._coming = self._endpoints[names[0]]
        self._coming.coming += 1
        for name in names:
            yield name, len(names) == 1
        for name in names:
            if name not in {failure.model for failure in self._failures} | self._unaffordable.keys():
                yield name, True
        for _ in range(1 + self._call.retries):
            back = await self._endpoints.wait_for_return(
                {name for name in self._gone if self._lost[name] < MAX_UNANSWERED_CHARGED}
            )
            if back is None:
                return
            yield back, True

    def _note_begin(self) -> None:
        """Stop counting the call as coming to its first model."""
        if self._coming is not None:
            self._coming.coming -= 1
            self._coming = None

    async def _try(self, name: str, force: bool) -> ModelAnswer | None:
        """Ask one model, with retries where they may help."""
        for turn in range(1 + self._call.retries):
            if self._lost[name] >= MAX_UNANSWERED_CHARGED:
                return None
            permit = await self._endpoints.admit(name, force=force)
            if permit is None:
                self._note_gone(name)
                return None
            if not self._fits_budget(name):
                self._endpoints[name].breaker.leave(permit)
                self._unaffordable[name] = NO_ROOM
                return None
            outcome = await self._ask(name, permit)
            if isinstance(outcome, ModelAnswer):
                return outcome
            self._note_gone(name)
            if turn == self._call.retries or not self._may_ask_again(outcome, name, force):
                return None
            pause = self._timing.spread(FIRST_RETRY_PAUSE_S * 2.0**turn)
            await self._timing.sleep(min(max(pause, outcome.wait_s), MAX_RETRY_PAUSE_S))
        return None

    def _fits_budget(self, *names: str) -> bool:
        """Return whether an attempt at each of these models fits under the caps, beside the charges so far."""
        return self._call.tab.covers([*self._beside, *map(self._call.worst, names)])

    def _note_gone(self, name: str) -> None:
        """Note a model whose server is gone: the call may wait for it."""
        if self._endpoints[name].away_since is not None:
            self._gone.add(name)

    def _may_ask_again(self, last: Failure, name: str, force: bool) -> bool:
        """Return whether the same model may be asked again."""
        if (
            last.kind == "refused"
            or self._lost[name] >= MAX_UNANSWERED_CHARGED
            or self._endpoints[name].away_since is not None
        ):
            return False
        return force or (last.kind != "late" and self._endpoints[name].breaker.state != "open")

    async def _ask(self, name: str, permit: Permit) -> AttemptOutcome:
        """Ask one model; if it is late and hedging is allowed, a second one beside it."""
        hedged = self._call.hedged and not self._sent and not permit.trial
        twin = self._endpoints.find_twin(name, self._call.names) if hedged else None
        usual = self._endpoints[name].latency.percentile()
        if twin is None or usual is None:
            return self._note_outcome(await self._attempt(name, permit))
        async with _hold_tasks(asyncio.ensure_future(self._attempt(name, permit))) as tasks:
            await self._await_first(tasks[0], usual)
            late = not tasks[0].done() and self._fits_budget(name, twin)
            second = await self._endpoints.admit(twin) if late else None
            if second is not None:
                tasks.append(asyncio.ensure_future(self._attempt(twin, second)))
            return await self._race(tasks, (name, twin))

    async def _await_first(self, task: asyncio.Future[AttemptOutcome], seconds: float) -> None:
        """Wait for a task, at most `seconds`."""
        async with _hold_tasks(asyncio.ensure_future(self._timing.sleep(seconds))) as (timer,):
            both: list[asyncio.Future[Any]] = [task, timer]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)

    async def _race(self, tasks: list[asyncio.Future[AttemptOutcome]], names: tuple[str, str]) -> AttemptOutcome:
        """Return the first answer that fits, else any answer, else the first failure; cancel and charge the other."""
        pending = set(tasks)
        winner = None
        while pending and winner is None:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            winner = next((task for task in tasks if task in done and self._is_good(task.result())), None)
        self._won = True
        await _end(pending)
        if winner is None:
            winner = next((task for task in tasks if isinstance(task.result(), ModelAnswer)), tasks[0])
        for task, name in zip(tasks, names, strict=False):
            if task is not winner:
                self._charge(task, name)
        return self._note_outcome(winner.result())

    def _is_good(self, outcome: AttemptOutcome) -> bool:
        return isinstance(outcome, ModelAnswer) and self._call.fits(outcome)

    def _charge(self, task: asyncio.Future[AttemptOutcome], name: str) -> None:
        """Charge the loser: its cost if it answered, its worst case if it was cancelled."""
        if task.cancelled():
            self._beside.append(replace(self._call.worst(name), why="the other answered first; charged at its worst"))
            return
        outcome = task.result()
        if isinstance(outcome, ModelAnswer):
            self._beside.append(replace(self._call.charge(outcome), why="it answered beside the other"))
        else:
            self._note_outcome(outcome)

    def _note_outcome(self, outcome: AttemptOutcome) -> AttemptOutcome:
        """Note a failure, and charge its worst case where it may have been charged; return the outcome."""
        if isinstance(outcome, Failure):
            self._failures.append(outcome)
            worst = self._call.worst(outcome.model)
            if outcome.charged and worst.cost_usd > 0:
                self._lost[outcome.model] += 1
                self._beside.append(replace(worst, why=f"no answer ({outcome.kind}); charged at its worst"))
        return outcome

    async def _attempt(self, name: str, permit: Permit) -> AttemptOutcome:
        """Make one attempt at one model, and update the model's state."""
        endpoint, clock = self._endpoints[name], self._timing.clock
        began = clock()
        self._note_begin()
        endpoint.under_way += 1
        self._sent += 1
        try:
            answer = await self._call.send(name)
        except asyncio.CancelledError:
            endpoint.note_abandoned(permit, clock() - began)
            worst = self._call.worst(name)
            if not self._won and worst.cost_usd > 0:
                self._beside.append(replace(worst, why="given up while it was under way; charged at its worst"))
            raise
        except AttemptFailed as error:
            failure = classify_failure(name, error, clock() - began)
            await self._endpoints.note_failure(name, permit, failure)
            return failure
        finally:
            endpoint.under_way -= 1
            endpoint.breaker.leave(permit)  # has an effect only after a cancellation without an outcome
        self._endpoints.note_answer(name, permit, clock() - began)
        return answer


@contextlib.asynccontextmanager
async def _hold_tasks(first: asyncio.Future[T]) -> AsyncIterator[list[asyncio.Future[T]]]:
    """Yield a list of tasks, and cancel all of them at the end."""
    tasks = [first]
    try:
        yield tasks
    finally:
        await _end(tasks)


async def _end(tasks: Iterable[asyncio.Future[T]]) -> None:
    """Cancel the running tasks, and wait for their end."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
