"""The service by which factors are proposed, scored and submitted to the gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .admission import (
        AdmittedFactor as AdmittedFactor,
        add_accepted as add_accepted,
        add_by_hand as add_by_hand,
        restore_factor as restore_factor,
        retire_factor as retire_factor,
    )
    from .baseline import (
        close_baseline as close_baseline,
        describe_baseline as describe_baseline,
        list_known_effects as list_known_effects,
        record_baseline as record_baseline,
    )
    from .batches.search_bench import SearchBench as SearchBench, SearchQuestion as SearchQuestion
    from .budget import Budget as Budget, BudgetMeter as BudgetMeter
    from .checks.mechanisms import state_mechanism as state_mechanism
    from .closing.builder import ResultsBuilder as ResultsBuilder
    from .closing.closing import Closing as Closing, close as close, write_closing as write_closing
    from .closing.results import (
        CampaignResult as CampaignResult,
        find_campaign as find_campaign,
        read_sealed_exam as read_sealed_exam,
    )
    from .context import (
        PanelContext as PanelContext,
        begin_run as begin_run,
        refuse_other_stream as refuse_other_stream,
        spell_days as spell_days,
    )
    from .drafts import find_leaders as find_leaders, find_unexplored as find_unexplored, pick_drafts as pick_drafts
    from .pending_cases import (
        AWAITING as AWAITING,
        PersonDecision as PersonDecision,
        ReviewChoice as ReviewChoice,
        Reviews as Reviews,
        find_outcome as find_outcome,
        list_standing as list_standing,
    )
    from .recall import recall_facts as recall_facts
    from .service import Evaluator as Evaluator, stress_on_search as stress_on_search
    from .submissions import MAX_SET_MEMBERS as MAX_SET_MEMBERS
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "admission": "AdmittedFactor add_accepted add_by_hand restore_factor retire_factor",
            "baseline": "close_baseline describe_baseline list_known_effects record_baseline",
            "batches.search_bench": "SearchBench SearchQuestion",
            "budget": "Budget BudgetMeter",
            "checks.mechanisms": "state_mechanism",
            "closing.builder": "ResultsBuilder",
            "closing.closing": "Closing close write_closing",
            "closing.results": "CampaignResult find_campaign read_sealed_exam",
            "context": "PanelContext begin_run refuse_other_stream spell_days",
            "drafts": "find_leaders find_unexplored pick_drafts",
            "pending_cases": "AWAITING PersonDecision ReviewChoice Reviews find_outcome list_standing",
            "recall": "recall_facts",
            "service": "Evaluator stress_on_search",
            "submissions": "MAX_SET_MEMBERS",
        },
    )
