"""Servers of models: which are reachable, which is asked next, what a failure means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .discovery import PROVIDER_KEYS as PROVIDER_KEYS, find_models as find_models
    from .health import (
        Health as Health,
        find_silent_models as find_silent_models,
        probe_model as probe_model,
        refuse_keyless as refuse_keyless,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "discovery": "PROVIDER_KEYS find_models",
            "health": "Health find_silent_models probe_model refuse_keyless",
        },
    )
