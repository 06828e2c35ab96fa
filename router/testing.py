"""A model that says what a test scripted: behind LiteLLM as any other, without a network.

double = Double([Line('{"a": 1}'), TimeoutError("slow"), Line("not JSON")])
router = Router(config, ledger, providers={"double": double.provider})   # config names the model double/anything
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
    """A scripted model: each call takes the next line, or raises it if it is an error; the last one is for ever.

    `seen` holds what reached it: model, messages, and every parameter.
    """

    script: Sequence[ScriptedReply | Exception]
    seen: list[dict[str, Any]] = field(default_factory=list)

    def next(self, model: str, messages: Sequence[dict[str, str]], parameters: dict[str, Any]) -> ScriptedReply:
        """Return the next line of the script."""
        line = self.script[min(len(self.seen), len(self.script) - 1)]
        self.seen.append({**parameters, "model": model, "messages": list(messages)})
        if isinstance(line, Exception):
            raise line
        return line

    def provider(self) -> Any:
        """Return the double as a LiteLLM provider."""
        litellm = load_litellm()
        double = self

        def fill(model: str, messages: Any, model_response: Any, optional_params: Any, **_: Any) -> Any:
            line = double.next(model, messages, optional_params)
            (choice,) = model_response.choices
            choice.message.content, choice.finish_reason = line.text, line.finish
            total = line.tokens_in + line.tokens_out
            model_response.usage = litellm.Usage(
                prompt_tokens=line.tokens_in, completion_tokens=line.tokens_out, total_tokens=total
            )
            return model_response

        async def later(_: Any, **request: Any) -> Any:
            return fill(**request)

        body = {"acompletion": later, "completion": lambda _, **request: fill(**request)}
        return type("Scripted", (litellm.CustomLLM,), body)()
