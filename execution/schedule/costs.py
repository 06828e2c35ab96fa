"""What a schedule is expected to cost, and the holdings at which cost and risk are lowest.

The model is that of Almgren, Thum, Hauptmann and Li, "Direct Estimation of Equity Market Impact" (2005), with its
coefficients and without its factor for turnover of the float. Its temporary impact moves the price of one child
alone; its permanent impact stays. Both are shares of the day's volatility:

- temporary: `temporary_share * volatility * participation ** temporary_exponent` in an interval,
- permanent: `permanent_share * volatility * (shares traded so far) / (volume of the day)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_banded

from ...risk import BP
from ..orders import PRICE_UNITS, ParentOrder, refuse_unless
from .curve import VolumeCurve

TWO_SIDED: Final = 1.959964
"""Standard deviations of a 95 % interval."""
MOST_ROUNDS: Final = 200
"""Rounds in which holdings converge; 40 suffice at an exponent of 0.6."""


@dataclass(frozen=True, slots=True)
class CostModel:
    """Spread and impact of one name.

    Attributes
    ----------
    half_spread_bp
        Half of the spread between bid and ask, in bp of the price.
    volatility_bp
        Standard deviation of the price from open to close, in bp.
    temporary_share
        Temporary impact at a participation of 1, in units of the volatility.
    temporary_exponent
        Power of the participation, above 0 and at most 1; 1 is the linear model of Almgren and Chriss.
    permanent_share
        Permanent impact of a whole day's volume, in units of the volatility.
    """

    half_spread_bp: float
    volatility_bp: float
    temporary_share: float = 0.142
    temporary_exponent: float = 0.6
    permanent_share: float = 0.314

    def __post_init__(self) -> None:
        """Refuse what cannot be a cost."""
        for name in ("half_spread_bp", "volatility_bp", "temporary_share", "permanent_share"):
            value = getattr(self, name)
            refuse_unless(bool(np.isfinite(value)) and value >= 0, name, value, "0 or more")
        power = self.temporary_exponent
        refuse_unless(0 < power <= 1, "temporary_exponent", power, "above 0, at most 1")

    def temporary_bp(self, participation: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the temporary impact in bp `[N]` of shares of an interval's volume `[N]`."""
        scale = self.temporary_share * self.volatility_bp
        return np.asarray(scale * participation**self.temporary_exponent, np.float64)


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """Expected cost of a schedule against the arrival price, before it is traded.

    Attributes
    ----------
    spread_bp, temporary_bp, permanent_bp
        The parts, in bp of the planned shares' value.
    sd_bp
        Standard deviation that the price alone gives the cost while shares wait. The doubt in the model's own
        coefficients is not in it.
    value_e4
        Planned shares at the arrival price, in 1e-4 of the currency.
    """

    spread_bp: float
    temporary_bp: float
    permanent_bp: float
    sd_bp: float
    value_e4: int

    @property
    def expected_bp(self) -> float:
        """Return the sum of the parts."""
        return self.spread_bp + self.temporary_bp + self.permanent_bp

    @property
    def interval_bp(self) -> tuple[float, float]:
        """Return the bounds in bp between which 95 % of costs are expected."""
        reach = TWO_SIDED * self.sd_bp
        return self.expected_bp - reach, self.expected_bp + reach

    @property
    def expected_e4(self) -> int:
        """Return the expected cost in 1e-4 of the currency."""
        return round(self.expected_bp * self.value_e4 / BP)

    @property
    def sd_e4(self) -> int:
        """Return the standard deviation in 1e-4 of the currency."""
        return round(self.sd_bp * self.value_e4 / BP)


