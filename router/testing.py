"""A scripted model for tests: called through LiteLLM like any other, without a network.

scripted = ScriptedModel([ScriptedReply('{"a": 1}'), TimeoutError("slow"), ScriptedReply("not JSON")])
router = Router(config, ledger, providers={"scripted": scripted.provider})   # config names the model scripted/anything
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .calls.backend import load_litellm


@dataclass(frozen=True)
class ScriptedReply:
    """One scripted reply: its text, the finish reason, and the token counts that it reports."""

    text: str
    finish: str = "stop"
    tokens_in: int = 100
    tokens_out: int = 20


@dataclass
class ScriptedModel:
    """A model that answers each call with the next entry of a script: a reply or an error. The last one repeats.

    `seen` lists the calls: model, messages and every parameter.
    """

    script: Sequence[ScriptedReply | Exception]
    seen: list[dict[str, Any]] = field(default_factory=list)

    def next(self, model: str, messages: Sequence[dict[str, str]], parameters: dict[str, Any]) -> ScriptedReply:
        """Return the next reply of the script, or raise the next error."""
        entry = self.script[min(len(self.seen), len(self.script) - 1)]
        self.seen.append({**parameters, "model": model, "messages": list(messages)})
        if isinstance(entry, Exception):
            raise entry
        return entry

    def provider(self) -> Any:
        """Return the model as a LiteLLM provider."""
        litellm = load_litellm()
        scripted = self

        def fill(model: str, messages: Any, model_response: Any, optional_params: Any, **_: Any) -> Any:
            entry = scripted.next(model, messages, optional_params)
            (choice,) = model_response.choices
            choice.message.content, choice.finish_reason = entry.text, entry.finish
            total = entry.tokens_in + entry.tokens_out
            model_response.usage = litellm.Usage(
                prompt_tokens=entry.tokens_in, completion_tokens=entry.tokens_out, total_tokens=total
            )
            return model_response

        async def fill_async(_: Any, **request: Any) -> Any:
            return fill(**request)

        body = {"acompletion": fill_async, "completion": lambda _, **request: fill(**request)}
        return type("Scripted", (litellm.CustomLLM,), body)()
