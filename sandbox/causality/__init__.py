"""Test whether code sees the future: the future is changed, and values of the past must not change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .claim import CausalClaim as CausalClaim, make_claim as make_claim
    from .comparison import round_values as round_values
    from .proof import measure_start_up as measure_start_up
    from .proof_record import Cost as Cost, CountingRunner as CountingRunner
    from .sweep import iterate_days as iterate_days
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "proof": "measure_start_up",
            "claim": "CausalClaim make_claim",
            "comparison": "round_values",
            "proof_record": "Cost CountingRunner",
            "sweep": "iterate_days",
        },
    )
