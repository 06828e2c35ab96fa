"""The metrics of a factor on one window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Series = NDArray[np.float64]


@dataclass(frozen=True)
class FactorWarning:
    """A warning that is recorded with metrics; it never changes a verdict."""

    code: str
    message: str

    def record(self) -> dict[str, str]:
        """Return the JSON form."""
        return {"code": self.code, "message": self.message}


@dataclass(frozen=True)
class FactorMetrics:
    """Metrics of one factor on one window.

    Attributes
    ----------
    rank_ic, ic
        Mean daily Spearman and Pearson correlation of factor and label (residual label unless configured raw).
    icir
        `rank_ic` over the standard deviation of its daily values, not annualised.
    t
        Newey-West t of `rank_ic`, lag 2h.
    turnover
        One-way traded notional per day over gross, of the long-short portfolio with h sleeves.
    gross_sharpe, net_sharpe
        Sharpe ratios before and after costs, annualised by sqrt(252), of the long-short portfolio held in the direction
        of `rank_ic` on search.
    decay
        Mean RankIC by horizon in days, on every fifth day.
    quantile_returns
        Mean h-day return over the day's mean, decimal, from the lowest quintile of the factor to the highest.
    coverage
        Share of the window's universe cells that have a value.
    daily
        RankIC of each day `[days]`, NaN where fewer than 10 names have both.
    """

    window: str
    first: str
    last: str
    days: int
    horizon_days: int
    rank_ic: float
    ic: float
    icir: float
    t: float
    turnover: float
    gross_sharpe: float
    net_sharpe: float
    decay: Mapping[int, float]
    quantile_returns: tuple[float, ...]
    by_year: Mapping[str, float]
    coverage: float
    warnings: tuple[FactorWarning, ...] = ()
    daily: Series = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    net_daily: Series = field(default_factory=lambda: np.empty(0), repr=False, compare=False)

    def record(self) -> dict[str, object]:
        """Return the JSON form: numbers to ten significant digits, undefined ones null, no daily series."""
        return {
            "window": {"name": self.window, "first": self.first, "last": self.last},
            "days": self.days,
            "horizon_days": self.horizon_days,
            **{name: round_significant(getattr(self, name)) for name in _PLAIN_FIGURES},
            "decay": {str(days): round_significant(value) for days, value in self.decay.items()},
            "quantile_returns": [round_significant(value) for value in self.quantile_returns],
            "by_year": {year: round_significant(value) for year, value in self.by_year.items()},
            "warnings": [warning.record() for warning in self.warnings],
        }


_PLAIN_FIGURES = ("rank_ic", "ic", "icir", "t", "turnover", "gross_sharpe", "net_sharpe", "coverage")


def round_significant(value: float) -> float | None:
    """Return a number rounded to ten significant digits, None where it is undefined.

    The last digits of a float64 sum depend on the machine's instruction set; ten digits do not.
    """
    number = float(f"{float(value):.10g}")  # rounding may carry the largest floats to infinity
    return number if np.isfinite(number) else None
