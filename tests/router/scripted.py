"""A scripted model for tests: it runs in this process, without a network.

scripted = ScriptedModel([ScriptedReply('{"a": 1}'), TimeoutError("slow"), ScriptedReply("not JSON")])
router = Router(config, ledger, providers={"scripted": lambda: scripted})   # config names the model scripted/anything
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from alphaloom.router import Completion


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

    async def complete(
        self, model: str, messages: Sequence[Mapping[str, str]], parameters: Mapping[str, Any]
    ) -> Completion:
        """Return the next reply of the script, or raise the next error."""
        entry = self.script[min(len(self.seen), len(self.script) - 1)]
        self.seen.append({**parameters, "model": model, "messages": list(messages)})
        if isinstance(entry, Exception):
            raise entry
        counts = {"prompt_tokens": entry.tokens_in, "completion_tokens": entry.tokens_out}
        return Completion(entry.text, finish=entry.finish, usage=counts)
