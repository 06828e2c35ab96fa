"""What a factor earns on a panel, day by day: its RankIC and its book before and after each charge."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...factors import RowOrder, order_rows, rank_rows, row_rank_correlation
from ...market import Panel
from ..scoring.exposures import Exposures
from ..scoring.idiosyncratic_vol import build_label
from ..scoring.labels import forward_returns, next_open_returns
from ..scoring.long_short import TRADING_DAYS_PER_YEAR, Costs, measure_long_short
from ..settings import EvidenceSettings

__all__ = ["LongShortDays", "Ruler"]

Frame = NDArray[np.float64]
Series = NDArray[np.float64]
Values = NDArray[np.float32]
Rows = NDArray[np.bool_]
ONE_POINT = Costs(1.0, 0.0)
ONE_POINT_OF_BORROW = Costs(0.0, 1.0)


@dataclass(frozen=True, eq=False)
class LongShortDays:
    """Daily figures of a factor's long-short, ``[T]``, NaN before the first sleeve and on days without returns.

    `gross` is earned before any charge; `trading` and `borrow` are what one basis point a side, and one a year, cost.
    """

    gross: Series
    trading: Series
    borrow: Series

    def net(self, bps_per_side: Series | float, borrow_bps: float) -> Series:
        """Return what is left of each day after charges in basis points."""
        return np.asarray(self.gross - bps_per_side * self.trading - borrow_bps * self.borrow)

    def break_even(self, borrow_bps: float) -> float:
        """Return the basis points a side at which nothing is left; NaN for a book that never trades."""
        paid = float(np.nansum(self.trading))
        return float(np.nansum(self.gross - borrow_bps * self.borrow)) / paid if paid > 0 else math.nan


@dataclass(frozen=True, eq=False)
class Ruler:
    """The labels of one panel, sorted once.

    Attributes
    ----------
    order
        Of the main horizon's labels, as the settings take them: residual or raw.
    earned
        What each name earns from one fill to the next day's, ``[T, N]``.
    horizon
        Days from entry to exit; as many sleeves.
    """

    order: RowOrder
    earned: Frame
    horizon: int

    @classmethod
    def of(cls, panel: Panel, exposures: Exposures, settings: EvidenceSettings) -> Ruler:
        """Return the ruler of a panel; what is exposed to what is given, so that it can be that of the true days."""
        raw = forward_returns(panel, settings.horizon_days)
        label = build_label(raw, panel, exposures, settings.returns, settings.label_scale)
        return cls(order_rows(label), next_open_returns(panel), settings.horizon_days)

    @classmethod
    def at_the_close(cls, panel: Panel, exposures: Exposures, settings: EvidenceSettings) -> Ruler:
        """Return the ruler of who trades at the next close instead of the next open."""
        fields = {**panel.fields, "open": panel.fields["close"]}
        return cls.of(replace(panel, fields=fields), exposures, settings)

    def rank_ic(self, order: RowOrder) -> Series:
        """Return each day's RankIC of a factor whose values are sorted, ``[T]``, NaN where undefined."""
        return row_rank_correlation(order, self.order)

    def book(self, order: RowOrder, sign: int) -> LongShortDays:
        """Return the long-short of a factor, or of its opposite."""
        ranks = rank_rows(order)
        if sign < 0:
            count = np.maximum(order.counts, 1)[:, None]
            ranks = (count + 1 - np.rint(2 * ranks * count) / 2) / count  # exact, as the edges of a fifth must be
        traded = measure_long_short(ranks, self.earned, ONE_POINT, self.horizon)
        lent = measure_long_short(ranks, self.earned, ONE_POINT_OF_BORROW, self.horizon)
        return LongShortDays(traded.gross, traded.gross - traded.net, lent.gross - lent.net)


def sharpe(series: Series) -> float:
    """Return the annual Sharpe ratio of daily figures without NaN."""
    deviation = float(series.std(ddof=1)) if series.size > 1 else 0.0
    return float(series.mean()) / deviation * math.sqrt(TRADING_DAYS_PER_YEAR) if deviation > 0 else math.nan
