"""Schedules: from a parent order to child orders with times, what they should cost, and what they did cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .costs import (
        CostEstimate as CostEstimate,
        CostModel as CostModel,
        estimate_cost as estimate_cost,
        optimal_holdings as optimal_holdings,
    )
    from .curve import (
        VolumeCurve as VolumeCurve,
        learn_curve as learn_curve,
        make_session_curve as make_session_curve,
        make_u_curve as make_u_curve,
    )
    from .plan import (
        ALGORITHMS as ALGORITHMS,
        Algorithm as Algorithm,
        Hiding as Hiding,
        SchedulePlan as SchedulePlan,
        ScheduleRules as ScheduleRules,
        plan_schedule as plan_schedule,
    )
    from .slippage import (
        Benchmark as Benchmark,
        Slippage as Slippage,
        TradedParent as TradedParent,
        find_benchmark as find_benchmark,
        measure_slippage as measure_slippage,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "costs": "CostEstimate CostModel estimate_cost optimal_holdings",
            "curve": "VolumeCurve learn_curve make_session_curve make_u_curve",
            "plan": "ALGORITHMS Algorithm Hiding SchedulePlan ScheduleRules plan_schedule",
            "slippage": "Benchmark Slippage TradedParent find_benchmark measure_slippage",
        },
    )
