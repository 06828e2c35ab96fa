"""From a parent order, a volume curve and limits to child orders with times.

| algorithm | shares of an interval |
|---|---|
| `market` | all at the start |
| `twap` | in proportion to the interval's length |
| `vwap` | in proportion to its expected volume |
| `pov` | the participation cap, until all is placed |
| `is` | where expected cost plus weighted variance is lowest (`shortfall_shares`) |

Shares are placed in lots. An odd remainder goes to the last interval that trades. No interval is given more than
`participation_bp` of its expected volume; `market` takes the session as one interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ...risk import BP
from ..orders import ChildOrder, ParentOrder, refuse_unless
from .allocation import allocate_lots, fill_in_order
from .costs import CostModel, shortfall_shares
from .curve import VolumeCurve

Algorithm = Literal["market", "twap", "vwap", "pov", "is"]
ALGORITHMS: Final[tuple[str, ...]] = get_args(Algorithm)


@dataclass(frozen=True, slots=True)
class Hiding:
    """Random sizes and times, so that an observer of the tape predicts less.

    Attributes
    ----------
    seed
        Of the draws, with the parent's id: the same seed gives the same plan, and two parents differ.
    size_bp
        Each interval's weight is multiplied by a uniform number from `1 - size_bp / 10000` to `1 + size_bp / 10000`.
    time_bp
        A child is due at a uniform time in the first `time_bp / 10000` of its interval.
    """

    seed: int
    size_bp: int = 5_000
    time_bp: int = BP

    def __post_init__(self) -> None:
        """Refuse a share outside 0 to 1."""
        refuse_unless(self.seed >= 0, "seed", self.seed, "0 or more")
        for name in ("size_bp", "time_bp"):
            value = getattr(self, name)
            refuse_unless(0 <= value <= BP, name, value, f"0 to {BP}")


@dataclass(frozen=True, slots=True)
class ScheduleRules:
    """How a parent is cut.

    Attributes
    ----------
    algorithm
        "market", "twap", "vwap", "pov" or "is".
    participation_bp
        Largest share of an interval's volume.
    lot_shares
        Shares of a lot.
    limit_bp
        Worst price, in bp of the arrival price; None for market orders.
    risk_aversion
        Of "is": weight of the cost's variance, in 1 / currency.
    hiding
        None for even sizes at the starts of intervals. Of "pov", sizes stay the cap's.
    """

    algorithm: Algorithm
    participation_bp: int = 1_000
    lot_shares: int = 1
    limit_bp: int | None = None
    risk_aversion: float = 1e-6
    hiding: Hiding | None = None

    def __post_init__(self) -> None:
        """Refuse what no schedule can follow."""
        refuse_unless(self.algorithm in ALGORITHMS, "algorithm", self.algorithm, ", ".join(ALGORITHMS))
        refuse_unless(0 < self.participation_bp <= BP, "participation_bp", self.participation_bp, f"1 to {BP}")
        refuse_unless(self.lot_shares >= 1, "lot_shares", self.lot_shares, "1 or more")
        refuse_unless(self.limit_bp is None or 0 <= self.limit_bp < BP, "limit_bp", self.limit_bp, f"0 to {BP - 1}")
        refuse_unless(self.risk_aversion >= 0, "risk_aversion", self.risk_aversion, "0 or more")


@dataclass(frozen=True, slots=True)
class SchedulePlan:
    """What a parent is cut into.

    Attributes
    ----------
    parent
        The order.
    curve
        The intervals of the plan; one of "market".
    planned_shares
        Shares of each interval, 0 or more, whichever the side.
    times_us
        When each interval's child is due.
    limit_e4
        Worst price of every child, in 1e-4; None of market orders.
    """

    parent: ParentOrder
    curve: VolumeCurve
    planned_shares: tuple[int, ...]
    times_us: tuple[int, ...]
    limit_e4: int | None

    @property
    def unplaced_shares(self) -> int:
        """Return the shares that the participation cap leaves no room for."""
        return abs(self.parent.shares) - sum(self.planned_shares)

    @property
    def children(self) -> tuple[ChildOrder, ...]:
        """Return the child orders, the earliest first; with `unplaced_shares` they sum to the parent."""
        due = [(at, shares) for at, shares in zip(self.times_us, self.planned_shares, strict=True) if shares]
        return tuple(make_child(self, number, shares, at) for number, (at, shares) in enumerate(due, 1))


def make_child(plan: SchedulePlan, number: int, shares: int, at_us: int) -> ChildOrder:
    """Return the child order of one slice; `number` counts from 1."""
    parent, limit = plan.parent, plan.limit_e4
    kind: Literal["market", "limit"] = "market" if limit is None else "limit"
    return ChildOrder(f"{parent.id}-{number}", parent.id, parent.asset, parent.side, shares, kind, limit, at_us)


def plan_schedule(parent: ParentOrder, curve: VolumeCurve, rules: ScheduleRules, model: CostModel) -> SchedulePlan:
    """Cut a parent into child orders.

    Parameters
    ----------
    parent
        The order.
    curve
        Expected volume of the session, or of what is left of it.
    rules
        Algorithm and limits.
    model
        Spread and impact; "is" reads it, `estimate_cost` reads it for any plan.
    """
    used = curve.merge() if rules.algorithm == "market" else curve
    draws = None
    if rules.hiding is not None:
        draws = np.random.default_rng([rules.hiding.seed, int(parent.id, 16)]).random((2, len(used.volume_shares)))
    placed = _place(parent, used, rules, _weigh(parent, used, rules, model, draws))
    times = _choose_times(used, rules.hiding, draws)
    return SchedulePlan(parent, used, tuple(map(int, placed)), times, find_limit(parent, rules.limit_bp))


def find_limit(parent: ParentOrder, limit_bp: int | None) -> int | None:
    """Return the worst price in 1e-4, rounded towards the arrival price and at least 1; None without a limit."""
    if limit_bp is None:
        return None
    away = parent.arrival_e4 * limit_bp // BP
    return parent.arrival_e4 + away if parent.shares > 0 else max(parent.arrival_e4 - away, 1)


def _weigh(
    parent: ParentOrder,
    curve: VolumeCurve,
    rules: ScheduleRules,
    model: CostModel,
    draws: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Return the weights `[N]` that shares follow."""
    volume = np.array(curve.volume_shares, np.float64)
    weights = volume
    if rules.algorithm == "twap":
        weights = curve.lengths
    if rules.algorithm == "is":
        weights = shortfall_shares(parent, curve, model, rules.risk_aversion)
    if draws is not None and rules.hiding is not None:
        weights = weights * (1 + rules.hiding.size_bp / BP * (2 * draws[0] - 1))
    return weights


