"""Which fields of a panel carry the adjustment of its prices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .panel import PRICE_FIELDS, Panel
from .traps.levels import ERRORS, MOST, slope_through_origin
from .traps.moves import logarithm

__all__ = ["adjusted_fields", "bears"]

NEAR = 0.03
"""Mean log distance within which a price belongs to the adjusted ones, where no quoted close tells."""
TOO_LITTLE = 1e-12
"""Sum of squared logs below which a factor changes nothing that a price could move with: it is rounding."""


def adjusted_fields(panel: Panel) -> list[str]:
    """Return the fields that carry the adjustment: the prices, and vwap and amount if they are made of them."""
    fields = panel.fields
    per_share: dict[str, NDArray[np.float64]] = {name: fields[name] for name in ("vwap",) if name in fields}
    if "amount" in fields:
        volume = np.where(fields["volume"] > 0, fields["volume"], np.nan)
        per_share["amount"] = fields["amount"] / volume
    return [*PRICE_FIELDS, *(name for name, price in per_share.items() if is_adjusted(price, panel))]


def is_adjusted(price: NDArray[np.float64], panel: Panel) -> bool:
    """Tell whether a price per share lies at least as near to the adjusted close as to the quoted one."""
    far = distance(price, panel.fields["close"])
    return far <= (distance(price, panel.fields["close_raw"]) if "close_raw" in panel.fields else NEAR)


def bears(price: NDArray[np.float64], quoted: NDArray[np.float64], factor: NDArray[np.float64]) -> bool | None:
    """Tell whether a price per share moves with an adjustment, whatever each name's constant; None if it cannot be told.

    The log of price over quoted close, less its mean over each name's days, is regressed on that of the factor: the slope
    is 1 for a price that bears it, 0 for one as quoted. Later events multiply all days of a name by one number, so that
    the answer is the same before and after them.

    Parameters
    ----------
    price, quoted, factor
        ``[T, N]``: what is asked about, the quoted close, and the adjustment of what happened until the last row.
    """
    moved, expected = logarithm(price) - logarithm(quoted), logarithm(factor)
    known = np.isfinite(moved) & np.isfinite(expected)
    days = np.maximum(known.sum(axis=0), 1)
    y, x = ((values - np.where(known, values, 0.0).sum(axis=0) / days)[known] for values in (moved, expected))
    if float(x @ x) < TOO_LITTLE:
        return None
    slope, error = slope_through_origin(x, y)
    if slope < MOST and slope < 1.0 - ERRORS * error:
        return False
    return True if slope > MOST and slope > ERRORS * error else None


def distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the mean absolute log ratio of two prices; infinite where they share no cell."""
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = np.abs(np.log(a / b))
    known = gaps[np.isfinite(gaps)]
    return float(known.mean()) if known.size else float("inf")
