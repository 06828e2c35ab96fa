"""The close of a campaign: what it accepted is combined, and its record is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .builder import ResultsBuilder as ResultsBuilder
    from .closing import unseal as unseal
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "builder": "ResultsBuilder",
            "closing": "unseal",
        },
    )
