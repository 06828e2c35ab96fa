"""Questions to models: the typed task, retries, branches asked at once, and the handling of unusable replies.

`ask_model` turns a question into a task for the router. `ask_with_retries` repeats calls that were late or failed.
`BranchBarrier` lets every branch of a super-step end before any error is raised, since a call that is paid for is read
to its end. A failed branch is given up if another one was answered. If none was, the endpoint is at fault: nothing is
recorded, the error is raised, and the run can be resumed. A search without any draft stops in the same way
(`is_fruitless`); its question gets another seed when the run is resumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from ..router import AccessRefused, BudgetEnded, ModelFailed, ReplyRefused, RequestRefused, Task
from ..router.calls import ReplyShape, Sensitivity, build_reply_grammar, find_strictest
from .errors import NodeTimedOut, NoUsableReply
from .records import iterate_branches, read_proposal, round_for_prompt
from .search_context import Json, SearchContext

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

MAX_FAILURE_REASON_CHARS = 500
"""Characters of an error that are kept; providers return whole pages."""

MIN_FRUITLESS_ROUNDS = 2
"""Rounds after which a search stops if nothing was ever drafted; a shorter search stops in its last round."""

QUESTION_WORDS = {
    "agents.ideas": "hypotheses of {}",
    "agents.mechanisms": "mechanisms of data-mined candidates for {}",
    "agents.drafts": "formulas for {}",
    "agents.critique": "a critique of {}",
}
"""By kind of event: what the question asked for."""

COMPARED_MEMBERS = {"critique": ("keep",)}
"""By intent: the members in which several replies of a small model must agree; a branch ends by this one."""
HEDGED = frozenset({"repair", "summary"})
"""Intents of short questions that hold up a step: a second model may be asked if the first is late (`health.hedge`)."""
CODE_PLACES = frozenset({"Candidate.text"})
"""Texts of replies that may be code, of several lines."""
MAX_LOST_SHOWN = 3

FAULTS = (ModelFailed, NodeTimedOut, NoUsableReply)
"""Errors that cost one branch only; any other ends the search, which can be resumed."""

TOLD_SENSITIVITY = "told_label"
"""Key, in a round's recall, of the strictest label of all texts shown in the run so far; absent: public."""


@dataclass(frozen=True)
class Question:
    """One question of an agent.

    Attributes
    ----------
    key
        Names the piece of work and fixes its seed.
    more
        Prompts after the role's own.
    refused
        How often the results of this piece of work were refused.
    sensitivity
        Label of the question's own context.
    items, texts
        Where a server enforces a grammar: the most items of a reply, and the grammars of its texts.
    check
        Returns why a small model's reply is of no use to the search; see `Task`.
    """

    role: str
    intent: str
    key: str
    schema: type[BaseModel]
    context: Json
    more: tuple[str, ...] = ()
    refused: int = 0
    sensitivity: Sensitivity = "public"
    items: int = 0
    texts: Callable[[], Mapping[str, str]] | None = None
    check: Callable[[Any], Awaitable[str]] | None = None

    def grammar(self) -> str:
        """Return the grammar of the replies."""
        texts = self.texts() if self.texts else {}
        return build_reply_grammar(ReplyShape(self.schema, self.items, texts, CODE_PLACES), Task.max_tokens)


async def ask_model(search: SearchContext, question: Question) -> Json:
    """Return the reply as plain data; `{"failed": reason}` or `{"ended": reason}` if there is none.

    A model that cannot meet its schema costs one branch, not the campaign. A spent budget closes the campaign. A call
    that is too slow or fails is repeated; the last failure is raised, and so is an error that no retry can heal.
    """
    prompt, place = search.own.prompt(question.role, *question.more), f"{question.role}/{question.key}"
    anew = count_rests(search, place)
    task = Task(
        role=question.role,
        intent=question.intent,
        messages=prompt.messages(round_for_prompt(question.context)),
        schema=question.schema,
        prompt=prompt.digest,
        run=search.run,
        seed=search.seed_for(f"{question.key}/anew{anew}" if anew else question.key),
        refused=question.refused,
        sensitivity=find_question_sensitivity(search, question.key, question.sensitivity),
        jurisdiction=search.config.jurisdiction,
        compared=COMPARED_MEMBERS.get(question.intent, ()),
        check=question.check,
        idempotent=question.intent in HEDGED,
        tenant=search.config.tenant,
        grammar=question.grammar,
    )
    try:
        reply = await ask_with_retries(search, place, lambda: search.asker.ask(task))
    except BudgetEnded as error:
        return {"ended": str(error)}
    except ReplyRefused as error:
        return {"failed": str(error)}
    value: dict[str, Any] = reply.value.model_dump(mode="json")
    return value


