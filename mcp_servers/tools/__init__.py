"""The servers: tools, resources and prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .servers import (
        ALL_SERVERS as ALL_SERVERS,
        SERVER_NAMES as SERVER_NAMES,
        SERVERS as SERVERS,
        SUPERVISOR_SERVERS as SUPERVISOR_SERVERS,
        build_server as build_server,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "servers": "ALL_SERVERS SERVERS SERVER_NAMES SUPERVISOR_SERVERS build_server",
        },
    )
