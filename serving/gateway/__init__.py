"""A gateway in front of an OpenAI-compatible endpoint that people and processes share: whose call goes next.

Bytes pass through as they are; what is added is who asks (a bearer token), a place at the endpoint in fair turn
(`fair_scheduler`), and counts by tenant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .endpoint import GatewayEndpoint as GatewayEndpoint
    from .fair_scheduler import FairScheduler as FairScheduler
    from .gateway import Gateway as Gateway, build_application as build_application
    from .settings import GatewaySettings as GatewaySettings
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "endpoint": "GatewayEndpoint",
            "fair_scheduler": "FairScheduler",
            "gateway": "Gateway build_application",
            "settings": "GatewaySettings",
        },
    )
