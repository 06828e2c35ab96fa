"""Calls of models: checked against the caps, sent, charged, recorded, read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .completions import REFUSED as REFUSED
    from .figures import find_unfounded_figures as find_unfounded_figures
    from .prices import find_price as find_price
    from .recorded_calls import ROUTE_EVENT as ROUTE_EVENT
    from .replies import REPAIR_OPENING as REPAIR_OPENING
    from .reply_grammar import (
        ReplyShape as ReplyShape,
        build_choice_grammar as build_choice_grammar,
        build_reply_grammar as build_reply_grammar,
    )
    from .task import Sensitivity as Sensitivity, find_strictest as find_strictest
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "completions": "REFUSED",
            "figures": "find_unfounded_figures",
            "recorded_calls": "ROUTE_EVENT",
            "prices": "find_price",
            "replies": "REPAIR_OPENING",
            "reply_grammar": "ReplyShape build_choice_grammar build_reply_grammar",
            "task": "Sensitivity find_strictest",
        },
    )