def estimate_cost(
    parent: ParentOrder, planned_shares: NDArray[np.int64], curve: VolumeCurve, model: CostModel
) -> CostEstimate:
    """Return what a plan is expected to cost.

    Parameters
    ----------
    parent
        The order; its arrival price values the shares.
    planned_shares
        Whole shares of each interval of `curve` `[N]`, 0 or more, whichever the side.
    curve
        Expected volume. Shares in an interval without volume count as the whole of its volume.
    model
        Spread and impact.
    """
    shares = planned_shares.astype(np.float64)
    total = shares.sum()
    value_e4 = int(planned_shares.sum()) * parent.arrival_e4
    if total == 0:
        return CostEstimate(0.0, 0.0, 0.0, 0.0, 0)
    volume = np.maximum(np.array(curve.volume_shares, np.float64), shares)
    participation = np.divide(shares, volume, out=np.zeros_like(shares), where=volume > 0)
    temporary = float((shares * model.temporary_bp(participation)).sum() / total)
    # A child pays half of its own permanent impact, the mean over its shares: the sum does not depend on the schedule.
    permanent = model.permanent_share * model.volatility_bp * total / max(curve.day_shares, total) / 2
    waiting = 1 - np.cumsum(shares) / total
    sd = model.volatility_bp * float(np.sqrt((curve.lengths * waiting**2).sum()))
    return CostEstimate(model.half_spread_bp, temporary, float(permanent), sd, value_e4)


def optimal_holdings(
    shares: float, impact: NDArray[np.float64], variance: NDArray[np.float64], risk_aversion: float
) -> NDArray[np.float64]:
    """Return the shares `[N + 1]` still held after each interval, where cost and risk together are lowest.

    Minimises `sum(impact * n**2) + risk_aversion * sum(variance * x**2)` over the traded `n [N]` and the held `x`,
    which begin at `shares` and end at 0. With equal intervals it is the trajectory of Almgren and Chriss (2000),
    `X sinh(k (T - t)) / sinh(k T)`; here intervals may differ in volume and length. The traded shares are above 0.

    Parameters
    ----------
    shares
        To trade, above 0.
    impact
        Cost of one share squared in each interval `[N]`, above 0: `eta / tau - gamma / 2` in the paper's letters.
    variance
        Of the price in each interval `[N]`: `sigma**2 * tau`.
    risk_aversion
        Weight of the variance, 0 or more: the paper's `lambda`, in 1 / currency.
    """
    count = len(impact)
    if count == 1:
        return np.array([shares, 0.0])
    bands = np.zeros((3, count - 1))
    bands[0, 1:] = bands[2, :-1] = -impact[1:-1]
    bands[1] = impact[:-1] + impact[1:] + risk_aversion * variance[:-1]
    right = np.zeros(count - 1)
    right[0] = impact[0] * shares
    return np.concatenate([[shares], solve_banded((1, 1), bands, right), [0.0]])


def shortfall_shares(
    parent: ParentOrder, curve: VolumeCurve, model: CostModel, risk_aversion: float
) -> NDArray[np.float64]:
    """Return the shares of each interval `[N]` at which expected cost plus weighted variance is lowest.

    Impact of a power below 1 is not quadratic. Each round solves the quadratic that touches it where the last round
    ended; the quadratic lies above it, so rounds descend to the one minimum. Intervals without volume get no share.

    Parameters
    ----------
    parent, curve, model
        As in `estimate_cost`.
    risk_aversion
        Weight of the cost's variance, in 1 / currency.
    """
    total = float(abs(parent.shares))
    volume = np.array(curve.volume_shares, np.float64)
    traded = volume > 0
    price = parent.arrival_e4 / PRICE_UNITS
    power = model.temporary_exponent
    scale = price / BP * model.temporary_share * model.volatility_bp * (1 + power) / 2
    refuse_unless(bool(traded.any()), "volume_shares", curve.volume_shares, "one above 0")
    refuse_unless(scale > 0, "temporary_share", model.temporary_share, "an impact above 0 (without it, trade at once)")
    # The wait before an interval without volume is added to the interval that holds the shares meanwhile.
    owner = np.cumsum(traded)
    lengths = np.bincount(owner, curve.lengths, minlength=int(traded.sum()) + 1)[1:]
    variance = np.asarray(lengths * (price / BP * model.volatility_bp) ** 2, np.float64)
    usable = volume[traded]
    shares = total * usable / usable.sum()
    for _ in range(MOST_ROUNDS):
        floor = total * 1e-9  # a share of 0 would make the touching quadratic infinitely steep
        impact = scale * np.maximum(shares, floor) ** (power - 1) / usable**power
        new = -np.diff(optimal_holdings(total, impact, variance, risk_aversion))
        settled = bool(np.abs(new - shares).max() <= 1e-9 * total)
        shares = new
        if settled:
            break
    whole = np.zeros(len(volume))
    whole[traded] = shares
    return whole
