"""The router: one task is routed, kept within the budget, recorded, validated and repaired."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from ..ledger import Ledger, ModelCall, canonical_json
from .attestation import Attestations, AttestationVerifier
from .calls.backend import Providers
from .calls.calls import Calls, Turn
from .calls.replies import Misfit, build_repair_request, quote_reply, read_reply
from .calls.task import Message, Reply, Task
from .config import RouterConfig
from .endpoints.health import Health, probe_model
from .errors import AccessRefused, BudgetEnded, Confidential, ModelFailed, ReplyRefused
from .policy.decision import Decider, RoutingDecision
from .policy.eligibility import Access, Route
from .policy.escalation import EscalationPolicy, RoutedDecision
from .redaction import redact_text
from .signed_statements import SignedStatements
from .spend import Spend, sum_run
from .timing import Timing

MAX_REPAIRS = 2
SEED_STEP = 1_000_003
"""Between the seeds of replies that are compared: far from those that other work draws."""


@dataclass
class _TaskCalls:
    """The calls of one task so far, the one that holds the reply last, and how many of them were sent now."""

    calls: list[ModelCall] = field(default_factory=list)
    sent: int = 0

    def add(self, call: ModelCall, *, cached: bool) -> None:
        """Note a call."""
        self.calls.append(call)
        self.sent += not cached

    def go_back_to(self, call: ModelCall) -> None:
        """Take an earlier call for the one that holds the reply."""
        self.calls.remove(call)
        self.calls.append(call)

    @property
    def models(self) -> list[str]:
        """The models that answered, in order."""
        return list(dict.fromkeys(call.model for call in self.calls))


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
    verifier : AttestationVerifier, optional
        What checks the proofs of models with `attestation`; signed statements by default.
    clock : callable, optional
        The time, aware, by which proofs end; this machine's by default.
    timing : Timing, optional
        Clock, sleep and chance for rests, retries and looks at servers; the machine's by default.
    """

    def __init__(
        self,
        config: RouterConfig,
        ledger: Ledger,
        *,
        providers: Providers | None = None,
        environment: Mapping[str, str] | None = None,
        verifier: AttestationVerifier | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        timing: Timing | None = None,
    ) -> None:
        self._config = config
        self._ledger = ledger
        self._providers = dict(providers or {})
        self._environment = os.environ if environment is None else environment
        self._decider = Decider(config)
        self._escalation = EscalationPolicy(config, self._decider, ledger)
        proofs = Attestations(
            config.models,
            verifier or SignedStatements(clock),
            clock,
            lambda: secrets.token_hex(32),
            config.timeout_seconds,
        )
        self._access = Access(config.models, proofs, self._providers.keys(), self._environment)
        self._calls = Calls(config, ledger, self._providers, self._environment, timing or Timing(), self._access)

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
            If no reply fits, after two repairs at each model that may be asked.
        """
        decided, goes_up = self._escalation.begin(task, await self._route_task(task))
        taken = _TaskCalls()
        said = await self._tries(task, decided, goes_up, taken)
        while isinstance(said, Misfit) and (further := self._decider.move_past(*decided, taken.models)):
            decided = further
            try:
                said = await self._tries(task, decided, False, taken)
            except (ModelFailed, BudgetEnded) as error:  # what was said before stands: a later task may fit
                said = Misfit(f"{said}\n{error.message}")
                break
        if not isinstance(said, Misfit):
            return self._reply(said, taken)
        raise ReplyRefused(
            f"{' and '.join(taken.models)} gave no reply that fits {task.schema.__name__}, after {MAX_REPAIRS} repairs:\n{redact_text(str(said))}",
            field=f"{task.role}/{task.intent}",
            hint=f"The replies lie in the workspace (or in the table objects of its database): {_reply_files(taken.calls)}",
        )

    async def _tries(self, task: Task, decided: RoutedDecision, goes_up: bool, taken: _TaskCalls) -> BaseModel | Misfit:
        """Ask the first model of a route, or the next where it does not answer, and let it repair its reply."""
        messages = task.messages
        misfit = Misfit("")
        below: RoutedDecision | None = None  # the tier that was left
        doubted: tuple[BaseModel, ModelCall] | None = None  # its reply, which fits and is not relied on
        for tries in range(1 + MAX_REPAIRS):
            turn = self._calls.build_turn(task, decided, messages)
            try:
                call, answer, cached = await self._calls.make(turn)
            except (ModelFailed, BudgetEnded) as error:
                if isinstance(error, AccessRefused):  # a wrong key is told at once
                    raise
                if doubted is not None:
                    break
                if below is None:
                    raise
                decided, below = below, None
                turn = self._calls.build_turn(task, decided, messages)
                call, answer, cached = await self._calls.make(turn)
            taken.add(call, cached=cached)
            try:
                value = read_reply(answer, task.schema)
            except Misfit as error:
                misfit = error
            else:
                why = await self._find_doubt(turn, value, taken) if goes_up and tries < MAX_REPAIRS else ""
                raised = self._decider.move_up(*decided, why) if why else None
                self._escalation.note(task, turn.decision, call, valid=raised is None)
                if raised is None:
                    return value
                decided, goes_up, misfit, doubted = raised, False, Misfit(why), (value, call)
                continue
            self._escalation.note(task, turn.decision, call, valid=False)
            if goes_up and tries + 1 == self._config.routing.local_tries:
                why = f"{tries + 1} replies of the local tier did not fit; the last: {misfit}"
                if (raised := self._decider.move_up(*decided, why)) is not None:
                    decided, below = raised, decided
            said = Message("assistant", quote_reply(answer.text, task.max_tokens) or "(nothing)")
            messages = (*messages, said, Message("user", build_repair_request(misfit)))
        if doubted is None:
            return misfit
        value, call = doubted  # the tier above is away, too dear, or says nothing that fits
        taken.go_back_to(call)
        return value

    def spend(self, run: str) -> Spend:
        """Return what a run's recorded calls took."""
        return sum_run(self._ledger.calls(run))

    def usd(self, run: str) -> float:
        """Return the US dollars that a run's recorded calls took, without reading them again."""
        return self._calls.spent_usd(run)

    async def probe(self) -> list[Health]:
        """Return which configured models answer, without a paid call and without asking any other address."""
        looks = [
            probe_model(name, each, self._providers.keys(), self._environment)
            for name, each in self._config.models.items()
        ]
        return list(await asyncio.gather(*looks))

    async def close(self) -> None:
        """Close the connections to the models."""
        await self._calls.close()

    async def _find_doubt(self, turn: Turn, value: BaseModel, taken: _TaskCalls) -> str:
        """Ask a small model the same again with other seeds, and return why its reply is not to be relied on; empty if it is.

        Only what the task says is compared; replies that do not fit, or do not come, agree with none. Their calls are counted
        with the rest.
        """
        task, routing = turn.task, self._config.routing
        if turn.decision.tier != "local" or not task.compared:
            return ""
        found: list[object] = [_spell_compared(value, task.compared)]
        for number in range(1, routing.samples):
            other = replace(task, seed=task.seed + number * SEED_STEP)
            again = self._calls.build_turn(other, (turn.decision, turn.route), turn.messages)
            try:
                call, answer, _ = await self._calls.make(again)
                taken.calls.insert(-1, call)
                found.append(_spell_compared(read_reply(answer, task.schema), task.compared))
            except (Misfit, ModelFailed):
                found.append(object())
            except BudgetEnded:  # a reply that fits is kept: there is no money to doubt it
                return ""
        agree = max(found.count(each) for each in found) / len(found)
        if agree >= routing.least_agreement:
            return ""
        return f"{len(found)} replies of the local tier agree on {', '.join(task.compared)} in {agree:.0%} only"

    async def _route_task(self, task: Task) -> tuple[RoutingDecision, Route]:
        """Return the decision on a task, once those that may see it have proved what they run."""
        attested = await self._access.find_attested(task)
        try:
            return self._decider.route(task, attested=attested)
        except Confidential:
            if any(each.attestation for each in self._config.models.values()):
                raise await self._access.explain_waiting(task) from None
            raise

    def _reply(self, value: BaseModel, taken: _TaskCalls) -> Reply[Any]:
        """Return the reply with what all its calls took."""
        calls = taken.calls
        last = calls[-1]
        return Reply(
            value=value,
            key=last.key,
            model=last.model,
            tier=last.tier,
            cost_usd=sum(call.cost_usd for call in calls),
            tokens_in=sum(call.tokens_in for call in calls),
            tokens_out=sum(call.tokens_out for call in calls),
            cached=not taken.sent,
            repairs=len(calls) - 1,
        )


def _spell_compared(value: BaseModel, members: tuple[str, ...]) -> str:
    """Return the members of a reply that are compared, spelled one way."""
    told = value.model_dump(mode="json")
    return canonical_json({name: told.get(name) for name in members})


def _reply_files(calls: Sequence[ModelCall]) -> str:
    """Say which files of a workspace hold the replies."""
    return ", ".join(dict.fromkeys(f"objects/{call.reply[:2]}/{call.reply[2:]}" for call in calls))
