"""A gateway in front of an OpenAI-compatible endpoint that several tenants share.

Bytes pass through unchanged. The gateway authenticates callers by a bearer token, gives them places at the endpoint in
fair order (`fair_scheduler`), and counts calls and tokens by tenant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .endpoint import GatewayEndpoint as GatewayEndpoint
    from .fair_scheduler import FairScheduler as FairScheduler
    from .gateway import Gateway as Gateway, build_application as build_application
    from .tenants import GatewaySettings as GatewaySettings
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "tenants": "GatewaySettings",
            "endpoint": "GatewayEndpoint",
            "fair_scheduler": "FairScheduler",
            "gateway": "Gateway build_application",
        },
    )
