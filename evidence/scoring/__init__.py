"""One factor on one window: labels, ranks, long-short, costs and what it is exposed to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .exposures import (
        BETA_DAYS as BETA_DAYS,
        Exposures as Exposures,
        market_return as market_return,
        measure_exposures as measure_exposures,
    )
    from .idiosyncratic_vol import IDIOSYNCRATIC_DAYS as IDIOSYNCRATIC_DAYS, build_label as build_label
    from .labels import count_unlabelled as count_unlabelled, forward_returns as forward_returns
    from .long_short import (
        GROSS as GROSS,
        TRADING_DAYS_PER_YEAR as TRADING_DAYS_PER_YEAR,
        Costs as Costs,
        LongShort as LongShort,
        annual_sharpe as annual_sharpe,
        sleeve_weights as sleeve_weights,
    )
    from .metrics import FactorMetrics as FactorMetrics, round_significant as round_significant
    from .profile import Profiler as Profiler
    from .scorer import LAG_PER_HORIZON as LAG_PER_HORIZON, Scorer as Scorer
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "exposures": "BETA_DAYS Exposures market_return measure_exposures",
            "idiosyncratic_vol": "IDIOSYNCRATIC_DAYS build_label",
            "labels": "count_unlabelled forward_returns",
            "long_short": "Costs GROSS LongShort TRADING_DAYS_PER_YEAR annual_sharpe sleeve_weights",
            "metrics": "FactorMetrics round_significant",
            "profile": "Profiler",
            "scorer": "LAG_PER_HORIZON Scorer",
        },
    )
