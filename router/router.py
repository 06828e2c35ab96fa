"""One door to every model: route, budget, record, validate, repair."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

from pydantic import BaseModel

from ..ledger import Event, Ledger, ModelCall, canonical_json, digest
from .attesting import Attestations, Verifier
from .backend import Backend, Providers
from .budget import Account, Amount
from .config import RouterConfig
from .deciding import Decider
from .decision import Decision
from .errors import Confidential, ConfidentialWaits, ModelFailed, ReplyRefused
from .health import Health, probe
from .redaction import redacted
from .replies import Answer, Misfit, complaint, read_reply, response_format
from .route import Route, barred
from .signed_statements import SignedStatements
from .spend import Spend, spend_of
from .task import Message, Reply, Task
from .waiting import is_bound, waiting
from .ways import Ways

REPAIRS = 2
SEED_STEP = 1_000_003
"""Between the seeds of replies that are compared: far from those that other work draws."""
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
    verifier : Verifier, optional
        What checks the proofs of models with `attestation`; signed statements by default.
    clock : callable, optional
        The time, aware, by which proofs end; this machine's by default.
    """

    def __init__(
        self,
        config: RouterConfig,
        ledger: Ledger,
        *,
        providers: Providers | None = None,
        environment: Mapping[str, str] | None = None,
        verifier: Verifier | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._config = config
        self._ledger = ledger
        self._providers = dict(providers or {})
        self._environment = os.environ if environment is None else environment
        self._decider = Decider(config)
        self._ways = Ways(config, self._decider, ledger)
        self._attestations = Attestations(
            config.models,
            verifier or SignedStatements(clock),
            clock,
            lambda: secrets.token_hex(32),
            config.timeout_seconds,
        )
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
        ConfidentialWaits
            If those that may see it are down, or prove nothing.
        BudgetEnded
            If the next call could pass a cap; nothing was sent.
        ModelFailed
            If no model replied, after retries and fallback; `RequestRefused` or `AccessRefused` where asking again is of no use.
        ReplyRefused
            If no reply fits, after two repairs.
        """
        decided, goes_up = self._ways.begin(task, await self._routed(task))
        messages = task.messages
        calls: list[ModelCall] = []
        sent = 0
        for tries in range(1 + REPAIRS):
            turn = self._turn(task, decided, messages)
            call, answer, cached = await self._call(turn)
            calls.append(call)
            sent += not cached
            try:
                value = read_reply(answer, task.schema)
            except Misfit as error:
                misfit = error
            else:
                why = await self._doubts(turn, value, calls) if goes_up and tries < REPAIRS else ""
                raised = self._decider.above(*decided, why) if why else None
                self._ways.note(task, turn.decision, call, valid=raised is None)
                if raised is None:
                    return self._reply(value, calls, cached=not sent)
                decided, goes_up, misfit = raised, False, Misfit(why)
                continue
            self._ways.note(task, turn.decision, call, valid=False)
            if goes_up and tries + 1 == self._config.routing.local_tries:
                why = f"{tries + 1} replies of the local tier did not fit; the last: {misfit}"
                decided = self._decider.above(*decided, why) or decided
            messages = (*messages, Message("assistant", answer.text or "(nothing)"), Message("user", complaint(misfit)))
        raise ReplyRefused(
            f"{calls[-1].model} gave no reply that fits {task.schema.__name__}, after {REPAIRS} repairs:\n{redacted(str(misfit))}",
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

    async def _doubts(self, turn: _Turn, value: BaseModel, calls: list[ModelCall]) -> str:
        """Ask a small model the same again with other seeds, and return why its reply is not to be relied on; empty if it is.

        Only what the task says is compared; replies that do not fit agree with none. Their calls are counted with the rest.
        """
        task, routing = turn.task, self._config.routing
        if turn.decision.tier != "local" or not task.compared:
            return ""
        found: list[object] = [_compared(value, task.compared)]
        for number in range(1, routing.samples):
            other = replace(task, seed=task.seed + number * SEED_STEP)
            call, answer, _ = await self._call(self._turn(other, (turn.decision, turn.route), turn.messages))
            calls.append(call)
            try:
                found.append(_compared(read_reply(answer, task.schema), task.compared))
            except Misfit:
                found.append(object())
        agree = max(found.count(each) for each in found) / len(found)
        if agree >= routing.least_agreement:
            return ""
        return f"{len(found)} replies of the local tier agree on {', '.join(task.compared)} in {agree:.0%} only"

    async def _routed(self, task: Task) -> tuple[Decision, Route]:
        """Return the decision on a task, once those that may see it have proved what they run."""
        attested = await self._attested(task)
        try:
            return self._decider.route(task, attested=attested)
        except Confidential:
            if any(each.attestation for each in self._config.models.values()):
                raise await self._waits(task) from None
            raise

    async def _attested(self, task: Task) -> frozenset[str]:
        """Return the models that prove what they run, where that makes a difference."""
        return await self._attestations.hold() if is_bound(task) else frozenset()

    async def _waits(self, task: Task, said: str = "") -> ConfidentialWaits:
        seen = (self._providers.keys(), self._environment, redacted)
        return await waiting(task, self._config.models, self._attestations, seen, said)

    async def _sent(self, turn: _Turn) -> Answer:
        """Send a call to the models of its route that may still see it: a proof may have ended since it was routed."""
        task, models = turn.task, [turn.route.name, *turn.route.fallbacks]
        proving = is_bound(task) or any(self._config.models[name].attestation for name in models)
        held = await self._attestations.hold() if proving else frozenset()
        open_to = [
            name
            for name in models
            if not barred(self._config.models[name], task.sensitivity, task.jurisdiction, name in held)
        ]
        if open_to[:1] != models[:1]:
            raise await self._waits(task)
        for name in held:
            if proof := self._attestations.proof(name):
                self._backend.pin(name, proof.channel, proof.certificate)
        try:
            messages = [message.record() for message in turn.messages]
            route = Route(turn.route.name, tuple(open_to[1:]))
            return await self._backend.send(task, messages, route, response_format(task.schema))
        except ModelFailed as error:
            if is_bound(task) and type(error) is ModelFailed:
                raise await self._waits(task, error.message) from None
            raise

    def _turn(self, task: Task, decided: tuple[Decision, Route], messages: tuple[Message, ...]) -> _Turn:
        """Return one call with its request in the one spelling that is hashed."""
        decision, route = decided
        request: dict[str, Any] = {
            "model": self._config.models[route.name].model,
            "messages": [message.record() for message in messages],
            "schema": task.schema.model_json_schema(),
            "sampling": task.sampling(),
        }
        return _Turn(task, decision, route, messages, canonical_json(request))

    async def _call(self, turn: _Turn) -> tuple[ModelCall, Answer, bool]:
        """Return the recorded call and its answer, sending it only if the ledger does not hold it."""
        async with self._alone(turn.key):
            while True:
                call = await self._recall(turn)
                if call is not None:
                    return call, self._stored(call), True
                sent = await self._send(turn)
                if sent is not None:
                    return *sent, False

    async def _recall(self, turn: _Turn) -> ModelCall | None:
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
        call = replace(
            other, run=task.run, role=task.role, intent=task.intent, prompt=task.prompt, attempts=0, tenant=task.tenant
        )
        await self._account(task.run).enter(call, self._note(turn))
        return call

    async def _send(self, turn: _Turn) -> tuple[ModelCall, Answer] | None:
        """Send a call within the caps, and record it before anyone sees its answer; None if it was answered elsewhere."""
        task = turn.task
        if self._backend.holds_key([message.content for message in turn.messages]):
            raise Confidential(
                "a message holds the key of a model; it was not sent", field=f"{task.role}/{task.intent}"
            )
        account = self._account(task.run)
        async with account.reserve(turn.key, self._worst(turn), self._longest(turn), task.tenant) as hold:
            if hold is None:
                return None
            answer = await self._sent(turn)
            call = self._record(turn, answer)
            account.settle(hold, call, self._note(turn))
        return call, answer

    def _record(self, turn: _Turn, answer: Answer) -> ModelCall:
        """Store the bodies, then return the row that names them: a row never names what is not there."""
        task = turn.task
        body = {"text": answer.text, "finish": answer.finish}
        price_in, price_out = self._backend.price(answer.model)
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
            tenant=task.tenant,
        )

    def _note(self, turn: _Turn) -> Event:
        """Return what says why a call went where it did."""
        return Event(turn.task.run, ROUTED, turn.key, turn.decision.record())

    def _stored(self, call: ModelCall) -> Answer:
        """Return the answer that the ledger keeps."""
        body = json.loads(self._ledger.get(call.reply))
        return Answer(body["text"], body["finish"], call.tokens_in, call.tokens_out, call.model, call.attempts)

    def _account(self, run: str) -> Account:
        """Return a run's account; what is spent is in the ledger.

        A run that was never started is refused here, before a call is paid for that nothing could record.
        """
        if run not in self._accounts:
            self._ledger.require(run)
            self._accounts[run] = Account(self._ledger, self._config.budget, run)
        return self._accounts[run]

    def _worst(self, turn: _Turn) -> Amount:
        """Return the most that a call can take: a token is seldom less than two bytes, and the dearest model answers."""
        size = len(canonical_json([message.record() for message in turn.messages]).encode())
        tokens_in, tokens_out = size // 2, turn.task.max_tokens
        prices = [self._backend.price(name) for name in (turn.route.name, *turn.route.fallbacks)]
        usd = max(tokens_in * price_in + tokens_out * price_out for price_in, price_out in prices)
        return Amount(1, tokens_in + tokens_out, usd)

    def _longest(self, turn: _Turn) -> float:
        """Return the most seconds that a call can take, retries and fallbacks included."""
        models, tries = 1 + len(turn.route.fallbacks), 1 + self._config.retries
        return models * tries * self._config.timeout_seconds + 60.0

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


def _compared(value: BaseModel, members: tuple[str, ...]) -> str:
    """Return the members of a reply that are compared, spelled one way."""
    told = value.model_dump(mode="json")
    return canonical_json({name: told.get(name) for name in members})
