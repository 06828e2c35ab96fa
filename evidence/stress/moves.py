"""Split a panel's daily log moves into market, sector and idiosyncratic parts, and lay another market over its days."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...market import Panel, compute_simple_returns
from ..scoring.exposures import Exposures

Frame = NDArray[np.float64]
MAX_BETA = 3.0
CLOSE_COLUMNS = ("close_raw", "cap")
"""Columns that are multiplied as the close is: the adjustment factor and the number of shares stay as they were."""


@dataclass(frozen=True, eq=False)
class PanelMoves:
    """Log moves of each day, ``[T, N]``, 0 where a price is missing; a gap's move belongs to the day that ends it."""

    panel: Panel
    exposures: Exposures

    @cached_property
    def night(self) -> Frame:
        """Return the log move from the last known close to the open."""
        return _log_ratio(self.panel.fields["open"], _previous_close(self.panel.fields["close"]))

    @cached_property
    def day(self) -> Frame:
        """Return the log move from open to close."""
        return _log_ratio(self.panel.fields["close"], self.panel.fields["open"])

    @cached_property
    def total(self) -> Frame:
        """Return the log move from the last known close to the close."""
        return self.night + self.day

    @cached_property
    def beta(self) -> Frame:
        """Return trailing betas, clipped to [0, 3]; 1 where unknown."""
        beta = np.nan_to_num(self.exposures.beta, nan=1.0)
        return np.clip(beta, 0.0, MAX_BETA)

    @cached_property
    def market(self) -> Frame:
        """Return the mean move of the universe, ``[T, 1]``."""
        member = self.panel.universe
        total = np.where(member, self.total, 0.0).sum(axis=1, keepdims=True)
        return np.asarray(total / np.maximum(member.sum(axis=1, keepdims=True), 1))

    @cached_property
    def by_sector(self) -> Frame:
        """Return each sector's mean move less beta times the market's, ``[T, sectors]``; ``[T, 0]`` without sectors."""
        codes, member = self.exposures.sector, self.panel.universe
        excess = np.where(member, self.total - self.beta * self.market, 0.0)
        count = int(codes.max(initial=-1)) + 1
        columns = [np.flatnonzero(codes == code) for code in range(count)]
        sums = [excess[:, places].sum(axis=1) / np.maximum(member[:, places].sum(axis=1), 1) for places in columns]
        return np.stack(sums, axis=1) if sums else np.empty((self.panel.days, 0))

    @cached_property
    def sector(self) -> Frame:
        """Return the sector's part of each name's move; 0 for a name without a sector."""
        codes = self.exposures.sector
        if self.by_sector.shape[1] == 0:
            return np.zeros(self.panel.universe.shape)
        return np.where(codes >= 0, self.by_sector[:, codes], 0.0)

    @cached_property
    def own(self) -> Frame:
        """Return the idiosyncratic part of each move."""
        return np.where(self.total != 0, self.total - self.beta * self.market - self.sector, 0.0)


def _previous_close(close: Frame) -> Frame:
    """Return the last close known before each day; NaN before the first."""
    row = np.where(np.isnan(close), -1, np.arange(len(close))[:, None])
    row = np.maximum.accumulate(row, axis=0)
    carried = np.where(row >= 0, np.take_along_axis(close, np.maximum(row, 0), axis=0), np.nan)
    return np.vstack([np.full((1, close.shape[1]), np.nan), carried[:-1]])


def _log_ratio(after: Frame, before: Frame) -> Frame:
    is_priced = (after > 0) & (before > 0)  # a comparison with a missing price is false
    return np.asarray(np.log(np.where(is_priced, after, 1.0) / np.where(is_priced, before, 1.0)))


@dataclass(frozen=True, eq=False)
class Overlay:
    """Changes to a panel's prices and volumes.

    Attributes
    ----------
    opening, closing
        Shifts of the log of each day's open and close, ``[T, N]``, finite everywhere.
    reach
        Factor on the log distance of high and low from the outer one of open and close; ``[T, 1]`` or a number.
    volume
        Factor on the shares traded, ``[T, N]``, ``[T, 1]`` or a number.
    """

    opening: Frame
    closing: Frame
    reach: Frame | float = 1.0
    volume: Frame | float = 1.0


def apply_overlay(panel: Panel, overlay: Overlay) -> Panel:
    """Return the panel as it would have been quoted in the other market.

    Notes
    -----
    Open and close are multiplied by the exponential of their shift. The log distance of high and low from the outer one
    of open and close is multiplied by `reach`, so that low <= open, close <= high stays true where it was. vwap keeps
    its relative place between low and high. close_raw and cap are multiplied as the close is, so splits stay where they
    are. Volume is multiplied by its factor, and amount by that factor times the factor of the price paid (vwap's, else
    the close's). `returns` follow from the new closes. Every other column, the universe, the groups and all gaps stay.
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
    """Return the new vwap and amount, where the panel has them."""
    fields = {}
    if "vwap" in old:
        span = old["high"] - old["low"]
        place = np.where(span > 0, (old["vwap"] - old["low"]) / np.where(span > 0, span, 1.0), 0.5)
        fields["vwap"] = new["low"] + place * (new["high"] - new["low"])
    if "amount" in old:
        price = fields["vwap"] / old["vwap"] if "vwap" in old else np.exp(overlay.closing)
        fields["amount"] = old["amount"] * overlay.volume * price
    return fields


def replace_columns(panel: Panel, fields: Mapping[str, Frame], universe: NDArray[np.bool_] | None = None) -> Panel:
    """Return the panel with other columns, and `returns` that follow from its close."""
    new = {**panel.fields, **fields}
    new["returns"] = compute_simple_returns(new["close"])
    member = panel.universe if universe is None else universe
    for values in (*new.values(), member):
        values.setflags(write=False)
    return replace(panel, fields=new, universe=member)
