"""A plan held against the volume that the market in fact trades: what `execute` does on paper, decision by decision."""

from __future__ import annotations

from alphaloom.execution import ChildOrder, ExecutionReport
from alphaloom.execution.orders import refuse_unless
from alphaloom.execution.schedule import SchedulePlan, ScheduleRules
from alphaloom.execution.schedule.plan import make_child
from alphaloom.execution.simulation import SimulatedMarket
from alphaloom.risk import BP


class PacedSchedule:
    """Releases child orders as they fall due, never above the cap of the volume traded so far.

    At each decision the shares sent so far, with the new child, stay at or below `participation_bp` of the volume that
    the tape shows. The caller passes that volume, the time and what became of children; nothing here reads a clock. A
    child that ends unfilled is given back with `take_back`, and its shares are sent again.

    Under "pov" the whole parent is due from the start, so the cap alone sets the pace. Under the other algorithms what
    the cap held back is sent as soon as volume allows.
    """

    def __init__(self, plan: SchedulePlan, rules: ScheduleRules) -> None:
        self.plan = plan
        self.rules = rules
        self.sent_shares = 0
        self._children = 0

    @property
    def decision_times_us(self) -> tuple[int, ...]:
        """Return when to ask for a child: at each of the plan's times, and just before the session ends."""
        last = self.plan.curve.edges_us[-1] - 1
        return (*self.plan.times_us, *(() if self.plan.times_us[-1] == last else (last,)))

    @property
    def left_shares(self) -> int:
        """Return what is not sent yet, whichever the side."""
        return abs(self.plan.parent.shares) - self.sent_shares

    def release(self, at_us: int, traded_shares: int) -> ChildOrder | None:
        """Return the child that may go now; None where none is due or the cap leaves no room for a lot.

        Parameters
        ----------
        at_us
            Now, microseconds since 1970 in UTC.
        traded_shares
            Volume of the session so far as the tape shows it, with our own trades.
        """
        refuse_unless(traded_shares >= 0, "traded_shares", traded_shares, "0 or more")
        due = self._count_due(at_us) - self.sent_shares
        room = traded_shares * self.rules.participation_bp // BP - self.sent_shares
        shares = min(due, room)
        if shares != self.left_shares:  # the last child takes the odd remainder
            shares -= shares % self.rules.lot_shares
        if shares <= 0:
            return None
        self.sent_shares += shares
        self._children += 1
        return make_child(self.plan, self._children, shares, at_us)

    def take_back(self, shares: int) -> None:
        """Take back shares of a child that ended unfilled; they are due again."""
        refuse_unless(0 <= shares <= self.sent_shares, "shares", shares, f"0 to {self.sent_shares}, what was sent")
        self.sent_shares -= shares

    def _count_due(self, at_us: int) -> int:
        """Return the shares due by a time; what the plan could not place is due with its last child."""
        plan = self.plan
        if self.rules.algorithm == "pov" or at_us >= plan.times_us[-1]:
            return abs(plan.parent.shares)
        return sum(shares for at, shares in zip(plan.times_us, plan.planned_shares, strict=True) if at <= at_us)


def trade_paced(market: SimulatedMarket, schedule: PacedSchedule) -> list[ExecutionReport]:
    """Ask a paced schedule for a child at each of its times, give back what expires, and return the reports."""
    found: list[ExecutionReport] = []
    for at_us in schedule.decision_times_us:
        child = schedule.release(at_us, market.traded_shares(at_us))
        if child is None:
            continue
        market.send([child])
        reports = market.read_reports(0)
        schedule.take_back(child.shares - sum(report.shares for report in reports if report.kind == "filled"))
        found.extend(reports)
    return found
