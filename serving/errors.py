"""What can go wrong with a model server, and at the gateway in front of one.

ServingError               the base of this room
├── DeviceLacks            the device cannot compute in the precision that was asked for
├── DoesNotFit             weights, cache and overhead take more memory than there is
├── PortTaken              another program, or another plan, has the port
├── QueueFull              as many calls of this tenant wait, or are open, as may
├── QuotaReached           a tenant asks more calls at once, or more tokens in a minute, than it may
│   └── CallTooLarge       one call asks more than the tenant may have in a minute, so waiting is of no use
└── GatewayError           the gateway cannot pass a call on
    ├── EndpointAway       the endpoint behind the gateway does not answer, or broke off
    └── GatewayEnds        the gateway ends; the call was not sent
"""

from __future__ import annotations

import math
from typing import Any

from ..ledger import AlphaloomError


class ServingError(AlphaloomError):
    """A server of models cannot be planned, started or kept as asked."""

    code = "serving"


class DeviceLacks(ServingError):
    """The device cannot compute in the precision that was asked for."""

    code = "device_lacks"
    exit_code = 3


class DoesNotFit(ServingError):
    """Weights, cache and overhead take more memory than there is."""

    code = "does_not_fit"
    exit_code = 3


class PortTaken(ServingError):
    """Another program, or another plan, has the port."""

    code = "port_taken"
    exit_code = 1


class QueueFull(ServingError):
    """As many calls of this tenant wait, or are open, as may; nothing was sent, and a later try may succeed."""

    code = "queue_full"
    exit_code = 3


class QuotaReached(ServingError):
    """A tenant asks more calls at once, or more tokens in a minute, than it may; nothing was sent."""

    code = "quota_reached"
    exit_code = 3
    seconds: float = math.inf
    """Seconds until a retry may succeed; infinity where only the end of another call helps."""


class CallTooLarge(QuotaReached):
    """One call asks more than the tenant may have in a minute; nothing was sent, and waiting is of no use."""

    code = "call_too_large"
    exit_code = 1


class GatewayError(ServingError):
    """The gateway in front of an endpoint cannot pass a call on.

    Parameters
    ----------
    status : int
        The HTTP status of the refusal; by default that of the class.
    """

    code = "gateway"
    status = 500

    def __init__(self, message: str = "", *, status: int | None = None, **more: Any) -> None:
        super().__init__(message, **more)
        if status is not None:
            self.status = status


class EndpointAway(GatewayError):
    """The endpoint behind the gateway does not answer, or broke off; a later try may succeed."""

    code = "endpoint_away"
    exit_code = 3
    status = 503


class GatewayEnds(GatewayError):
    """The gateway ends; the call was not sent."""

    code = "gateway_ends"
    exit_code = 3
    status = 503


def bad_call(message: str, *, status: int = 400, **more: Any) -> GatewayError:
    """Return the error for a call that cannot be passed on as it is."""
    return GatewayError(message, code="bad_call", status=status, **more)
