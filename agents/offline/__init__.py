"""The offline researcher: a heuristic that answers the agents' prompts without a network, a key or a language model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .likeness import fits_mechanism as fits_mechanism
    from .researcher import (
        OFFLINE_DESCRIPTION as OFFLINE_DESCRIPTION,
        OfflineResearcher as OfflineResearcher,
        answer_offline as answer_offline,
    )
    from .steering import describe_unmatched as describe_unmatched
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "likeness": "fits_mechanism",
            "researcher": "OFFLINE_DESCRIPTION OfflineResearcher answer_offline",
            "steering": "describe_unmatched",
        },
    )
