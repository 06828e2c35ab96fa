"""One factor on one window: labels, ranks, long-short, costs and what it is exposed to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .exposures import (
        BETA_DAYS as BETA_DAYS,
        IDIOSYNCRATIC_DAYS as IDIOSYNCRATIC_DAYS,
        Exposures as Exposures,
        market_return as market_return,
        measure_exposures as measure_exposures,
    )
    from .labels import (
        build_label as build_label,
        count_unlabelled as count_unlabelled,
        forward_returns as forward_returns,
    )
    from .long_short import (
        GROSS as GROSS,
        TRADING_DAYS_PER_YEAR as TRADING_DAYS_PER_YEAR,
        Costs as Costs,
        annual_sharpe as annual_sharpe,
        sleeve_weights as sleeve_weights,
    )
    from .metrics import FactorMetrics as FactorMetrics, round_significant as round_significant
    from .profile import Profiler as Profiler
    from .scorer import Scorer as Scorer
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "exposures": "BETA_DAYS Exposures IDIOSYNCRATIC_DAYS market_return measure_exposures",
            "labels": "build_label count_unlabelled forward_returns",
            "long_short": "Costs GROSS TRADING_DAYS_PER_YEAR annual_sharpe sleeve_weights",
            "metrics": "FactorMetrics round_significant",
            "profile": "Profiler",
            "scorer": "Scorer",
        },
    )
