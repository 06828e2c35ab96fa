"""What can go wrong between a task and its reply.

RouterError                    the base of this room
├── NoModel                    no configured model can take this task: none for the role, or its key is missing
│   └── Confidential           the task may not leave this machine, or holds a secret
├── ModelFailed                the models were asked and gave no reply, after retries and fallback
│   ├── ConfidentialWaits      those that may see a confidential text are down, or do not prove what they run
│   ├── RequestRefused         they will not take this request, however often it is sent
│   └── AccessRefused          they will not take any: the key or the model's name is wrong, or nothing is left to pay with
├── BadClassifier              what reads prompts cannot be read itself, or is of another version
│   └── BadExamples            what tells an intent of the user's own cannot be used
├── ReplyRefused               the replies do not fit the task's schema, after two repairs
├── BudgetEnded                the next call could pass the cap on calls, tokens or money
├── QueueFull                  as many calls of this tenant wait as may wait
├── QuotaReached               a tenant asks more calls at once, or more tokens in a minute, than it may
│   └── CallTooLarge           one call asks more than the tenant may have in a minute, so waiting is of no use
├── GatewayError               the gateway in front of an endpoint cannot pass a call on
│   ├── NotAdmitted            nobody is known by the token that came with it
│   ├── NotAllowed             the token is known, and does not allow asking models
│   ├── BadCall                it is no call that can be passed on
│   ├── NotServed              the gateway passes no such path on, or not in this way
│   ├── EndpointAway           the endpoint behind the gateway does not answer, or broke off
│   └── GatewayEnds            the gateway ends; the call was not sent
├── ServingError               a server of models cannot be planned as asked: the request contradicts itself
│   ├── UnknownModel           no model of that name is in the table, or a config.json does not say enough
│   ├── PlanUnreadable         a file is no plan, or holds what a plan may not hold
│   ├── DeviceLacks            the device cannot compute in the precision that was asked for
│   ├── DoesNotFit             weights, cache and overhead take more memory than there is
│   ├── NoServer               vLLM is not installed here, and no command was named
│   ├── PortTaken              another program, or another plan, has the port
│   └── ServerFailed           the server ended, or never became ready
└── ContextError               the context cache cannot do what it was asked
    ├── StoreUnusable          its store does not answer, is damaged, or what it takes is not installed
    ├── UnknownDocument        the store does not hold this document, or no longer
    ├── DocumentUnusable       a file that a campaign names cannot be read as a document
    ├── SecretFound            a text holds what looks like a key or a password, so it is not kept
    └── SummaryRefused         what came back cannot stand for the text: nothing, or no shorter
"""

from __future__ import annotations

import math

from ..ledger import AlphaloomError as AlphaloomError  # noqa: PLC0414 - agents may not import the ledger: the base comes from here


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


class BadClassifier(RouterError):
    """What reads prompts, or what it is made from, cannot be used."""

    code = "bad_classifier"


class BadExamples(BadClassifier):
    """An intent of the user's own has a name that is taken, or examples that cannot be used."""

    code = "bad_examples"


class ReplyRefused(RouterError):
    """The replies do not fit the schema, after two repairs; a later task may well succeed."""

    code = "reply_refused"
    exit_code = 1


class BudgetEnded(RouterError):
    """The next call could pass the cap on calls, tokens or money; nothing was sent."""

    code = "budget_ended"
    exit_code = 4


class QueueFull(RouterError):
    """As many calls of this tenant wait as may wait; nothing was sent, and a later try may well pass."""

    code = "queue_full"
    exit_code = 3


class QuotaReached(RouterError):
    """A tenant asks more calls at once, or more tokens in a minute, than it may; nothing was sent."""

    code = "quota_reached"
    exit_code = 3
    seconds: float = math.inf
    """Until it is worth asking again; infinity where only the end of another call helps."""


class CallTooLarge(QuotaReached):
    """One call asks more than the tenant may have in a minute; nothing was sent, and waiting is of no use."""

    code = "call_too_large"
    exit_code = 1


class GatewayError(RouterError):
    """The gateway in front of an endpoint cannot pass a call on. `status` is what HTTP says of it."""

    code = "gateway"
    status = 500


class NotAdmitted(GatewayError):
    """Nobody is known by the token that came with a call; the token is not repeated."""

    code = "invalid_api_key"
    exit_code = 1
    status = 401


class NotAllowed(GatewayError):
    """The token is known, and does not allow asking models."""

    code = "forbidden"
    exit_code = 1
    status = 403


class BadCall(GatewayError):
    """It is no call that can be passed on."""

    code = "bad_call"
    status = 400


class NotServed(GatewayError):
    """The gateway passes no such path on, or not in this way."""

    code = "not_served"
    status = 404


class EndpointAway(GatewayError):
    """The endpoint behind the gateway does not answer, or broke off; a later try may well pass."""

    code = "endpoint_away"
    exit_code = 3
    status = 503


class GatewayEnds(GatewayError):
    """The gateway ends; the call was not sent."""

    code = "gateway_ends"
    exit_code = 3
    status = 503


class ServingError(RouterError):
    """A server of models cannot be planned as asked."""

    code = "serving"


class UnknownModel(ServingError):
    """No model of that name is in the table, or a config.json does not say enough."""

    code = "unknown_model"


class PlanUnreadable(ServingError):
    """A file is no plan, or holds what a plan may not hold."""

    code = "plan_unreadable"


class DeviceLacks(ServingError):
    """The device cannot compute in the precision that was asked for."""

    code = "device_lacks"
    exit_code = 3


class DoesNotFit(ServingError):
    """Weights, cache and overhead take more memory than there is."""

    code = "does_not_fit"
    exit_code = 3


class NoServer(ServingError):
    """There is no vLLM here, and no command was named."""

    code = "no_server"
    exit_code = 3


class PortTaken(ServingError):
    """Another program, or another plan, has the port."""

    code = "port_taken"
    exit_code = 1


class ServerFailed(ServingError):
    """The server ended, or never became ready; the last lines of its log are in the message."""

    code = "server_failed"
    exit_code = 3


class ContextError(RouterError):
    """The context cache cannot do what it was asked."""

    code = "context"


class StoreUnusable(ContextError):
    """The store does not answer, is damaged, or what it takes is not installed; no secret is repeated."""

    code = "context_store"
    exit_code = 3


class UnknownDocument(ContextError):
    """The store does not hold this document, or no longer; adding it again helps."""

    code = "unknown_document"


class DocumentUnusable(ContextError):
    """A file that a campaign names cannot be read as a document."""

    code = "document_unusable"
    exit_code = 2


class SecretFound(ContextError):
    """A text holds what looks like a key or a password, so it is not kept."""

    code = "secret_found"
    exit_code = 1


class SummaryRefused(ContextError):
    """What came back cannot stand for the text: nothing, or no shorter than it."""

    code = "summary_refused"
    exit_code = 1
