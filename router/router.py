"""The router: it routes one task, keeps it within the budget, records it, and validates and repairs the reply."""

from __future__ import annotations

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
from .calls.recorded_calls import Calls, Turn
from .calls.replies import Misfit, ModelAnswer, Refusal, build_repair_request, quote_reply, read_reply
from .calls.task import Message, Reply, Task
from .config import RouterConfig
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
"""Distance between the seeds of compared replies: large, so that they do not meet the seeds of other tasks."""


@dataclass
class _TaskCalls:
    """The calls of one task so far, the one with the reply last, and how many of them were sent now."""

    calls: list[ModelCall] = field(default_factory=list)
    sent: int = 0
    refusals: dict[str, str] = field(default_factory=dict)
    """By model: the words in which it refused."""
    misfit: str = ""
    """Why the last reply of the other models does not fit."""

    def add(self, call: ModelCall, *, cached: bool) -> None:
        """Append a call; one from the ledger (`cached`) does not count as sent."""
        self.calls.append(call)
        self.sent += not cached

    def settle(self, doubted: tuple[BaseModel, ModelCall] | None, misfit: Misfit) -> BaseModel | Misfit:
        """Return the reply in doubt, since the tier above is down, too dear or gave none that fits; else the misfit."""
        if doubted is None:
            return misfit
        value, call = doubted
        self.calls.remove(call)
        self.calls.append(call)  # the last one has the reply
        return value

    @property
    def models(self) -> list[str]:
        """The models that answered, in order."""
        return list(dict.fromkeys(call.model for call in self.calls))


@dataclass
class _Place:
    """The tier that a task is asked of, and the lower tier that it came up from because nothing fitted there."""

    decided: RoutedDecision
    below: RoutedDecision | None = None

    def move_up(self, decided: RoutedDecision | None) -> None:
        if decided is not None:
            self.decided, self.below = decided, self.decided


