"""Which fields of a panel carry the adjustment of its prices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .panel import PRICE_FIELDS, Panel

__all__ = ["adjusted_fields"]

NEAR = 0.03
"""Mean log distance within which a price belongs to the adjusted ones, where no quoted close tells."""


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


def distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the mean absolute log ratio of two prices; infinite where they share no cell."""
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = np.abs(np.log(a / b))
    known = gaps[np.isfinite(gaps)]
    return float(known.mean()) if known.size else float("inf")
