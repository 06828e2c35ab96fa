"""Accepted factors combined and held: weights, trading rate, backtest and the sealed exam."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .attribution import OTHER as OTHER, divide_profit as divide_profit, measure_profit as measure_profit
    from .backtest import (
        Book as Book,
        run_backtest as run_backtest,
        simulate_targets as simulate_targets,
        target_weights as target_weights,
    )
    from .blend import blend_values as blend_values
    from .combination import (
        Combination as Combination,
        CombinationPart as CombinationPart,
        Combining as Combining,
        JudgedRun as JudgedRun,
        hold_fixed as hold_fixed,
        weigh_fixed as weigh_fixed,
        write_combination as write_combination,
    )
    from .paper_book import (
        SILENT_DAYS as SILENT_DAYS,
        DayPrices as DayPrices,
        ExecutedFill as ExecutedFill,
        Fill as Fill,
        PaperAccount as PaperAccount,
        TradingTerms as TradingTerms,
        book_fills as book_fills,
        carry_over as carry_over,
        find_corrections as find_corrections,
        rename_keys as rename_keys,
        trade_day as trade_day,
    )
    from .reconciliation import (
        CASH as CASH,
        PositionDifference as PositionDifference,
        compare_positions as compare_positions,
    )
    from .sealed_exam import (
        COMBINATION_KEY as COMBINATION_KEY,
        SEALED_SERIES_EVENT as SEALED_SERIES_EVENT,
        find_own_opening as find_own_opening,
        list_earlier_openings as list_earlier_openings,
        run_sealed_exam as run_sealed_exam,
    )
    from .track_record import TrackRecord as TrackRecord, chain_returns as chain_returns, measure_book as measure_book
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "attribution": "OTHER divide_profit measure_profit",
            "backtest": "Book run_backtest simulate_targets target_weights",
            "blend": "blend_values",
            "combination": "Combination CombinationPart Combining JudgedRun hold_fixed weigh_fixed write_combination",
            "paper_book": (
                "SILENT_DAYS DayPrices ExecutedFill Fill PaperAccount TradingTerms book_fills carry_over "
                "find_corrections rename_keys trade_day"
            ),
            "reconciliation": "CASH PositionDifference compare_positions",
            "sealed_exam": (
                "COMBINATION_KEY SEALED_SERIES_EVENT find_own_opening list_earlier_openings run_sealed_exam"
            ),
            "track_record": "TrackRecord chain_returns measure_book",
        },
    )
