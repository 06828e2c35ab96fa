"""Capacity of a factor's long-short portfolio, from the dollar volume of its trades."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...market import Panel, measure_traded_money
from ..windows import Window
from .exposures import trailing_sum
from .metrics import round_significant

Frame = NDArray[np.float64]
VOLUME_DAYS = 20
PARTICIPATION = 0.1
"""Largest share of a name's mean daily volume that a trade may be."""
SHARE_OF_TRADES = 0.95


@dataclass(frozen=True)
class Capacity:
    """Capital on each side, in the currency of the panel's prices; NaN where unknown.

    Attributes
    ----------
    at_participation
        Capital at which 95 of 100 trades are at most a tenth of the name's mean daily volume of the last 20 days.
    break_even
        Capital at which price impact consumes the return after the other costs; 0 if there is no such return.
    """

    at_participation: float
    break_even: float

    def record(self) -> dict[str, float | str | None]:
        """Return the JSON form."""
        return {
            "at_10_percent_of_volume": round_significant(self.at_participation),
            "break_even": round_significant(self.break_even),
            "unit": "capital on each side, in the currency of the prices",
        }


def measure_capacity(
    panel: Panel, window: Window, sides: tuple[NDArray[np.bool_], NDArray[np.bool_]], horizon: int, net: Frame
) -> Capacity:
    """Estimate the capacity of the long-short portfolio of h sleeves.

    Parameters
    ----------
    panel, window
        Prices, volumes and returns; the window's rows are used.
    sides
        Names held long and short by each day's sleeve, ``[days, N]`` each.
    horizon
        h, in days: each sleeve holds ``1 / h`` of the capital of a side.
    net
        Daily return of the portfolio after costs, ``[days]``, decimal of one side's capital.

    Notes
    -----
    A trade of Q in a name with daily volume V and daily volatility s moves the price by ``s * sqrt(Q / V)`` on average:
    the square-root law with a coefficient of one (Toth et al. 2011, Physical Review X 1, 021006). Each name of a sleeve
    is traded twice, in and out. Dollar volume is `measure_traded_money`.
    """
    volume, deviation = (window.cut(frame) for frame in _measure_liquidity(panel))
    parts, impacts, weights = [], [], []
    for side in sides:
        traded = side & (volume > 0) & (deviation > 0)
        names = np.maximum(np.count_nonzero(side, axis=1), 1)[:, None] * np.ones_like(volume)
        parts.append(horizon * names[traded] * volume[traded])
        impacts.append(deviation[traded] / np.sqrt(horizon * names[traded] * volume[traded]))
        weights.append(1.0 / names[traded])
    room, impact, weight = (np.concatenate(arrays) for arrays in (parts, impacts, weights))
    if not room.size:
        return Capacity(math.nan, math.nan)
    present = net[~np.isnan(net)]
    mean_net = float(present.mean()) if present.size else math.nan
    per_root = 2.0 / horizon * 2.0 * float(np.average(impact, weights=weight))  # two sides, in and out, 1 / h a day
    break_even = math.nan if math.isnan(mean_net) else (max(mean_net, 0.0) / per_root) ** 2
    return Capacity(PARTICIPATION * float(np.quantile(room, 1 - SHARE_OF_TRADES)), break_even)


def _measure_liquidity(panel: Panel) -> tuple[Frame, Frame]:
    """Return mean daily dollar volume and volatility of the last 20 days, ``[T, N]`` each, NaN unknown."""
    mean_traded, _ = _measure_trailing_moments(measure_traded_money(panel))
    _, deviation = _measure_trailing_moments(panel.fields["returns"])
    return mean_traded, deviation


def _measure_trailing_moments(frame: Frame) -> tuple[Frame, Frame]:
    """Return mean and standard deviation (ddof 1) over 20 days; NaN where fewer than half are present."""
    present = (~np.isnan(frame)).astype(np.float64)
    count, total, squares = (trailing_sum(part, VOLUME_DAYS) for part in (present, frame, frame**2))
    safe = np.maximum(count, 2.0)
    mean = total / safe
    deviation = np.sqrt(np.maximum(squares / safe - mean**2, 0.0) * safe / (safe - 1.0))
    known = count >= VOLUME_DAYS // 2
    return np.where(known, mean, np.nan), np.where(known, deviation, np.nan)
