"""The daily moves of a panel, taken apart: what the market did, what the sector did, and what was the name's own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...market import Panel
from ..scoring.exposures import Exposures

__all__ = ["PanelMoves"]

Frame = NDArray[np.float64]
MAX_BETA = 3.0


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
        """Return trailing betas, kept within [0, 3]; 1 where unknown."""
        known = np.nan_to_num(self.exposures.beta, nan=1.0)
        return np.clip(known, 0.0, MAX_BETA)

    @cached_property
    def market(self) -> Frame:
        """Return the mean move of the universe, ``[T, 1]``."""
        member = self.panel.universe
        total = np.where(member, self.total, 0.0).sum(axis=1, keepdims=True)
        return np.asarray(total / np.maximum(member.sum(axis=1, keepdims=True), 1))

    @cached_property
    def by_sector(self) -> Frame:
        """Return the mean move over the market's of each known sector, ``[T, sectors]``; none without sectors."""
        codes, member = self.exposures.sector, self.panel.universe
        over = np.where(member, self.total - self.beta * self.market, 0.0)
        count = int(codes.max(initial=-1)) + 1
        columns = [np.flatnonzero(codes == code) for code in range(count)]
        sums = [over[:, at].sum(axis=1) / np.maximum(member[:, at].sum(axis=1), 1) for at in columns]
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
        """Return what is neither the market's nor the sector's."""
        return np.where(self.total != 0, self.total - self.beta * self.market - self.sector, 0.0)


def _previous_close(close: Frame) -> Frame:
    """Return the last close known before each day; NaN before the first."""
    row = np.where(np.isnan(close), -1, np.arange(len(close))[:, None])
    row = np.maximum.accumulate(row, axis=0)
    carried = np.where(row >= 0, np.take_along_axis(close, np.maximum(row, 0), axis=0), np.nan)
    return np.vstack([np.full((1, close.shape[1]), np.nan), carried[:-1]])


def _log_ratio(after: Frame, before: Frame) -> Frame:
    good = (after > 0) & (before > 0)  # a comparison with a missing price is false
    return np.asarray(np.log(np.where(good, after, 1.0) / np.where(good, before, 1.0)))
