"""One door to every model: route, budget, record, validate, repair."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

from pydantic import BaseModel

from ..ledger import Ledger, ModelCall, canonical_json, digest
from .backend import Backend, Providers
from .budget import Account, Amount
from .config import RouterConfig
from .deciding import Decider
from .decision import Decision
from .errors import Confidential, ReplyRefused
from .health import Health, probe
from .replies import HELD_BY_GRAMMAR, Answer, Misfit, complaint, read_reply
from .route import Route
from .spend import Spend, spend_of
from .structure import held_to
from .task import Message, Reply, Task

REPAIRS = 2
ROUTED = "route"
"""The kind of event under which a run keeps the decision on each of its calls, by the call's key."""


@dataclass(frozen=True)
class _Turn:
    """One call of a task: the messages so far, and the key under which the ledger keeps it."""

    task: Task
    decision: Decision
    route: Route
    messages: tuple[Message, ...]
    request: str
    grammar: str

    @property
    def key(self) -> str:
        """The hash of model, messages, schema, sampling and seed."""
        return digest(self.request)


class Router:
    """Answers typed tasks; a call that the ledger holds is never sent again.

    Parameters
    ----------
    config : RouterConfig
        Models, roles, caps.
    ledger : Ledger
        Keeps every call; it is the response cache and the authority on what was spent.
    providers : mapping of str to callable
        Makers of providers that run in this process, by the word before the slash in a model's name.
    environment : mapping of str to str, optional
        Where keys are looked up; the process's environment by default.
    """

    def __init__(
        self,
        config: RouterConfig,
        ledger: Ledger,
        *,
        providers: Providers | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._config = config
        self._ledger = ledger
        self._providers = dict(providers or {})
        self._environment = os.environ if environment is None else environment
        self._decider = Decider(config)
        self._accounts: dict[str, Account] = {}
        self._under_way: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @cached_property
    def _backend(self) -> Backend:
        """LiteLLM, connected when the first call is sent: a resumed run may need none."""
        return Backend(self._config, self._providers, self._environment)

    async def ask(self, task: Task) -> Reply[Any]:
        """Return a reply that fits the task's schema; its `value` is a record of that schema.

        Raises
        ------
        UnknownRun
            If the task's run was never started.
        NoModel
            If no configured model can take the task, or its key is missing.
        Confidential
            If the task may not leave this machine and no model here is configured, or it holds a key.
        BudgetEnded
            If the next call could pass a cap; nothing was sent.
        ModelFailed
            If no model replied, after retries and fallback; `RequestRefused` or `AccessRefused` where asking again is of no use.
        ReplyRefused
            If no reply fits, after two repairs.
        """
        decision, route = self._decider.route(task)
        messages = task.messages
        calls: list[ModelCall] = []
        sent = 0
        for _ in range(1 + REPAIRS):
            turn = self._turn(task, (decision, route), messages)
            call, answer, cached = await self._call(turn)
            calls.append(call)
            sent += not cached
            try:
                return self._reply(read_reply(answer, task.schema), calls, cached=not sent)
            except Misfit as error:
                misfit = error
            messages = (*messages, Message("assistant", answer.text or "(nothing)"), Message("user", complaint(misfit)))
        raise ReplyRefused(
            f"{calls[-1].model} gave no reply that fits {task.schema.__name__}, after {REPAIRS} repairs:\n{misfit}",
            field=f"{task.role}/{task.intent}",
            hint=f"The replies are kept under {', '.join(call.key[:12] for call in calls)}.",
        )

    def spend(self, run: str) -> Spend:
        """Return what a run's recorded calls took."""
        return spend_of(self._ledger.calls(run))

    def usd(self, run: str) -> float:
        """Return the US dollars that a run's recorded calls took, without reading them again."""
        return self._account(run).spent.usd

    async def probe(self) -> list[Health]:
        """Return which configured models answer, without a paid call and without asking any other address."""
        looks = [
            probe(name, each, self._providers.keys(), self._environment) for name, each in self._config.models.items()
        ]
        return list(await asyncio.gather(*looks))

    async def close(self) -> None:
        """Close the connections to the models."""
        if "_backend" in self.__dict__:
            await self._backend.close()

    def _turn(self, task: Task, decided: tuple[Decision, Route], messages: tuple[Message, ...]) -> _Turn:
        """Return one call with its request in the one spelling that is hashed."""
        decision, route = decided
        request: dict[str, Any] = {
            "model": self._config.models[route.name].model,
            "messages": [message.record() for message in messages],
            "schema": task.schema.model_json_schema(),
            "sampling": task.sampling(),
        }
        grammar = _grammar(task) if request["model"].startswith(HELD_BY_GRAMMAR) else ""
        request |= {"grammar": digest(grammar)} if grammar else {}
        return _Turn(task, decision, route, messages, canonical_json(request), grammar)

    async def _call(self, turn: _Turn) -> tuple[ModelCall, Answer, bool]:
        """Return the recorded call and its answer, sending it only if the ledger does not hold it."""
        async with self._alone(turn.key):
            call = self._recall(turn)
            if call is not None:
                return call, self._stored(call), True
            call, answer = await self._send(turn)
            return call, answer, False

    def _recall(self, turn: _Turn) -> ModelCall | None:
        """Return the call if the ledger holds it; one of another run is entered for this run too.

        It is entered at its price, with no attempt: a run that reuses replies then ends where the run that paid for
        them ended.
        """
        task = turn.task
        own = self._ledger.call(turn.key, task.run)
        if own is not None:
            return own
        other = self._ledger.call(turn.key)
        if other is None:
            return None
        call = replace(other, run=task.run, role=task.role, intent=task.intent, prompt=task.prompt, attempts=0)
        self._account(task.run).check(_amount(call))
        self._enter(call, turn)
        return call

    async def _send(self, turn: _Turn) -> tuple[ModelCall, Answer]:
        """Send a call within the caps, and record it before anyone sees its answer."""
        task = turn.task
        if self._backend.holds_key([message.content for message in turn.messages]):
            raise Confidential(
                "a message holds the key of a model; it was not sent", field=f"{task.role}/{task.intent}"
            )
        async with self._account(task.run).reserve(self._worst(turn)):
            messages = [message.record() for message in turn.messages]
            answer = await self._backend.send(task, messages, turn.route, turn.grammar)
            call = self._record(turn, answer)
            self._enter(call, turn)
        return call, answer

    def _record(self, turn: _Turn, answer: Answer) -> ModelCall:
        """Store the bodies, then return the row that names them: a row never names what is not there."""
        task = turn.task
        body = {"text": answer.text, "finish": answer.finish}
        price_in, price_out = self._backend.price(answer.model)
        if turn.grammar:
            self._ledger.put(turn.grammar.encode())
        return ModelCall(
            key=turn.key,
            run=task.run,
            role=task.role,
            intent=task.intent,
            tier=self._config.models[answer.model].tier,
            model=answer.model,
            prompt=task.prompt,
            request=self._ledger.put(turn.request.encode()),
            reply=self._ledger.put(canonical_json(body).encode()),
            tokens_in=answer.tokens_in,
            tokens_out=answer.tokens_out,
            cost_usd=answer.tokens_in * price_in + answer.tokens_out * price_out,
            attempts=answer.attempts,
        )

    def _enter(self, call: ModelCall, turn: _Turn) -> None:
        """Write down why a call went where it did, then the call, and count it."""
        self._ledger.record_event(call.run, ROUTED, call.key, turn.decision.record())
        account = self._account(call.run)
        if self._ledger.record_call(call):
            account.add(call)

    def _stored(self, call: ModelCall) -> Answer:
        """Return the answer that the ledger keeps."""
        body = json.loads(self._ledger.get(call.reply))
        return Answer(body["text"], body["finish"], call.tokens_in, call.tokens_out, call.model, call.attempts)

    def _account(self, run: str) -> Account:
        """Return a run's account; what it had spent before is read from the ledger.

        A run that was never started is refused here, before a call is paid for that nothing could record.
        """
        if run not in self._accounts:
            self._ledger.require(run)
            self._accounts[run] = Account(self._config.budget, self._ledger.calls(run))
        return self._accounts[run]

    def _worst(self, turn: _Turn) -> Amount:
        """Return the most that a call can take: a token is seldom less than two bytes, and the dearest model answers."""
        size = len(canonical_json([message.record() for message in turn.messages]).encode())
        tokens_in, tokens_out = size // 2, turn.task.max_tokens
        prices = [self._backend.price(name) for name in (turn.route.name, *turn.route.fallbacks)]
        usd = max(tokens_in * price_in + tokens_out * price_out for price_in, price_out in prices)
        return Amount(1, tokens_in + tokens_out, usd)

    def _reply(self, value: BaseModel, calls: list[ModelCall], *, cached: bool) -> Reply[Any]:
        """Return the reply with what all its calls took."""
        last = calls[-1]
        return Reply(
            value=value,
            key=last.key,
            model=last.model,
            tier=last.tier,
            cost_usd=sum(call.cost_usd for call in calls),
            tokens_in=sum(call.tokens_in for call in calls),
            tokens_out=sum(call.tokens_out for call in calls),
            cached=cached,
            repairs=len(calls) - 1,
        )

    def _alone(self, key: str) -> asyncio.Lock:
        """Return the lock that lets one task at a time ask for a key; the others find the answer in the ledger."""
        lock = self._under_way.get(key)
        if lock is None:
            lock = self._under_way[key] = asyncio.Lock()
        return lock


def _grammar(task: Task) -> str:
    """Return what the reply is held to by a server that can: a grammar of the task's own, or that of its schema."""
    return task.grammar() if task.grammar else held_to(task.schema, task.max_tokens)


def _amount(call: ModelCall) -> Amount:
    """Return what a call took."""
    return Amount(1, call.tokens_in + call.tokens_out, call.cost_usd)
