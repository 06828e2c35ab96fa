"""How far each name moves on its own account: the unit in which residual returns are compared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...market import Panel
from .exposures import Exposures, residual, trailing_sum

Frame = NDArray[np.float64]
IDIOSYNCRATIC_DAYS = 60
MIN_MEDIAN_SHARE = 0.3
"""Share of the day's median below which a risk is not believed: a name that hardly traded is not a sure thing."""


def idiosyncratic_volatility(panel: Panel, exposures: Exposures) -> Frame:
    """Measure each name's own risk, known at the close of each day.

    Parameters
    ----------
    panel
        T days by N names.
    exposures
        Market, sector and size exposures of the same days.

    Returns
    -------
    Frame
        `[T, N]`, decimal, above 0, never NaN: mean absolute residual of the daily log return over the last 60 days, at
        least 0.3 of the day's median. A name with fewer than 30 of them has the median; a day without any has 1.

    Notes
    -----
    The mean absolute residual foretells the spread of the next week better than the standard deviation of total returns,
    and one jump moves it less. Dividing labels by it was worth 8 % of t in planted factors on the synthetic market and on
    S&P 500 names, the standard deviation 3 to 7 % (`benchmarks/power.py` measures it).
    """
    returns = np.where(panel.universe, panel.fields["returns"], np.nan)
    size = np.abs(residual(np.log1p(returns), exposures))
    mean, known = _trailing_mean(size)
    usual = _median(np.where(known, mean, np.nan))
    return np.maximum(np.where(known, mean, usual), MIN_MEDIAN_SHARE * usual)


def build_label(raw: Frame, panel: Panel, exposures: Exposures, returns: str, label_scale: str) -> Frame:
    """Return forward returns `[T, N]` as `evidence.returns` and `evidence.label_scale` say that they are measured.

    Residual ones are taken in logs, so that half the variance is not read as a return.
    """
    if returns == "raw":
        return raw
    return residual(
        np.log1p(raw), exposures, idiosyncratic_volatility(panel, exposures) if label_scale == "own_risk" else None
    )


def _trailing_mean(frame: Frame) -> tuple[Frame, NDArray[np.bool_]]:
    """Return the mean of what is present in the last 60 rows, and where at least half of them are."""
    count = trailing_sum((~np.isnan(frame)).astype(np.float64), IDIOSYNCRATIC_DAYS)
    mean = trailing_sum(frame, IDIOSYNCRATIC_DAYS) / np.maximum(count, 1.0)
    return mean, (count >= IDIOSYNCRATIC_DAYS // 2) & (mean > 0)


def _median(frame: Frame) -> Frame:
    """Return each row's median as a column, 1 where a row is empty."""
    rows = [row[~np.isnan(row)] for row in frame]
    return np.array([float(np.median(row)) if row.size else 1.0 for row in rows])[:, None]
