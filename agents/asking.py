"""One question to a model: the prompt, the context, the schema and the seed as a typed task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from ..router import BudgetEnded, ReplyRefused, Task
from ..router.calls import ReplyShape, Sensitivity, build_reply_grammar
from .memory.refs import round_for_prompt
from .nodes.sensitivity import question_sensitivity
from .protocols import Json, SearchContext
from .retry import ask_with_retries
from .unusable_replies import count_rests


@dataclass(frozen=True)
class Question:
    """What one agent asks.

    `key` names the piece of work and fixes its seed, `more` are prompts after the role's own, `refused` counts how often
    what came of this piece of work was refused; `sensitivity` is that of its own context. Where a server holds the reply to
    a grammar, it has at most `items` items, and its texts are what the grammars of `texts` can write.
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

    def grammar(self) -> str:
        """Return the grammar of the replies."""
        texts = self.texts() if self.texts else {}
        return build_reply_grammar(ReplyShape(self.schema, self.items, texts), Task.max_tokens)


async def ask_model(desk: SearchContext, question: Question) -> Json:
    """Return the reply as plain data; `{"failed": reason}` or `{"ended": reason}` where there is none.

    A model that cannot meet its schema costs one branch, not the campaign. An ended budget closes the campaign. A model
    that is too slow or fails is asked again; what is left after that is raised, and so is what no retry heals.
    """
    prompt, place = desk.own.prompt(question.role, *question.more), f"{question.role}/{question.key}"
    anew = count_rests(desk, place)
    task = Task(
        role=question.role,
        intent=question.intent,
        messages=prompt.messages(round_for_prompt(question.context)),
        schema=question.schema,
        prompt=prompt.digest,
        run=desk.run,
        seed=desk.seed_for(f"{question.key}/anew{anew}" if anew else question.key),
        refused=question.refused,
        sensitivity=question_sensitivity(desk, question.key, question.sensitivity),
        jurisdiction=desk.config.jurisdiction,
        tenant=desk.config.tenant,
        grammar=question.grammar,
    )
    try:
        reply = await ask_with_retries(desk, place, lambda: desk.asker.ask(task))
    except BudgetEnded as error:
        return {"ended": str(error)}
    except ReplyRefused as error:
        return {"failed": str(error)}
    value: dict[str, Any] = reply.value.model_dump(mode="json")
    return value
