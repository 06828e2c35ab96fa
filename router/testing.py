"""A scripted model for tests: asked through LiteLLM as any other, without a network.

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
    """One scripted reply: its text, why the model stopped, and the tokens it says it took."""

    text: str
    finish: str = "stop"
    tokens_in: int = 100
    tokens_out: int = 20


@dataclass
class ScriptedModel:
    """A model whose calls take one entry of the script each: a reply, or an error that is raised. The last entry repeats.

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

        async def later(_: Any, **request: Any) -> Any:
            return fill(**request)

        body = {"acompletion": later, "completion": lambda _, **request: fill(**request)}
        return type("Scripted", (litellm.CustomLLM,), body)()
