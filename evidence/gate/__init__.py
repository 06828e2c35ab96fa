"""The acceptance gate: its steps, its tests and its verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .acceptance_gate import (
        PAID_EVENT as PAID_EVENT,
        AcceptanceGate as AcceptanceGate,
        Surroundings as Surroundings,
        make_trials_spent_error as make_trials_spent_error,
    )
    from .adjusted_price_leak import PriceLevelTest as PriceLevelTest
    from .alignment import find_word_mismatches as find_word_mismatches, list_doubts as list_doubts
    from .formula_steps import compute_complexity_price as compute_complexity_price, find_breaches as find_breaches
    from .mean_test import (
        compute_power as compute_power,
        confirm_p_value as confirm_p_value,
        find_null as find_null,
        run_mean_test as run_mean_test,
    )
    from .succession import DECAYING_EVENT as DECAYING_EVENT, SUCCEEDS as SUCCEEDS, read_decaying as read_decaying
    from .trial_evidence import (
        TrialEvidence as TrialEvidence,
        daily_sharpes as daily_sharpes,
        deflated_sharpe_of as deflated_sharpe_of,
    )
    from .verdict import (
        UNTRADABLE as UNTRADABLE,
        Case as Case,
        Reason as Reason,
        Verdict as Verdict,
        Weighing as Weighing,
        Word as Word,
        write_combination_formula as write_combination_formula,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "acceptance_gate": "AcceptanceGate PAID_EVENT Surroundings make_trials_spent_error",
            "adjusted_price_leak": "PriceLevelTest",
            "alignment": "find_word_mismatches list_doubts",
            "formula_steps": "compute_complexity_price find_breaches",
            "mean_test": "compute_power confirm_p_value find_null run_mean_test",
            "succession": "DECAYING_EVENT SUCCEEDS read_decaying",
            "trial_evidence": "TrialEvidence daily_sharpes deflated_sharpe_of",
            "verdict": "UNTRADABLE Case Reason Verdict Weighing Word write_combination_formula",
        },
    )