def _place(
    parent: ParentOrder, curve: VolumeCurve, rules: ScheduleRules, weights: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return whole shares `[N]` in lots, the odd remainder in the last interval that trades and has room for it."""
    caps = np.array([volume * rules.participation_bp // BP for volume in curve.volume_shares], np.int64)
    lots, odd = divmod(abs(parent.shares), rules.lot_shares)
    lot_caps = caps // rules.lot_shares
    placed = fill_in_order(lots, lot_caps) if rules.algorithm == "pov" else allocate_lots(weights, lots, lot_caps)
    shares = placed * rules.lot_shares
    if odd and int(placed.sum()) == lots:
        fitting = np.flatnonzero(caps - shares >= odd)
        trading = fitting[shares[fitting] > 0]
        chosen = trading if len(trading) else fitting
        if len(chosen):
            shares[chosen[-1]] += odd
    return shares


def _choose_times(curve: VolumeCurve, hiding: Hiding | None, draws: NDArray[np.float64] | None) -> tuple[int, ...]:
    """Return when each interval's child is due: at its start, or at a random time within it."""
    edges = curve.edges_us
    if hiding is None or draws is None:
        return edges[:-1]
    lengths = [end - start for start, end in pairwise(edges)]
    pairs = zip(edges, lengths, draws[1], strict=False)
    return tuple(start + int(length * hiding.time_bp / BP * draw) for start, length, draw in pairs)
