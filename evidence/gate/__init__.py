"""The acceptance gate: its steps, its tests and its verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .acceptance_gate import (
        Gate as Gate,
        PAID_EVENT as PAID_EVENT,
        Surroundings as Surroundings,
        trials_spent as trials_spent,
    )
    from .adjusted_price_leak import PriceLevelTest as PriceLevelTest
    from .alignment import find_word_mismatches as find_word_mismatches, list_doubts as list_doubts
    from .formula_steps import breaches as breaches, complexity_price as complexity_price
    from .mean_test import (
        compute_power as compute_power,
        confirm_p_value as confirm_p_value,
        null_of as null_of,
        proof as proof,
    )
    from .succession import DECAYING_EVENT as DECAYING_EVENT, SUCCEEDS as SUCCEEDS, read_decaying as read_decaying
    from .trial_evidence import (
        TrialEvidence as TrialEvidence,
        daily_sharpes as daily_sharpes,
        deflated_sharpe_of as deflated_sharpe_of,
    )
    from .verdict import Case as Case, Reason as Reason, Verdict as Verdict, Word as Word, sum_of_ranks as sum_of_ranks
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "acceptance_gate": "Gate PAID_EVENT Surroundings trials_spent",
            "adjusted_price_leak": "PriceLevelTest",
            "alignment": "find_word_mismatches list_doubts",
            "formula_steps": "breaches complexity_price",
            "mean_test": "compute_power confirm_p_value null_of proof",
            "succession": "DECAYING_EVENT SUCCEEDS read_decaying",
            "trial_evidence": "TrialEvidence daily_sharpes deflated_sharpe_of",
            "verdict": "Case Reason Verdict Word sum_of_ranks",
        },
    )
