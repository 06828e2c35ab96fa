"""The published formulas on the search days of a campaign, and their combination as its baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .baseline import (
        close_baseline as close_baseline,
        describe_baseline as describe_baseline,
        read_baseline as read_baseline,
        record_baseline as record_baseline,
    )
    from .published_scores import list_known_effects as list_known_effects, score_published as score_published
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "baseline": "close_baseline describe_baseline read_baseline record_baseline",
            "published_scores": "list_known_effects score_published",
        },
    )
