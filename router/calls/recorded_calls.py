"""Each call once: read from the ledger, or reserved within the caps, sent, and recorded before it is returned."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any
from weakref import WeakValueDictionary

from ...ledger import Event, Ledger, ModelCall, canonical_json, compute_digest
from ..config import RouterConfig
from ..endpoints.failover import CallCosts
from ..errors import Confidential, ModelFailed
from ..policy.decision import RoutingDecision
from ..policy.eligibility import Access, Route, is_bound
from ..timing import Timing
from .backend import ModelBackend, Providers
from .caps import Amount, Reservation, RunAccount
from .replies import GRAMMAR_PROVIDER, HedgedAttempt, ModelAnswer
from .reply_grammar import build_schema_grammar
from .task import Message, Task, describe_schema

ROUTE_EVENT = "route"
"""Kind of the event with the decision on a call, by the call's key."""
LOST_CALL = "lost"
"""Finish reason of a call that ended without an answer."""


@dataclass(frozen=True)
class Turn:
    """One call of a task: the messages so far, and the key under which the ledger keeps it."""

    task: Task
    decision: RoutingDecision
    route: Route
    messages: tuple[Message, ...]
    request: str
    grammar: str = ""

    @property
    def key(self) -> str:
        """The hash of the request: model, messages, schema, sampling and seed."""
        return compute_digest(self.request)

    def records(self) -> list[dict[str, str]]:
        """Return the messages as they are sent."""
        return [message.record() for message in self.messages]


