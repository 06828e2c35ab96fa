"""What can go wrong between a task and its reply.

RouterError                    the base of this room
├── NoModel                    no configured model can take this task: none for the role, or its key is missing
│   └── Confidential           the task may not leave this machine, or contains a secret
├── ModelFailed                the models gave no reply, after retries and fallback
│   ├── ConfidentialWaits      the models that may see a confidential text are down, or their proof does not hold
│   ├── RequestRefused         the server refuses this request, however often it is sent
│   └── AccessRefused          the server refuses all requests: wrong key, wrong model name, or no credit left
├── ReplyRefused               the replies do not fit the task's schema, after two repairs, or the models refused
├── ClassifierUnusable         the weights, the training prompts or an embedding cannot be read
├── ExamplesRefused            the examples of a user's own intent are no examples
├── BudgetEnded                the next call could exceed the cap on calls, tokens or money
└── ContextError               the context cache cannot do what it was asked
    ├── StoreUnusable          its store does not answer, is damaged, or needs a package that is not installed
    ├── SecretFound            a text contains a possible key or password, so it is not stored
    └── SummaryRefused         a summary is empty, or no shorter than the text
"""

from __future__ import annotations

from ..ledger import AlphaloomError as AlphaloomError  # noqa: PLC0414 - agents may not import the ledger


class RouterError(AlphaloomError):
    """The base of what the router refuses."""

    code = "router"


class NoModel(RouterError):
    """No configured model can take this task."""

    code = "no_model"
    exit_code = 3


class Confidential(NoModel):
    """The task may not be sent where its model runs."""

    code = "confidential"
    exit_code = 1


class ModelFailed(RouterError):
    """The models gave no reply, after retries and fallback."""

    code = "model_failed"
    exit_code = 3


class ConfidentialWaits(ModelFailed):
    """The models that may see the text are down, or do not prove what they run; it went nowhere else."""

    code = "confidential_waits"


class RequestRefused(ModelFailed):
    """The server will not take this request as it stands (too long, or its content); another one may well pass."""

    code = "request_refused"


class AccessRefused(ModelFailed):
    """The server does not know the key or the model, or wants money; only a person can mend that."""

    code = "access_refused"


class ReplyRefused(RouterError):
    """The replies do not fit the schema, after two repairs, or the models refused; a later task may well succeed."""

    code = "reply_refused"
    exit_code = 1


class ClassifierUnusable(RouterError):
    """The weights, the training prompts or an embedding cannot be read."""

    code = "bad_classifier"


class ExamplesRefused(RouterError):
    """The examples of a user's own intent cannot be used."""

    code = "bad_examples"


class BudgetEnded(RouterError):
    """The next call could pass the cap on calls, tokens or money; nothing was sent."""

    code = "budget_ended"
    exit_code = 4


class ContextError(RouterError):
    """The context cache cannot do what it was asked."""

    code = "context"


class StoreUnusable(ContextError):
    """The store does not answer, is damaged, or what it takes is not installed; no secret is repeated."""

    code = "context_store"
    exit_code = 3


class SecretFound(ContextError):
    """A text holds what looks like a key or a password, so it is not kept."""

    code = "secret_found"
    exit_code = 1


class SummaryRefused(ContextError):
    """What came back cannot stand for the text: nothing, or no shorter than it."""

    code = "summary_refused"
    exit_code = 1
