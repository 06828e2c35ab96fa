"""The offline researcher as a LiteLLM provider: it reads the same prompts as a language model and needs no network."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from ...router.context import extract_sentences
from ..config import OFFLINE_MODEL_NAME
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


def make_researcher() -> Any:
    """Return the provider, a `litellm.CustomLLM`; built here so that litellm is imported only when it is used."""
    from litellm.llms.custom_llm import CustomLLM

    class OfflineResearcher(CustomLLM):
        """Answers completions by rule."""

        def completion(self, *_: Any, **call: Any) -> Any:
            """Return a completed response."""
            return _fill_response(call)

        async def acompletion(self, *_: Any, **call: Any) -> Any:
            """Return a completed response."""
            return _fill_response(call)

        def streaming(self, *_: Any, **call: Any) -> Iterator[Any]:
            """Yield the whole reply as one chunk."""
            yield _make_chunk(call)

        async def astreaming(self, *_: Any, **call: Any) -> AsyncIterator[Any]:  # type: ignore[override]
            """Yield the whole reply as one chunk."""
            yield _make_chunk(call)

    return OfflineResearcher()


def _write_reply(call: Mapping[str, Any]) -> tuple[str, int]:
    """Return the reply's text and the approximate tokens of the question."""
    messages = call["messages"]
    seed = int((call.get("optional_params") or {}).get("seed") or 0)
    prompt_tokens = sum(count_tokens(str(message.get("content") or "")) for message in messages)
    return answer_offline(messages, seed), prompt_tokens


def _fill_response(call: Mapping[str, Any]) -> Any:
    import litellm

    text, prompt_tokens = _write_reply(call)
    response = call["model_response"]
    response.model = OFFLINE_MODEL_NAME
    response.choices[0].message.content = text
    response.choices[0].finish_reason = "stop"
    reply_tokens = count_tokens(text)
    response.usage = litellm.Usage(
        prompt_tokens=prompt_tokens, completion_tokens=reply_tokens, total_tokens=prompt_tokens + reply_tokens
    )
    return response


def _make_chunk(call: Mapping[str, Any]) -> Any:
    text, _ = _write_reply(call)
    return {"text": text, "is_finished": True, "finish_reason": "stop", "usage": None, "index": 0, "tool_use": None}