class Calls:
    """Makes the calls of many runs. A call that the ledger holds is never sent again.

    Parameters
    ----------
    config : RouterConfig
        Models and caps.
    ledger : Ledger
        Keeps every call: the response cache, and the authority on spending.
    providers, environment, timing
        As in `Router`.
    access : Access
        Which models may see a task.
    """

    def __init__(
        self,
        config: RouterConfig,
        ledger: Ledger,
        providers: Providers,
        environment: Mapping[str, str],
        timing: Timing,
        access: Access,
    ) -> None:
        self._config, self._ledger, self._access = config, ledger, access
        self._backend_of = (config, providers, environment, timing)
        self._accounts: dict[str, RunAccount] = {}
        self._under_way: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @cached_property
    def _backend(self) -> ModelBackend:
        """The connections to the models, made when the first call is sent: a resumed run may need none."""
        return ModelBackend(*self._backend_of)

    async def close(self) -> None:
        """Close the connections to the models."""
        if "_backend" in self.__dict__:
            await self._backend.close()

    def build_turn(self, task: Task, decided: tuple[RoutingDecision, Route], messages: tuple[Message, ...]) -> Turn:
        """Return one call with its request as canonical JSON, which is hashed."""
        decision, route = decided
        request: dict[str, Any] = {
            "model": self._config.models[route.name].model,
            "messages": [message.record() for message in messages],
            "schema": describe_schema(task.schema),
            "sampling": task.sampling(),
        }
        if address := self._config.models[route.name].api_base:  # two servers may use the same model name
            request["address"] = address
        grammar = _choose_grammar(task) if request["model"].startswith(GRAMMAR_PROVIDER) else ""
        request |= {"grammar": compute_digest(grammar)} if grammar else {}
        return Turn(task, decision, route, messages, canonical_json(request), grammar)

    async def make(self, turn: Turn) -> tuple[ModelCall, ModelAnswer, bool]:
        """Return the recorded call, its answer, and whether it came from the ledger; send it only if it did not.

        Raises
        ------
        UnknownRun, NoModel, Confidential, ConfidentialWaits, BudgetEnded, ModelFailed
            As `Router.ask` does.
        """
        async with self._lock_key(turn.key):
            while True:
                call = await self._recall(turn)
                if call is not None:
                    return call, self._load_answer(call), True
                sent = await self._send(turn)
                if sent is not None:
                    return *sent, False

    async def _recall(self, turn: Turn) -> ModelCall | None:
        """Return the call if the ledger holds it; a call of another run is recorded for this run too.

        It is recorded at its price with 0 attempts, so that a run with reused replies reaches its caps at the same call
        as the run that paid for them.
        """
        task = turn.task
        own = self._ledger.calls.get(task.run, turn.key)
        if own is not None:
            return own
        other = self._ledger.calls.first(turn.key)
        if other is None or self._ledger.erasures.is_erased(other.reply):
            return None
        call = replace(
            other, run=task.run, role=task.role, intent=task.intent, prompt=task.prompt, attempts=0, tenant=task.tenant
        )
        await self._open_account(task.run).enter(call, _build_note(turn, turn.key))
        return call

    async def _send(self, turn: Turn) -> tuple[ModelCall, ModelAnswer] | None:
        """Send a call within the caps and record it before returning; None if another process answered it meanwhile."""
        task = turn.task
        if self._backend.holds_key([message.content for message in turn.messages]):
            raise Confidential(
                "a message holds the key of a model; it was not sent", field=f"{task.role}/{task.intent}"
            )
        account = self._open_account(task.run)
        first = _sum_attempts([self._backend.charges.bound_cost(turn.route.name, task, turn.records())])
        longest = self._backend.max_call_seconds(turn.route)
        async with account.reserve(turn.key, first, longest, task.tenant) as reservation:
            if reservation is None:
                return None
            tab = CallCosts(lambda attempts: account.covers(reservation, _sum_attempts(attempts)))
            try:
                answer = await self._send_permitted(turn, tab)
                call = self._record(turn, turn.key, answer)
                account.settle(reservation, call, _build_note(turn, call.key))
            except BaseException:
                self._charge_lost(turn, account, reservation, tab.beside)
                raise
        return call, answer

    async def _send_permitted(self, turn: Turn, tab: CallCosts) -> ModelAnswer:
        """Send a call to the models of its route that may still see the task."""
        task = turn.task
        names, proofs = await self._access.list_open(task, [turn.route.name, *turn.route.fallbacks])
        for name, proof in proofs.items():
            self._backend.pin(name, proof.certificate)
        try:
            route = Route(names[0], tuple(names[1:]))
            still = partial(self._access.may_see, task)
            return await self._backend.send(task, turn.records(), route, tab, turn.grammar, still)
        except ModelFailed as error:
            if is_bound(task) and type(error) is ModelFailed:
                raise await self._access.explain_waiting(task, error.message) from None
            raise

    def _charge_lost(
        self, turn: Turn, account: RunAccount, reservation: Reservation, attempts: Sequence[HedgedAttempt]
    ) -> None:
        """Record the possible charges of a call without an answer, under keys that no task has."""
        if not attempts:
            return
        number = 1
        while self._ledger.calls.get(turn.task.run, key := compute_digest(f"{turn.key} {LOST_CALL} {number}")):
            number += 1
        nothing = ModelAnswer("", LOST_CALL, 0, 0, attempts[0].model, attempts=len(attempts), beside=tuple(attempts))
        account.settle(reservation, self._record(turn, key, nothing), _build_note(turn, key))

    def _record(self, turn: Turn, key: str, answer: ModelAnswer) -> ModelCall:
        """Store the bodies, then return the row that refers to them, so that no row refers to a missing body."""
        task = turn.task
        body: dict[str, Any] = {"text": answer.text, "finish": answer.finish}
        if answer.beside:
            body["beside"] = [asdict(attempt) for attempt in answer.beside]
        body |= {name: value for name in ("cached", "written") if (value := getattr(answer, name))}
        if turn.grammar:
            self._ledger.objects.put(turn.grammar.encode())
        tokens_in, tokens_out, cost = self._backend.charges.total(answer)
        settings = self._config.models[answer.model]
        return ModelCall(
            key=key,
            run=task.run,
            role=task.role,
            intent=task.intent,
            tier=settings.tier,
            model=answer.model,
            prompt=task.prompt,
            request=self._ledger.objects.put(turn.request.encode()),
            reply=self._ledger.objects.put(canonical_json(body).encode()),
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            cost_usd=cost,
            attempts=answer.attempts,
            tenant=task.tenant,
            vendor=settings.maker,
            provider=settings.provider,
            served=answer.served,
        )

    def _load_answer(self, call: ModelCall) -> ModelAnswer:
        body = json.loads(self._ledger.objects.get(call.reply))
        return ModelAnswer(
            body["text"], body["finish"], call.tokens_in, call.tokens_out, call.model, attempts=call.attempts
        )

    def _open_account(self, run: str) -> RunAccount:
        """Return a run's account; its spending is in the ledger.

        A run that was never started is refused here, because a paid call could not be recorded for it.
        """
        if run not in self._accounts:
            self._ledger.runs.require(run)
            self._accounts[run] = RunAccount(self._ledger, self._config.budget, run)
        return self._accounts[run]

    def _lock_key(self, key: str) -> asyncio.Lock:
        """Return the lock of a key: one task sends the call, the others then read it from the ledger."""
        lock = self._under_way.get(key)
        if lock is None:
            lock = self._under_way[key] = asyncio.Lock()
        return lock


def _sum_attempts(attempts: Sequence[HedgedAttempt]) -> Amount:
    """Return the sum of the attempts of one call, to reserve it."""
    tokens = sum(attempt.tokens_in + attempt.tokens_out for attempt in attempts)
    return Amount(tokens, sum(attempt.cost_usd for attempt in attempts))


def _build_note(turn: Turn, key: str) -> Event:
    """Return the event with the decision on a call."""
    return Event(turn.task.run, ROUTE_EVENT, key, turn.decision.record())


def _choose_grammar(task: Task) -> str:
    """Return the decoding grammar of a task's reply: its own, else the one of its schema."""
    return task.grammar() if task.grammar else build_schema_grammar(task.schema, task.max_tokens)
