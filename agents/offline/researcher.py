"""The offline researcher, a model of this process: it reads the prompts of a language model and needs no network."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...router import Completion
from ...router.context import extract_sentences
from .critique import write_critique
from .explanations import explain_candidates
from .formulas import propose_formulas
from .ideas import propose_ideas
from .prompt_context import Context, Json, read_context

OFFLINE_DESCRIPTION = (
    "offline/researcher: a heuristic, not a language model. It proposes from a list of market mechanisms with skeleton "
    "formulas, changes formulas by fixed rules, and understands no text."
)


def summarise(context: Context) -> Json:
    """Return the most informative sentences of the text."""
    return {"summary": extract_sentences(str(context.body.get("untrusted_text", "")))}


ANSWERS: Mapping[str, Callable[[Context], Json]] = {
    "idea": propose_ideas,
    "mechanism": explain_candidates,
    "factor": propose_formulas,
    "repair": propose_formulas,
    "critique": write_critique,
    "summary": summarise,
}


def answer_offline(messages: Sequence[Mapping[str, Any]], seed: int) -> str:
    """Return the reply to a conversation as JSON text; equal messages and seed, equal reply."""
    context = read_context(messages, seed)
    return json.dumps(ANSWERS[context.task](context), ensure_ascii=False, allow_nan=False)


def count_tokens(text: str) -> int:
    """Return the approximate number of tokens of a text, four characters each, so that caps have an effect offline."""
    return -(-len(text) // 4)


class OfflineResearcher:
    """Answers by rule; see `OFFLINE_DESCRIPTION`."""

    async def complete(
        self, model: str, messages: Sequence[Mapping[str, str]], parameters: Mapping[str, Any]
    ) -> Completion:
        """Return the reply to a conversation; equal messages and seed, equal reply."""
        del model
        text = answer_offline(messages, int(parameters.get("seed") or 0))
        prompt_tokens = sum(count_tokens(message["content"]) for message in messages)
        return Completion(text, usage={"prompt_tokens": prompt_tokens, "completion_tokens": count_tokens(text)})
