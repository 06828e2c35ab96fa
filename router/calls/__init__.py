"""Calls of models: held against the caps, sent, charged, recorded, read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .calls import ROUTE_EVENT as ROUTE_EVENT
    from .prices import price_of as price_of
    from .reply_grammar import (
        ReplyShape as ReplyShape,
        build_reply_grammar as build_reply_grammar,
        choice_grammar as choice_grammar,
    )
    from .task import Sensitivity as Sensitivity
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "calls": "ROUTE_EVENT",
            "prices": "price_of",
            "reply_grammar": "ReplyShape build_reply_grammar choice_grammar",
            "task": "Sensitivity",
        },
    )
