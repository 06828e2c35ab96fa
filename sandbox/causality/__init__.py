"""Whether code sees the future: the future is changed, and the past must not move."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .causality import start_up_of as start_up_of
    from .claim import CausalClaim as CausalClaim, make_claim as make_claim
    from .comparison import round_values as round_values
    from .meter import Cost as Cost, CountingRunner as CountingRunner
    from .sweep import iterate_days as iterate_days
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "causality": "start_up_of",
            "claim": "CausalClaim make_claim",
            "comparison": "round_values",
            "meter": "Cost CountingRunner",
            "sweep": "iterate_days",
        },
    )
