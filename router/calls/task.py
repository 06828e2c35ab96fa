"""A typed question to a model (`Task`) and its validated reply (`Reply`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from pydantic import BaseModel

V = TypeVar("V", bound=BaseModel)
Sensitivity: TypeAlias = Literal["public", "internal", "confidential"]
SENSITIVITY_ORDER: tuple[Sensitivity, ...] = ("public", "internal", "confidential")


def find_strictest(labels: Iterable[Sensitivity]) -> Sensitivity:
    """Return the strictest of some sensitivities; without any, "confidential"."""
    return max(labels, key=SENSITIVITY_ORDER.index, default=SENSITIVITY_ORDER[-1])


@lru_cache(maxsize=64)
def describe_schema(schema: type[BaseModel]) -> Mapping[str, Any]:
    """Return the JSON schema of a reply, built once for each class: pydantic takes milliseconds. Not to be changed."""
    return schema.model_json_schema()


@dataclass(frozen=True)
class Message:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str

    def record(self) -> dict[str, str]:
        """Return the message as JSON, in the form that all model interfaces accept."""
        return {"role": self.role, "content": self.content}


@dataclass(frozen=True, kw_only=True)
class Task:
    """One typed question to a model.

    `role` (idea, factor, eval) chooses the tier; `intent` is for the record; the reply must fit `schema`; `prompt` is
    the digest of the prompt file; `run` is the run that pays. A `confidential` task goes only to local or attested
    models, and a task with a `jurisdiction` only to these and to models in it. `refused` counts earlier refusals of the
    same piece of work. The members of the schema in `compared` must agree in several replies of a small model. `check`
    returns why a reply that fits is of no use, empty where it is; a small model's reply of no use is asked above.
    The caps of a `tenant` hold over all runs. An `idempotent` task may be sent to two models at once, if it is short
    and `health.hedge` allows it. `grammar` returns the decoding grammar of the reply (see
    `reply_grammar.build_reply_grammar`); it is called only for a server that supports grammars.
    """

    role: str
    intent: str
    messages: tuple[Message, ...]
    schema: type[BaseModel]
    prompt: str
    run: str
    seed: int
    sensitivity: Sensitivity = "public"
    jurisdiction: str = ""
    refused: int = 0
    compared: tuple[str, ...] = ()
    check: Callable[[Any], Awaitable[str]] | None = None
    max_tokens: int = 4000
    tenant: str = ""
    idempotent: bool = False
    grammar: Callable[[], str] | None = None

    def sampling(self) -> dict[str, Any]:
        """Return the sampling parameters of the request."""
        return {"max_tokens": self.max_tokens, "seed": self.seed}


@dataclass(frozen=True)
class Reply(Generic[V]):
    """A validated reply with its cost.

    `key` is the ledger's key of the call with the reply. Tokens and price (US dollars) include the repairs. `cached`:
    no call was sent.
    """

    value: V
    key: str
    model: str
    tier: str
    cost_usd: float
    tokens_in: int
    tokens_out: int
    cached: bool
    repairs: int
