"""One call, from the first model that is asked to the answer: retries, the next model, a second one beside the first.

LiteLLM makes one attempt at one model; everything else is decided here. A failed call is tried again at the same model as
often as `retries` says, unless that model is gone or was silent; then the next of the route is asked. Who rests is passed
over, and asked all the same where there is no other. Where a server went away that was there before, and nobody else
answered, the call waits for it.

Nobody knows whether an attempt that ended without a word was charged. At a model with a price it counts at its worst, and
after the second of them the model is given up and the next one is asked. An attempt is made only if its worst fits under the
caps beside those that count already; else the next model is asked, which may be cheaper. A call that is ended from outside while
an attempt is under way is charged for that attempt.
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
"""Attempts at one model that may have been charged without an answer, after which it is given up."""
NO_ROOM = "the budget has no room for what it may cost"


@dataclass
class CallCosts:
    """What a call may cost.

    `covers` says whether attempts fit under the caps, each at what it may have cost, and holds that for the call; `beside`
    lists what is charged beside the answer: it is there for who pays also where the call is ended before it has an answer.
    """

    covers: Callable[[Sequence[HedgedAttempt]], bool]
    beside: list[HedgedAttempt] = field(default_factory=list)


@dataclass(frozen=True)
class ModelRequest:
    """What is asked.

    `send` makes one attempt at a model and raises `AttemptFailed` where nothing comes of it; `fits` says whether an answer is of
    use; `worst` is what an attempt at a model can take, to be charged where its answer is never seen, `charge` what an
    answer took, and `tab` what it may cost in all; `hedged` lets a second model be asked beside the first.
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
            If none came; of its own kind where asking again is of no use.
        """
        async with self._endpoints.watch():
            try:
                answer = await self._answer()
            finally:
                self._begun()
        if answer is None:
            raise combine_failures(self._failures, self._endpoints.list_resting(self._call.names) | self._unaffordable)
        return replace(answer, attempts=self._sent, beside=tuple(self._beside))

    async def _answer(self) -> ModelAnswer | None:
        """Ask one after the other."""
        async with contextlib.aclosing(self._next_models()) as turns:
            async for name, force in turns:
                answer = await self._try(name, force)
                if answer is not None:
                    return answer
        return None

    async def _next_models(self) -> AsyncGenerator[tuple[str, bool], None]:
        """Yield whom to ask next, and whether though it rests: all in order, those that rested, those that come back."""
        names = await self._endpoints.order(self._call.names)
        self._coming = self._endpoints[names[0]]
        self._coming.coming += 1
        for name in names:
            yield name, len(names) == 1
        for name in names:
            if name not in {each.model for each in self._failures} | self._unaffordable.keys():
                yield name, True
        for _ in range(1 + self._call.retries):
            back = await self._endpoints.wait_for_return(
                {name for name in self._gone if self._lost[name] < MAX_UNANSWERED_CHARGED}
            )
            if back is None:
                return
            yield back, True

    def _begun(self) -> None:
        """Note that the call is on its way, and no longer about to be."""
        if self._coming is not None:
            self._coming.coming -= 1
            self._coming = None

    async def _try(self, name: str, force: bool) -> ModelAnswer | None:
        """Ask one model, and again where that may help."""
        for turn in range(1 + self._call.retries):
            if self._lost[name] >= MAX_UNANSWERED_CHARGED:
                return None
            permit = await self._endpoints.admit(name, force=force)
            if permit is None:
                self._note(name)
                return None
            if not self._fits_budget(name):
                self._endpoints[name].breaker.leave(permit)
                self._unaffordable[name] = NO_ROOM
                return None
            outcome = await self._ask(name, permit)
            if isinstance(outcome, ModelAnswer):
                return outcome
            self._note(name)
            if turn == self._call.retries or not self._may_ask_again(outcome, name, force):
                return None
            pause = self._timing.spread(FIRST_RETRY_PAUSE_S * 2.0**turn)
            await self._timing.sleep(min(max(pause, outcome.wait_s), MAX_RETRY_PAUSE_S))
        return None

    def _fits_budget(self, *names: str) -> bool:
        """Return whether an attempt at each of some models fits under the caps, beside those that are charged already."""
        return self._call.tab.covers([*self._beside, *map(self._call.worst, names)])

    def _note(self, name: str) -> None:
        """Note whose server is gone, to wait for it where nobody else answers."""
        if self._endpoints[name].away_since is not None:
            self._gone.add(name)

    def _may_ask_again(self, last: Failure, name: str, force: bool) -> bool:
        """Return whether the same model may be asked again, as it stands now."""
        if (
            last.kind == "refused"
            or self._lost[name] >= MAX_UNANSWERED_CHARGED
            or self._endpoints[name].away_since is not None
        ):
            return False
        return force or (last.kind != "late" and self._endpoints[name].breaker.state != "open")

    async def _ask(self, name: str, permit: Permit) -> AttemptOutcome:
        """Ask one model, or two beside each other."""
        hedged = self._call.hedged and not self._sent and not permit.trial
        twin = self._endpoints.find_twin(name, self._call.names) if hedged else None
        usual = self._endpoints.usual_seconds(name)
        if twin is None or usual is None:
            return self._kept(await self._once(name, permit))
        async with _hold_tasks(asyncio.ensure_future(self._once(name, permit))) as tasks:
            await self._first(tasks[0], usual)
            late = not tasks[0].done() and self._fits_budget(name, twin)
            second = await self._endpoints.admit(twin) if late else None
            if second is not None:
                tasks.append(asyncio.ensure_future(self._once(twin, second)))
            return await self._race(tasks, (name, twin))

    async def _first(self, task: asyncio.Future[AttemptOutcome], seconds: float) -> None:
        """Wait for an answer, for some seconds at most."""
        async with _hold_tasks(asyncio.ensure_future(self._timing.sleep(seconds))) as (timer,):
            both: list[asyncio.Future[Any]] = [task, timer]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)

    async def _race(self, tasks: list[asyncio.Future[AttemptOutcome]], names: tuple[str, str]) -> AttemptOutcome:
        """Return the first answer that fits, else the first one, else the first failure; end and charge the other."""
        pending = set(tasks)
        winner = None
        while pending and winner is None:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            winner = next((task for task in tasks if task in done and self._good(task.result())), None)
        self._won = True
        await _end(pending)
        if winner is None:
            winner = next((task for task in tasks if isinstance(task.result(), ModelAnswer)), tasks[0])
        for task, name in zip(tasks, names, strict=False):
            if task is not winner:
                self._charge(task, name)
        return self._kept(winner.result())

    def _good(self, outcome: AttemptOutcome) -> bool:
        return isinstance(outcome, ModelAnswer) and self._call.fits(outcome)

    def _charge(self, task: asyncio.Future[AttemptOutcome], name: str) -> None:
        """Charge the loser: what it took if it answered all the same, its worst if it was cut off."""
        if task.cancelled():
            self._beside.append(replace(self._call.worst(name), why="the other answered first; charged at its worst"))
            return
        outcome = task.result()
        if isinstance(outcome, ModelAnswer):
            self._beside.append(replace(self._call.charge(outcome), why="it answered beside the other"))
        else:
            self._kept(outcome)

    def _kept(self, outcome: AttemptOutcome) -> AttemptOutcome:
        """Note a failure, and charge it where it may have been charged."""
        if isinstance(outcome, Failure):
            self._failures.append(outcome)
            worst = self._call.worst(outcome.model)
            if outcome.charged and worst.cost_usd > 0:
                self._lost[outcome.model] += 1
                self._beside.append(replace(worst, why=f"no answer ({outcome.kind}); charged at its worst"))
        return outcome

    async def _once(self, name: str, permit: Permit) -> AttemptOutcome:
        """Make one attempt at one model, and let what is known of it learn from it."""
        endpoint, clock = self._endpoints[name], self._timing.clock
        began = clock()
        self._begun()
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
        except AttemptFailed as missed:
            lost = classify_failure(name, missed, clock() - began)
            await self._endpoints.note_failure(name, permit, lost)
            return lost
        finally:
            endpoint.under_way -= 1
            endpoint.breaker.leave(permit)  # of consequence only where it was cancelled before anything was learned
        self._endpoints.note_answer(name, permit, clock() - began)
        return answer


@contextlib.asynccontextmanager
async def _hold_tasks(first: asyncio.Future[T]) -> AsyncIterator[list[asyncio.Future[T]]]:
    """Give a list of tasks, and leave none of them running."""
    tasks = [first]
    try:
        yield tasks
    finally:
        await _end(tasks)


async def _end(tasks: Iterable[asyncio.Future[T]]) -> None:
    """Cancel what still runs, and wait until it has ended."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
