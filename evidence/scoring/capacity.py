"""How much money a factor's long-short can carry, from the volumes of what it trades."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...market import Panel
from ..windows import Window
from .exposures import trailing_sum
from .metrics import round_significant

Frame = NDArray[np.float64]
VOLUME_DAYS = 20
PARTICIPATION = 0.1
"""Share of a day's usual volume above which a trade is too large."""
SHARE_OF_TRADES = 0.95


@dataclass(frozen=True)
class Capacity:
    """Capital on each side, in the currency of the panel's prices; NaN where unknown.

    Attributes
    ----------
    at_participation
        At which 95 of 100 trades are at most a tenth of the name's mean daily volume of the last 20 days.
    break_even
        At which the cost of moving the price eats what is left after the other costs: 0 if nothing is left.
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
    """Estimate what the book of h sleeves could carry.

    Parameters
    ----------
    panel, window
        Prices, volumes and returns; the window's rows are used.
    sides
        Names bought and sold by each day's sleeve, ``[days, N]`` each.
    horizon
        h, in days: each sleeve holds ``1 / h`` of the capital of a side.
    net
        The book's daily return after costs, ``[days]``, decimal of one side's capital.

    Notes
    -----
    A trade of Q in a name with daily volume V and daily volatility s moves the price by ``s * sqrt(Q / V)`` on average:
    the square-root law with a coefficient of one (Toth et al. 2011, Physical Review X 1, 021006). Each name of a sleeve
    is traded twice, in and out. Volume in money is close times volume, quoted prices where the panel has them.
    """
    money, deviation = (window.cut(frame) for frame in _liquidity(panel))
    parts, impacts, weights = [], [], []
    for side in sides:
        held = side & (money > 0) & (deviation > 0)
        names = np.maximum(np.count_nonzero(side, axis=1), 1)[:, None] * np.ones_like(money)
        parts.append(horizon * names[held] * money[held])
        impacts.append(deviation[held] / np.sqrt(horizon * names[held] * money[held]))
        weights.append(1.0 / names[held])
    room, impact, weight = (np.concatenate(found) for found in (parts, impacts, weights))
    if not room.size:
        return Capacity(math.nan, math.nan)
    known = net[~np.isnan(net)]
    left = float(known.mean()) if known.size else math.nan
    per_root = 2.0 / horizon * 2.0 * float(np.average(impact, weights=weight))  # two sides, in and out, 1 / h a day
    even = math.nan if math.isnan(left) else (max(left, 0.0) / per_root) ** 2
    return Capacity(PARTICIPATION * float(np.quantile(room, 1 - SHARE_OF_TRADES)), even)


def _liquidity(panel: Panel) -> tuple[Frame, Frame]:
    """Return the mean daily volume in money and the volatility of the last 20 days, ``[T, N]`` each, NaN unknown."""
    price = panel.fields.get("close_raw", panel.fields["close"])
    return _trailing_moments(price * panel.fields["volume"])[0], _trailing_moments(panel.fields["returns"])[1]


def _trailing_moments(frame: Frame) -> tuple[Frame, Frame]:
    """Return mean and standard deviation (ddof 1) over 20 days, half of them present at least."""
    seen = (~np.isnan(frame)).astype(np.float64)
    count, total, squares = (trailing_sum(part, VOLUME_DAYS) for part in (seen, frame, frame**2))
    safe = np.maximum(count, 2.0)
    mean = total / safe
    deviation = np.sqrt(np.maximum(squares / safe - mean**2, 0.0) * safe / (safe - 1.0))
    known = count >= VOLUME_DAYS // 2
    return np.where(known, mean, np.nan), np.where(known, deviation, np.nan)
