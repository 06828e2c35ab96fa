"""Another market over the same days and names: prices moved, ranges stretched, volume scaled, all columns in agreement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...market import Panel, simple_returns

__all__ = ["Overlay", "lay", "replace_columns"]

Frame = NDArray[np.float64]
CLOSE_COLUMNS = ("close_raw", "cap")
"""Columns that move as the close does: the ratio of quoted to adjusted prices, and the number of shares, stay."""


@dataclass(frozen=True, eq=False)
class Overlay:
    """What is laid over a panel's prices and volumes.

    Attributes
    ----------
    opening, closing
        Added to the log of each day's open and close, ``[T, N]``, finite everywhere.
    reach
        Factor on how far, in logs, high and low lie beyond the outer one of open and close; ``[T, 1]`` or a number.
    volume
        Factor on the shares traded, ``[T, N]``, ``[T, 1]`` or a number.
    """

    opening: Frame
    closing: Frame
    reach: Frame | float = 1.0
    volume: Frame | float = 1.0


def lay(panel: Panel, overlay: Overlay) -> Panel:
    """Return the panel as it would have been quoted in the other market.

    Notes
    -----
    Open and close are multiplied by the exponential of their shift. High and low keep their distance, in logs, from the
    outer one of open and close, times `reach`, so that low <= open, close <= high stays true where it was. vwap keeps its
    place between low and high. close_raw and cap move with the close, so splits stay where they are. Volume is
    multiplied, and amount by the product of volume's factor and that of the price paid (vwap's, else the close's).
    `returns` follow from the new closes. Every other column, the universe, the groups and all gaps stay as they were.
    """
    old = panel.fields
    with np.errstate(invalid="ignore", divide="ignore"):
        new = {"open": old["open"] * np.exp(overlay.opening), "close": old["close"] * np.exp(overlay.closing)}
        top, bottom = np.maximum(old["open"], old["close"]), np.minimum(old["open"], old["close"])
        above, below = (np.maximum(ratio, 1.0) for ratio in (old["high"] / top, bottom / old["low"]))
        new["high"] = np.maximum(new["open"], new["close"]) * above**overlay.reach
        new["low"] = np.minimum(new["open"], new["close"]) / below**overlay.reach
        new["volume"] = old["volume"] * overlay.volume
        new |= {name: old[name] * np.exp(overlay.closing) for name in CLOSE_COLUMNS if name in old}
        new |= _overlay_amounts(old, new, overlay)
    return replace_columns(panel, new)


def _overlay_amounts(old: Mapping[str, Frame], new: Mapping[str, Frame], overlay: Overlay) -> dict[str, Frame]:
    """Return vwap and amount, where the panel has them."""
    found = {}
    if "vwap" in old:
        span = old["high"] - old["low"]
        place = np.where(span > 0, (old["vwap"] - old["low"]) / np.where(span > 0, span, 1.0), 0.5)
        found["vwap"] = new["low"] + place * (new["high"] - new["low"])
    if "amount" in old:
        price = found["vwap"] / old["vwap"] if "vwap" in old else np.exp(overlay.closing)
        found["amount"] = old["amount"] * overlay.volume * price
    return found


def replace_columns(panel: Panel, fields: Mapping[str, Frame], universe: NDArray[np.bool_] | None = None) -> Panel:
    """Return the panel with other columns, and `returns` that follow from its close."""
    new = {**panel.fields, **fields}
    new["returns"] = simple_returns(new["close"])
    member = panel.universe if universe is None else universe
    for values in (*new.values(), member):
        values.setflags(write=False)
    return replace(panel, fields=new, universe=member)