class Router:
    """Answers typed tasks. A call that the ledger holds is never sent again.

    Parameters
    ----------
    config : RouterConfig
        Models, roles, caps.
    ledger : Ledger
        Keeps every call: the response cache, and the authority on spending.
    providers : mapping of str to callable
        Factories of providers that run in this process, by the word before the slash in a model's name.
    environment : mapping of str to str, optional
        Environment variables with the keys; the process's own by default.
    verifier : AttestationVerifier, optional
        Checks the proofs of models with `attestation`; signed statements by default.
    clock : callable, optional
        Returns the time, aware, by which proofs end; this machine's by default.
    timing : Timing, optional
        Clock, sleep and jitter for rests, retries and probes of servers; the machine's by default.
    """

    def __init__(  # noqa: PLR0913 - what it depends on is passed in
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
            If the task may not leave this machine and no model here is configured, or it contains a key.
        ConfidentialWaits
            If the models that may see it are down, or have no proof.
        BudgetEnded
            If the next call could exceed a cap; nothing was sent.
        ModelFailed
            If no model replied, after retries and fallback. `RequestRefused` and `AccessRefused`: asking again is of no
            use.
        ReplyRefused
            If no reply fits, after two repairs by each model that may be asked; a model that refuses is asked once.
        """
        decided, goes_up = self._escalation.begin(task, await self._route_task(task))
        calls = _TaskCalls()
        outcome = await self._try_route(task, decided, goes_up, calls)
        failed = ""
        while isinstance(outcome, Misfit) and (next_decision := self._decider.move_past(*decided, calls.models)):
            decided = next_decision
            try:
                outcome = await self._try_route(task, decided, False, calls)
            except (ModelFailed, BudgetEnded) as error:  # report the misfit, which a later task may not have
                failed = f"\n{error.message}"
                break
        if not isinstance(outcome, Misfit):
            return self._build_reply(outcome, calls)
        raise ReplyRefused(
            redact_text(_describe_misfits(task, calls) + failed),
            field=f"{task.role}/{task.intent}",
            hint="The replies lie in the workspace (or in the table objects of its database): "
            f"{_list_reply_files(calls.calls)}",
        )

    async def _try_route(
        self, task: Task, decided: RoutedDecision, goes_up: bool, calls: _TaskCalls
    ) -> BaseModel | Misfit:
        """Ask the models of a route until one answers, and let it repair its reply."""
        messages = task.messages
        misfit = Misfit("")
        place = _Place(decided)
        doubted: tuple[BaseModel, ModelCall] | None = None  # a reply of the lower tier that fits but is in doubt
        for tries in range(1 + MAX_REPAIRS):
            try:
                turn, call, answer, cached = await self._ask_tier(task, place, messages)
            except (ModelFailed, BudgetEnded) as error:
                if doubted is None or isinstance(error, AccessRefused):  # a person has to mend the key: report it now
                    raise
                break
            calls.add(call, cached=cached)
            try:
                value = read_reply(answer, task.schema)
            except Refusal as error:
                self._escalation.note(task, turn.decision, call, valid=False)
                calls.refusals[call.model], misfit = str(error), error
                break
            except Misfit as error:
                calls.misfit, misfit = str(error), error
            else:
                above = await self._move_useless_up(turn, call, value, goes_up)
                if above is not None:
                    return await self._try_route(task, above, False, calls)
                why = await self._find_doubt(turn, value, calls) if goes_up and tries < MAX_REPAIRS else ""
                raised = self._decider.move_up(*place.decided, why) if why else None
                self._escalation.note(task, turn.decision, call, valid=raised is None)
                if raised is None:
                    return value
                place, goes_up, misfit, doubted = _Place(raised), False, Misfit(why), (value, call)
                continue
            self._escalation.note(task, turn.decision, call, valid=False)
            if goes_up and tries + 1 == self._config.routing.local_tries:
                why = f"{tries + 1} replies of the local tier did not fit; the last: {misfit}"
                place.move_up(self._decider.move_up(*place.decided, why))
            reply = Message("assistant", quote_reply(answer.text, task.max_tokens) or "(nothing)")
            messages = (*messages, reply, Message("user", build_repair_request(misfit)))
        return calls.settle(doubted, misfit)

    async def _ask_tier(
        self, task: Task, place: _Place, messages: tuple[Message, ...]
    ) -> tuple[Turn, ModelCall, ModelAnswer, bool]:
        """Ask the models of a place in the route; go back to the lower tier if those above it fail."""
        turn = self._calls.build_turn(task, place.decided, messages)
        try:
            return turn, *await self._calls.make(turn)
        except (ModelFailed, BudgetEnded) as error:
            if place.below is None or isinstance(error, AccessRefused):
                raise
        place.decided, place.below = place.below, None
        turn = self._calls.build_turn(task, place.decided, messages)
        return turn, *await self._calls.make(turn)

    def spend(self, run: str) -> Spend:
        """Return the bill of a run's recorded calls."""
        return sum_run(self._ledger.calls.of(run))

    async def close(self) -> None:
        """Close the connections to the models."""
        await self._calls.close()

    async def _find_doubt(self, turn: Turn, value: BaseModel, calls: _TaskCalls) -> str:
        """Ask a small model again with other seeds, and return why its reply is in doubt; empty if it is not.

        Nothing is asked where no tier is above. Only the members that the task names are compared. A reply that does
        not fit, or does not come, agrees with no other. These calls are counted with the rest.
        """
        task, routing = turn.task, self._config.routing
        if not task.compared or self._decider.move_up(turn.decision, turn.route, "") is None:
            return ""
        spellings: list[object] = [_spell_compared(value, task.compared)]
        for number in range(1, routing.samples):
            other = replace(task, seed=task.seed + number * SEED_STEP)
            again = self._calls.build_turn(other, (turn.decision, turn.route), turn.messages)
            try:
                call, answer, _ = await self._calls.make(again)
                calls.calls.insert(-1, call)
                spellings.append(_spell_compared(read_reply(answer, task.schema), task.compared))
            except (Misfit, ModelFailed):
                spellings.append(object())
            except BudgetEnded:  # no money left to compare: the reply stands
                return ""
        agree = max(spellings.count(spelling) for spelling in spellings) / len(spellings)
        if agree >= routing.least_agreement:
            return ""
        return f"{len(spellings)} replies of the local tier agree on {', '.join(task.compared)} in {agree:.0%} only"

    async def _move_useless_up(
        self, turn: Turn, call: ModelCall, value: BaseModel, goes_up: bool
    ) -> RoutedDecision | None:
        """Return the tier above where a small model's reply is of no use, which is recorded as a failure; else None.

        That tier begins anew: a reply of no use never stands in for its own, whatever becomes of it.
        """
        check = turn.task.check
        if not goes_up or check is None or self._decider.move_up(turn.decision, turn.route, "") is None:
            return None
        useless = await check(value)
        if not useless:
            return None
        self._escalation.note(turn.task, turn.decision, call, valid=False)
        return self._decider.move_up(turn.decision, turn.route, f"the reply of the local tier is of no use: {useless}")

    async def _route_task(self, task: Task) -> tuple[RoutingDecision, Route]:
        """Return the decision on a task, after requesting the proofs that it depends on."""
        attested = await self._access.find_attested(task)
        try:
            return self._decider.route(task, attested=attested)
        except Confidential:
            if any(settings.attestation for settings in self._config.models.values()):
                raise await self._access.explain_waiting(task) from None
            raise

    def _build_reply(self, value: BaseModel, calls: _TaskCalls) -> Reply[Any]:
        """Return the reply with the tokens and price of all its calls."""
        recorded = calls.calls
        last = recorded[-1]
        return Reply(
            value=value,
            key=last.key,
            model=last.model,
            tier=last.tier,
            cost_usd=sum(call.cost_usd for call in recorded),
            tokens_in=sum(call.tokens_in for call in recorded),
            tokens_out=sum(call.tokens_out for call in recorded),
            cached=not calls.sent,
            repairs=len(recorded) - 1,
        )


def _spell_compared(value: BaseModel, members: tuple[str, ...]) -> str:
    """Return the compared members of a reply as canonical JSON."""
    record = value.model_dump(mode="json")
    return canonical_json({name: record.get(name) for name in members})


def _describe_misfits(task: Task, calls: _TaskCalls) -> str:
    """Return why no reply is of use: the words of models that refused, and why the last reply of the others misfits."""
    tried = [model for model in calls.models if model not in calls.refusals]
    lines = [f"{model} gave no reply: {words}" for model, words in calls.refusals.items()]
    if tried:
        models = " and ".join(tried)
        lines.append(
            f"{models} gave no reply that fits {task.schema.__name__}, after {MAX_REPAIRS} repairs:\n{calls.misfit}"
        )
    return "\n".join(lines)


def _list_reply_files(calls: Sequence[ModelCall]) -> str:
    return ", ".join(dict.fromkeys(f"objects/{call.reply[:2]}/{call.reply[2:]}" for call in calls))
