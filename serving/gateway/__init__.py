"""A gateway in front of an OpenAI-compatible endpoint that people and processes share: whose call goes next.

Bytes pass through as they are; what is added is who asks (a bearer token), a place at the endpoint in fair turn
(`..fairness`), and counts by tenant.
"""

from __future__ import annotations

from .endpoint import GatewayEndpoint
from .gateway import Gateway, application
from .settings import GatewaySettings

__all__ = ["Gateway", "GatewayEndpoint", "GatewaySettings", "application"]
