"""A typed question to a model (`Task`) and its validated reply (`Reply`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from pydantic import BaseModel

V = TypeVar("V", bound=BaseModel)
Sensitivity: TypeAlias = Literal["public", "internal", "confidential"]
SENSITIVITY_ORDER: tuple[Sensitivity, ...] = ("public", "internal", "confidential")


def find_strictest(labels: Iterable[Sensitivity]) -> Sensitivity:
    """Return the strictest of some labels; of none, the strictest there is."""
    return max(labels, key=SENSITIVITY_ORDER.index, default=SENSITIVITY_ORDER[-1])


@dataclass(frozen=True)
class Message:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str

    def record(self) -> dict[str, str]:
        """Return the message as every model interface takes it."""
        return {"role": self.role, "content": self.content}


@dataclass(frozen=True, kw_only=True)
class Task:
    """One typed question to a model.

    `role` (idea, factor, eval) chooses the tier; `intent` says what is asked, for the record; `schema` is what the
    reply must fit; `prompt` is the digest of the prompt file; `run` is the campaign that pays. A `confidential` task
    reaches only models on machines of yours or attested ones, one with a `jurisdiction` only these and models there.
    `refused` counts how often what came of the same piece of work was refused before; members of the schema that are
    `compared` must come out alike in several replies of a small model. `temperature` None leaves the model's own.
    `tenant` is on whose behalf it is asked: the caps of its name hold over all runs. A reply that is wanted within
    `latency_s` seconds is asked of a model that is fast enough, if there is one in its tier.
    An `idempotent` task may be sent to two models at once, if it is short and the house lets it (health.hedge).
    `grammar` writes what the reply is held to while it is decoded, where the server can (see `reply_grammar.reply_grammar`); it
    is asked for there only.
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
    max_tokens: int = 4000
    temperature: float | None = None
    tenant: str = ""
    latency_s: float | None = None
    idempotent: bool = False
    grammar: Callable[[], str] | None = None

    def sampling(self) -> dict[str, Any]:
        """Return what steers the model's choice of words."""
        steering: dict[str, Any] = {"max_tokens": self.max_tokens, "seed": self.seed}
        return steering if self.temperature is None else steering | {"temperature": self.temperature}


@dataclass(frozen=True)
class Reply(Generic[V]):
    """A validated reply and what it took.

    `key` is the ledger's key of the call that gave it. Tokens and price (US dollars) count the repairs too. `cached`
    says that nothing was sent.
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
