"""Each call once: found in the ledger, or reserved within the caps, sent, and recorded before its answer is returned."""

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
from .task import Message, Task

ROUTE_EVENT = "route"
"""The kind of event under which a run keeps the decision on each of its calls, by the call's key."""
LOST_CALL = "lost"
"""The finish reason of a call that ended without an answer."""


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
        """The hash of model, messages, schema, sampling and seed."""
        return compute_digest(self.request)

    def records(self) -> list[dict[str, str]]:
        """Return the messages as they are sent."""
        return [message.record() for message in self.messages]


class Calls:
    """Makes the calls of many runs; a call that the ledger holds is never sent again.

    Parameters
    ----------
    config : RouterConfig
        Models and caps.
    ledger : Ledger
        Keeps every call; it is the response cache and the authority on what was spent.
    providers, environment, timing
        As those of `Router`.
    access : Access
        Who may see what.
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
        """LiteLLM, connected when the first call is sent: a resumed run may need none."""
        return ModelBackend(*self._backend_of)

    def spent_usd(self, run: str) -> float:
        """Return the US dollars that a run's recorded calls took, without reading them again."""
        return self._account(run).spent.usd

    async def close(self) -> None:
        """Close the connections to the models."""
        if "_backend" in self.__dict__:
            await self._backend.close()

    def build_turn(self, task: Task, decided: tuple[RoutingDecision, Route], messages: tuple[Message, ...]) -> Turn:
        """Return one call with its request in the one spelling that is hashed."""
        decision, route = decided
        request: dict[str, Any] = {
            "model": self._config.models[route.name].model,
            "messages": [message.record() for message in messages],
            "schema": task.schema.model_json_schema(),
            "sampling": task.sampling(),
        }
        if address := self._config.models[route.name].api_base:  # a name of a model says nothing of whose server it is
            request["address"] = address
        grammar = _grammar(task) if request["model"].startswith(GRAMMAR_PROVIDER) else ""
        request |= {"grammar": compute_digest(grammar)} if grammar else {}
        return Turn(task, decision, route, messages, canonical_json(request), grammar)

    async def make(self, turn: Turn) -> tuple[ModelCall, ModelAnswer, bool]:
        """Return the recorded call, its answer, and whether the ledger held it; it is sent only where it did not.

        Raises
        ------
        UnknownRun, NoModel, Confidential, ConfidentialWaits, BudgetEnded, ModelFailed
            As `Router.ask` does.
        """
        async with self._alone(turn.key):
            while True:
                call = await self._recall(turn)
                if call is not None:
                    return call, self._stored(call), True
                sent = await self._send(turn)
                if sent is not None:
                    return *sent, False

    async def _recall(self, turn: Turn) -> ModelCall | None:
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
        await self._account(task.run).enter(call, _note(turn, turn.key))
        return call

    async def _send(self, turn: Turn) -> tuple[ModelCall, ModelAnswer] | None:
        """Send a call within the caps, and record it before anyone sees its answer; None if it was answered elsewhere."""
        task = turn.task
        if self._backend.holds_key([message.content for message in turn.messages]):
            raise Confidential(
                "a message holds the key of a model; it was not sent", field=f"{task.role}/{task.intent}"
            )
        account = self._account(task.run)
        first = _amount([self._backend.charges.bound_cost(turn.route.name, task, turn.records())])
        longest = self._backend.max_call_seconds(turn.route)
        async with account.reserve(turn.key, first, longest, task.tenant) as held:
            if held is None:
                return None
            tab = CallCosts(lambda attempts: account.covers(held, _amount(attempts)))
            try:
                answer = await self._sent(turn, tab)
                call = self._record(turn, turn.key, answer)
                account.settle(held, call, _note(turn, call.key))
            except BaseException:
                self._charge_lost(turn, account, held, tab.beside)
                raise
        return call, answer

    async def _sent(self, turn: Turn, tab: CallCosts) -> ModelAnswer:
        """Send a call to the models of its route that may still see it."""
        task = turn.task
        names, proofs = await self._access.list_open(task, [turn.route.name, *turn.route.fallbacks])
        for name, proof in proofs.items():
            self._backend.pin(name, proof.channel, proof.certificate)
        try:
            route = Route(names[0], tuple(names[1:]))
            still = partial(self._access.may_see, task)
            return await self._backend.send(task, turn.records(), route, tab, turn.grammar, still)
        except ModelFailed as error:
            if is_bound(task) and type(error) is ModelFailed:
                raise await self._access.explain_waiting(task, error.message) from None
            raise

    def _charge_lost(self, turn: Turn, account: RunAccount, held: Reservation, unseen: Sequence[HedgedAttempt]) -> None:
        """Record what may be on the bill of a call that nobody answered, under keys that no task asks for."""
        if not unseen:
            return
        number = 1
        while self._ledger.call(key := compute_digest(f"{turn.key} {LOST_CALL} {number}"), turn.task.run):
            number += 1
        nothing = ModelAnswer("", LOST_CALL, 0, 0, unseen[0].model, attempts=len(unseen), beside=tuple(unseen))
        account.settle(held, self._record(turn, key, nothing), _note(turn, key))

    def _record(self, turn: Turn, key: str, answer: ModelAnswer) -> ModelCall:
        """Store the bodies, then return the row that names them: a row never names what is not there."""
        task = turn.task
        body: dict[str, Any] = {"text": answer.text, "finish": answer.finish}
        if answer.beside:
            body["beside"] = [asdict(each) for each in answer.beside]
        body |= {name: each for name in ("cached", "written") if (each := getattr(answer, name))}
        if turn.grammar:
            self._ledger.put(turn.grammar.encode())
        tokens_in, tokens_out, cost = self._backend.charges.total(answer)
        return ModelCall(
            key=key,
            run=task.run,
            role=task.role,
            intent=task.intent,
            tier=self._config.models[answer.model].tier,
            model=answer.model,
            prompt=task.prompt,
            request=self._ledger.put(turn.request.encode()),
            reply=self._ledger.put(canonical_json(body).encode()),
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            cost_usd=cost,
            attempts=answer.attempts,
            tenant=task.tenant,
        )

    def _stored(self, call: ModelCall) -> ModelAnswer:
        """Return the answer that the ledger keeps."""
        body = json.loads(self._ledger.get(call.reply))
        return ModelAnswer(
            body["text"], body["finish"], call.tokens_in, call.tokens_out, call.model, attempts=call.attempts
        )

    def _account(self, run: str) -> RunAccount:
        """Return a run's account; what is spent is in the ledger.

        A run that was never started is refused here, before a call is paid for that nothing could record.
        """
        if run not in self._accounts:
            self._ledger.require(run)
            self._accounts[run] = RunAccount(self._ledger, self._config.budget, run)
        return self._accounts[run]

    def _alone(self, key: str) -> asyncio.Lock:
        """Return the lock that lets one task at a time ask for a key; the others find the answer in the ledger."""
        lock = self._under_way.get(key)
        if lock is None:
            lock = self._under_way[key] = asyncio.Lock()
        return lock


def _amount(attempts: Sequence[HedgedAttempt]) -> Amount:
    """Return what the attempts of one call can take as what is held for it."""
    tokens = sum(each.tokens_in + each.tokens_out for each in attempts)
    return Amount(1, tokens, sum(each.cost_usd for each in attempts))


def _note(turn: Turn, key: str) -> Event:
    """Return what says why a call went where it did."""
    return Event(turn.task.run, ROUTE_EVENT, key, turn.decision.record())


def _grammar(task: Task) -> str:
    """Return what the reply is held to by a server that can: a grammar of the task's own, or that of its schema."""
    return task.grammar() if task.grammar else build_schema_grammar(task.schema, task.max_tokens)