async def ask_with_retries(search: SearchContext, key: str, ask: Callable[[], Awaitable[T]]) -> T:
    """Return the answer of `ask` within the time of a node; repeat it after a timeout or a transient failure.

    A late call is cancelled before the next is made. Failures are recorded in the journal under the key and a number,
    which continues when the run is resumed.

    Raises
    ------
    NodeTimedOut, ModelFailed
        The last failure, when the retries are used up or would not help.
    """
    for retries_left in range(search.config.node_retries, -1, -1):
        try:
            return await _ask_in_time(search.config.node_timeout_seconds, key, ask)
        except (NodeTimedOut, ModelFailed) as error:
            number = record_failure(search, key, error)
            if not retries_left or isinstance(error, RequestRefused | AccessRefused):
                raise
            tries = search.config.node_retries - retries_left
            search.progress("asked again", {"branch": key, "try": number, "reason": _shorten_reason(error)})
        await asyncio.sleep(search.config.node_backoff_seconds * 2**tries)
    raise AssertionError("the last try returns or raises")


async def _ask_in_time(seconds: float, key: str, ask: Callable[[], Awaitable[T]]) -> T:
    """Return the answer within some seconds; a late call is cancelled, and its end awaited."""
    try:
        async with asyncio.timeout(seconds):
            return await ask()
    except TimeoutError as error:
        raise NodeTimedOut(
            f"no answer to {key} within {seconds:g} seconds",
            field="agents.node_timeout_seconds",
            got=seconds,
            hint="Raise agents.node_timeout_seconds if the model is only slow; resume the run to ask again.",
        ) from error


def record_failure(search: SearchContext, key: str, error: Exception) -> int:
    """Record a failure under the next free number, and return the number."""
    number = 1
    while search.journal.read("failure", f"{key}/{number}") is not None:
        number += 1
    search.journal.record(
        "failure", f"{key}/{number}", {"error": type(error).__name__, "reason": _shorten_reason(error)}
    )
    return number


def _shorten_reason(error: Exception) -> str:
    return str(error)[:MAX_FAILURE_REASON_CHARS]


def is_fruitless(search: SearchContext, round_number: int) -> bool:
    """Return whether no branch of an earlier round drafted anything although enough rounds have passed."""
    if search.own.seeds or round_number < min(search.config.rounds, MIN_FRUITLESS_ROUNDS):
        return False
    earlier = (branch for number in range(1, round_number) for branch in iterate_branches(search.journal, number, "h"))
    return not any(read_proposal(search.journal, f"{branch}/s0/a0", "drafts").items for branch in earlier)


def count_rests(search: SearchContext, key: str) -> int:
    """Return how often the search stopped because no reply to a question was usable."""
    number, count = 1, 0
    while (failure := search.journal.read("failure", f"{key}/{number}")) is not None:
        count += failure.get("error") == NoUsableReply.__name__
        number += 1
    return count


