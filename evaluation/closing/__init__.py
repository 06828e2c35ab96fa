"""The close of a campaign: its accepted factors combined, and its results as typed records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .baseline_records import (
        Baseline as Baseline,
        BaselineAddition as BaselineAddition,
        BaselineMember as BaselineMember,
        PublishedFormula as PublishedFormula,
    )
    from .builder import (
        ResultsBuilder as ResultsBuilder,
    )
    from .close_records import (
        BookResult as BookResult,
        CombinationSummary as CombinationSummary,
        CombinerComparison as CombinerComparison,
        CombinerFigures as CombinerFigures,
        ExposureLine as ExposureLine,
        GateDay as GateDay,
        IntervalEstimate as IntervalEstimate,
        ModelBill as ModelBill,
        RefusedTarget as RefusedTarget,
        RuleCheckLine as RuleCheckLine,
        SealedExam as SealedExam,
        SealedFactor as SealedFactor,
        SignalLine as SignalLine,
        SignalSummary as SignalSummary,
        SpendSummary as SpendSummary,
        StandingLine as StandingLine,
        StressTable as StressTable,
    )
    from .closing import (
        unseal as unseal,
    )
    from .factor_records import (
        BookCapacity as BookCapacity,
        CleanFigures as CleanFigures,
        ComparedSheet as ComparedSheet,
        CostRates as CostRates,
        DailyRankIC as DailyRankIC,
        FactorComparison as FactorComparison,
        FactorEntry as FactorEntry,
        FactorProfile as FactorProfile,
        FactorSheet as FactorSheet,
        FactorStress as FactorStress,
        Figure as Figure,
        GateReason as GateReason,
        HandVerdict as HandVerdict,
        IncrementalIC as IncrementalIC,
        MemberTest as MemberTest,
        NeutralisedIC as NeutralisedIC,
        Note as Note,
        PlantedTruth as PlantedTruth,
        RegimeIC as RegimeIC,
        SelectionMetrics as SelectionMetrics,
        SharedPart as SharedPart,
        StatedHypothesis as StatedHypothesis,
        StressScenario as StressScenario,
        StyleExposures as StyleExposures,
        WindowMetrics as WindowMetrics,
    )
    from .planted_truth import find_planted_truth as find_planted_truth
    from .results import (
        VERDICTS as VERDICTS,
        BookCurve as BookCurve,
        Curves as Curves,
        DailyRankICByWindow as DailyRankICByWindow,
        Results as Results,
        ReviewCase as ReviewCase,
    )
    from .seal_request import (
        SealAnswer as SealAnswer,
        SealDecision as SealDecision,
        SealRequest as SealRequest,
        SealRequests as SealRequests,
        answer_seal as answer_seal,
    )
    from .search_records import (
        AppliedSettings as AppliedSettings,
        AttemptCounts as AttemptCounts,
        BetClusters as BetClusters,
        CandidateTest as CandidateTest,
        CrossValidationTest as CrossValidationTest,
        OperatorRow as OperatorRow,
        OverfittingTest as OverfittingTest,
        OwnParts as OwnParts,
        SearchVariety as SearchVariety,
        SelectionPower as SelectionPower,
        StreamRule as StreamRule,
        StreamRules as StreamRules,
        SuperiorityTest as SuperiorityTest,
        WindowPlan as WindowPlan,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "baseline_records": "Baseline BaselineAddition BaselineMember PublishedFormula",
            "builder": "ResultsBuilder",
            "close_records": (
                "BookResult CombinationSummary CombinerComparison CombinerFigures ExposureLine GateDay "
                "IntervalEstimate ModelBill RefusedTarget RuleCheckLine SealedExam SealedFactor SignalLine "
                "SignalSummary SpendSummary StandingLine StressTable"
            ),
            "closing": "unseal",
            "factor_records": (
                "BookCapacity CleanFigures ComparedSheet CostRates DailyRankIC FactorComparison FactorEntry "
                "FactorProfile FactorSheet FactorStress Figure GateReason HandVerdict IncrementalIC MemberTest "
                "NeutralisedIC Note PlantedTruth RegimeIC SelectionMetrics SharedPart StatedHypothesis StressScenario "
                "StyleExposures WindowMetrics"
            ),
            "planted_truth": "find_planted_truth",
            "results": "VERDICTS BookCurve Curves DailyRankICByWindow Results ReviewCase",
            "seal_request": "SealAnswer SealDecision SealRequest SealRequests answer_seal",
            "search_records": (
                "AppliedSettings AttemptCounts BetClusters CandidateTest CrossValidationTest OperatorRow "
                "OverfittingTest OwnParts SearchVariety SelectionPower StreamRule StreamRules SuperiorityTest "
                "WindowPlan"
            ),
        },
    )
