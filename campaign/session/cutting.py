"""From the parent orders of a session to child orders with times, and what they are expected to cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from ...execution import ChildOrder, ExecutionError, LeftOut, ParentOrder, ScheduleSettings
from ...execution.schedule import (
    Algorithm,
    CostEstimate,
    CostModel,
    Hiding,
    ScheduleRules,
    VolumeCurve,
    estimate_cost,
    make_session_curve,
    plan_schedule,
)
from ...market import Panel
from ...risk import BP

VOLATILITY_DAYS: Final = 60
LEAST_DAYS: Final = 20
"""Days with an open and a close from which a volatility is taken."""


@dataclass(frozen=True)
class NamePast:
    """What a panel says of a name before its session.

    Attributes
    ----------
    day_shares
        Shares traded on a usual day, the median of 20; None where that is not known.
    volatility_bp
        Standard deviation from open to close over 60 days, in bp; None with fewer than 20 of them.
    """

    day_shares: int | None
    volatility_bp: float | None

    def find_model(self, settings: ScheduleSettings) -> CostModel | None:
        """Return the cost model of the name; None where volume or volatility is not known."""
        if not self.day_shares or not self.volatility_bp:
            return None
        return CostModel(settings.half_spread_bp, self.volatility_bp)


@dataclass(frozen=True)
class ParentCut:
    """One parent cut into children.

    Attributes
    ----------
    past
        What was known of the name.
    slices
        When each child is due, microseconds since 1970 in UTC, and its shares, whichever the side; the earliest first.
    expected
        What it should cost; None where volume or volatility of the name is not known.
    """

    past: NamePast
    slices: tuple[tuple[int, int], ...]
    expected: CostEstimate | None

    def record(self) -> dict[str, Any]:
        """Return the cut as a JSON-able object."""
        return {
            "past": asdict(self.past),
            "slices": [list(one) for one in self.slices],
            "expected": None if self.expected is None else asdict(self.expected),
        }

    @classmethod
    def restore(cls, body: Mapping[str, Any]) -> ParentCut:
        """Return the cut that is on record."""
        expected = None if body["expected"] is None else CostEstimate(**body["expected"])
        return cls(NamePast(**body["past"]), tuple((at_us, shares) for at_us, shares in body["slices"]), expected)


@dataclass(frozen=True)
class SessionHours:
    """The hours of a session, and from when on it is traded.

    Attributes
    ----------
    spans
        Opening and closing of each part, microseconds since 1970 in UTC.
    from_us
        Slices that would begin earlier are left out: the session has begun.
    """

    spans: tuple[tuple[int, int], ...]
    from_us: int = 0

    def make_curve(self, slices: int, day_shares: int) -> VolumeCurve:
        """Return the expected volume of the slices that are left."""
        return make_session_curve(self.spans, slices, day_shares, self.from_us)


def measure_volatility(panel: Panel, row: int, symbols: Mapping[str, str]) -> dict[str, float | None]:
    """Return the standard deviation from open to close in bp over the days up to and with a row, by name.

    Parameters
    ----------
    symbols
        The panel's symbol of each name.
    """
    rows = slice(max(row + 1 - VOLATILITY_DAYS, 0), row + 1)
    column = {symbol: place for place, symbol in enumerate(panel.symbols)}
    with np.errstate(all="ignore"):
        moves = panel.fields["close"][rows] / panel.fields["open"][rows] - 1
    found = dict[str, float | None]()
    for name, symbol in symbols.items():
        cells = moves[:, column[symbol]] if symbol in column else np.empty(0)
        cells = cells[np.isfinite(cells)]
        found[name] = float(cells.std(ddof=1) * BP) if len(cells) >= LEAST_DAYS else None
    return found


def cut_parents(
    parents: Sequence[ParentOrder],
    pasts: Mapping[str, NamePast],
    hours: SessionHours,
    rules: ScheduleRules,
    settings: ScheduleSettings,
) -> tuple[dict[str, ParentCut], list[LeftOut]]:
    """Return the cut of each parent that has a child, by its id, and the shares for which the cap leaves no room.

    A market order is one child at the opening, and no cap binds it here. Any other schedule needs the usual volume and
    the volatility of the name.

    Raises
    ------
    ExecutionError
        The exchange has no session on the day, or no slice of it is left.
    """
    cuts, left_out = dict[str, ParentCut](), list[LeftOut]()
    opens_us, closes_us = hours.spans[0][0], hours.spans[-1][1]
    if rules.algorithm == "market":
        whole = hours if opens_us < closes_us else None
        return {one.id: _cut_market(one, pasts[one.asset], whole, opens_us, settings) for one in parents}, []
    if parents and (opens_us >= closes_us or hours.from_us >= closes_us):
        raise ExecutionError(
            "No session is left in which a schedule could trade.",
            field="--schedule",
            got=rules.algorithm,
            allowed="market, where the market is closed",
            code="schedule_session",
        )
    for parent in parents:
        past = pasts[parent.asset]
        model = past.find_model(settings)
        if model is None or past.day_shares is None:
            left_out.append(LeftOut(parent.asset, "history", parent.shares))
            continue
        plan = plan_schedule(parent, hours.make_curve(settings.slices, past.day_shares), rules, model)
        if plan.unplaced_shares:
            sign = 1 if parent.shares > 0 else -1
            left_out.append(LeftOut(parent.asset, "participation", sign * plan.unplaced_shares))
        slices = tuple((one.at_us, one.shares) for one in plan.children)
        if slices:
            expected = estimate_cost(parent, np.array(plan.planned_shares), plan.curve, model)
            cuts[parent.id] = ParentCut(past, slices, expected)
    return cuts, left_out


def _cut_market(
    parent: ParentOrder, past: NamePast, hours: SessionHours | None, at_us: int, settings: ScheduleSettings
) -> ParentCut:
    """Return a parent as one order; it is expected to have the volume of the first slice to itself."""
    model, expected = past.find_model(settings), None
    shares = abs(parent.shares)
    if model is not None and past.day_shares is not None and hours is not None:
        curve = replace(hours, from_us=0).make_curve(settings.slices, past.day_shares)
        planned = np.zeros(len(curve.volume_shares), np.int64)
        planned[0] = shares
        expected = estimate_cost(parent, planned, curve, model)
    return ParentCut(past, ((at_us, shares),), expected)


def list_children(parents: Sequence[ParentOrder], cuts: Mapping[str, ParentCut]) -> tuple[ChildOrder, ...]:
    """Return the child orders of all parents by time; of one instant sales come before purchases."""
    children = [
        ChildOrder(f"{one.id}-{number}", one.id, one.asset, one.side, shares, "market", None, at_us)
        for one in parents
        for number, (at_us, shares) in enumerate(cuts[one.id].slices, 1)
    ]
    return tuple(sorted(children, key=lambda one: (one.at_us, one.side == "buy", one.asset)))


def make_schedule_rules(algorithm: Algorithm, lot_shares: int, settings: ScheduleSettings) -> ScheduleRules:
    """Return how parents are cut."""
    sizes_bp, times_bp = settings.hidden_sizes_bp, settings.hidden_times_bp
    hiding = Hiding(settings.hidden_seed, sizes_bp, times_bp) if sizes_bp or times_bp else None
    return ScheduleRules(
        algorithm, settings.participation_bp, lot_shares, risk_aversion=settings.risk_aversion, hiding=hiding
    )