def describe_unusable_replies(events: Iterable[tuple[str, str, Mapping[str, Any]]]) -> list[str]:
    """Return warnings about questions without a usable reply, from the agents' records (kind, key, body)."""
    questions = [(kind, key, body) for kind, key, body in events if kind in QUESTION_WORDS]
    lost = [(kind, key, body) for kind, key, body in questions if body.get("failed") and not body.get("given_up")]
    if not lost:
        return []
    examples = [QUESTION_WORDS[kind].format(key) for kind, key, _ in lost[:MAX_LOST_SHOWN]]
    more = [f"{len(lost) - MAX_LOST_SHOWN} more"] if len(lost) > MAX_LOST_SHOWN else []
    first = " ".join(str(lost[0][2]["failed"])[:MAX_FAILURE_REASON_CHARS].splitlines()[0].split()).rstrip(":")
    return [f"{len(lost)} of {len(questions)} questions had no usable reply ({', '.join([*examples, *more])}): {first}"]


@dataclass(frozen=True)
class AnswerPlace:
    """Where one branch's answer is recorded: kind and key in the journal, and the keys of all branches of the step."""

    kind: str
    key: str
    all: Sequence[str]


class BranchBarrier:
    """Wait for all branches of a super-step to be answered or to fail; one per process."""

    def __init__(self, search: SearchContext) -> None:
        self._search = search
        self._slots = asyncio.Semaphore(search.config.max_concurrency)
        self._failed: set[tuple[str, str]] = set()
        self._changed = asyncio.Event()

    async def ask_branch(self, place: AnswerPlace, ask: Callable[[], Awaitable[Json]], nothing: Json) -> Json:
        """Return a branch's answer; `nothing` with the reason if it fails for good while others are answered.

        Raises
        ------
        ModelFailed, NodeTimedOut, NoUsableReply
            Of this branch, when no other branch of the step was answered either.
        Exception
            Any error that no retry can heal, once the other branches have ended.
        """
        try:
            async with self._slots:
                answer = await ask()
        except Exception as error:
            self._failed.add((place.kind, place.key))
            self._wake()
            await self._await_others(place)
            if not isinstance(error, FAULTS) or isinstance(error, AccessRefused) or not self._is_any_answered(place):
                if isinstance(error, NoUsableReply):
                    record_failure(self._search, error.place, error)
                raise
            return self._give_up(place, error, nothing)
        self._wake()
        return answer

    def _wake(self) -> None:
        """Wake the branches that wait for the others."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def _await_others(self, place: AnswerPlace) -> None:
        while not all((place.kind, key) in self._failed or self._is_recorded(place.kind, key) for key in place.all):
            await self._changed.wait()

    def _is_recorded(self, kind: str, key: str) -> bool:
        return self._search.journal.read(kind, key) is not None

    def _is_any_answered(self, place: AnswerPlace) -> bool:
        """Return whether any branch of the step was answered; one that was given up before is not counted."""
        return any(
            "given_up" not in (self._search.journal.read(place.kind, key) or {"given_up": True}) for key in place.all
        )

    def _give_up(self, place: AnswerPlace, error: Exception, nothing: Json) -> Json:
        if isinstance(error, NoUsableReply):
            body = {**nothing, "failed": error.said}
            self._search.journal.record(place.kind, place.key, body)
            return body
        reason = str(error)[:MAX_FAILURE_REASON_CHARS]
        body = {**nothing, "failed": reason, "given_up": True}
        self._search.journal.record(place.kind, place.key, body)
        self._search.progress("given up", {"branch": place.key, "reason": reason})
        return body


def find_strictest_sensitivity(search: SearchContext, round_number: int) -> Sensitivity:
    """Return the strictest label of the texts shown in the rounds up to this one."""
    memory = search.journal.read("recall", f"r{round_number:02d}") or {} if search.documents else {}
    label: Sensitivity = memory.get(TOLD_SENSITIVITY, "public")
    return label


def find_question_sensitivity(search: SearchContext, key: str, own: Sensitivity) -> Sensitivity:
    """Return the strictest label among the campaign's, the question's own, and that of the texts shown in its round.

    Prompts of later rounds contain earlier hypotheses, and every formula derives from one, so no label is ever
    lowered.
    """
    head = key.partition("/")[0].removeprefix("r")
    round_label = find_strictest_sensitivity(search, int(head)) if head.isdigit() else "public"
    return find_strictest([search.config.sensitivity, own, round_label])
