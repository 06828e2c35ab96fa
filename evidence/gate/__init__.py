"""The acceptance gate: its steps, its tests and its verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .adjusted_price_leak import PriceLevelTest as PriceLevelTest
    from .alignment import Claim as Claim, find_word_mismatches as find_word_mismatches
    from .case import Case as Case, sum_of_ranks as sum_of_ranks
    from .complexity import breaches as breaches, complexity_price as complexity_price
    from .doubts import list_doubts as list_doubts
    from .gate import PAID_EVENT as PAID_EVENT, Gate as Gate, Surroundings as Surroundings, trials_spent as trials_spent
    from .mean_test import confirm_p_value as confirm_p_value, null_of as null_of, proof as proof
    from .newey_west_null import NullDistribution as NullDistribution, null_distribution as null_distribution
    from .significance import (
        NeweyWest as NeweyWest,
        compute_power as compute_power,
        lond_level as lond_level,
        newey_west_t as newey_west_t,
    )
    from .succession import DECAYING_EVENT as DECAYING_EVENT, SUCCEEDS as SUCCEEDS, read_decaying as read_decaying
    from .trial_evidence import (
        TrialEvidence as TrialEvidence,
        daily_sharpes as daily_sharpes,
        deflated_sharpe_of as deflated_sharpe_of,
    )
    from .verdict import Reason as Reason, Verdict as Verdict, Word as Word
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "adjusted_price_leak": "PriceLevelTest",
            "alignment": "Claim find_word_mismatches",
            "case": "Case sum_of_ranks",
            "complexity": "breaches complexity_price",
            "doubts": "list_doubts",
            "gate": "Gate PAID_EVENT Surroundings trials_spent",
            "mean_test": "confirm_p_value null_of proof",
            "newey_west_null": "NullDistribution null_distribution",
            "significance": "NeweyWest compute_power lond_level newey_west_t",
            "succession": "DECAYING_EVENT SUCCEEDS read_decaying",
            "trial_evidence": "TrialEvidence daily_sharpes deflated_sharpe_of",
            "verdict": "Reason Verdict Word",
        },
    )
