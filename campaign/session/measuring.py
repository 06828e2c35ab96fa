"""What the orders of a session cost in fact, against the prices that their schedule aims at."""

from __future__ import annotations

from typing import Any

from ...execution import PRICE_UNITS, ExecutionReport, ParentOrder, SessionOrders, SimulatedPaper, Venue
from ...execution.schedule import Benchmark, find_benchmark, measure_slippage
from ...market import Panel
from .plan import SessionPlan


def measure_session(
    plan: SessionPlan, orders: SessionOrders, venue: Venue, panel: Panel, row: int | None
) -> dict[str, Any]:
    """Return the slippage of each parent of a session that has ended, as a JSON-able object.

    Parameters
    ----------
    venue
        The paper venue's simulated market knows its own mean prices; of another venue none is known.
    row
        The session's day in the panel: what was not filled is valued at its close; None: it is not valued.
    """
    benchmark = find_benchmark(plan.request.schedule)
    by_parent = dict[str, list[ExecutionReport]]()
    for state in orders.orders.values():
        by_parent.setdefault(state.order.parent, []).extend(state.reports)
    column = {symbol: place for place, symbol in enumerate(panel.symbols)}
    parents = {}
    for parent in plan.parents:
        place = column.get(plan.close.renamed.get(parent.asset, parent.asset))
        close = 0.0 if row is None or place is None else float(panel.fields["close"][row, place])
        last_e4 = round(close * PRICE_UNITS) if close > 0 else None  # a symbol without a close has NaN
        reports = by_parent.get(parent.id, [])
        found = measure_slippage(parent, reports, last_e4)
        filled_us = [one.at_us for one in reports if one.kind == "filled"]
        # A participation schedule ends when all is traded, so its market is that of the time until then.
        until_us = max(filled_us, default=plan.closes_us) if plan.request.schedule == "pov" else plan.closes_us
        aimed_e4 = _find_aim(parent, venue, benchmark, until_us)
        parents[parent.id] = {
            "filled_shares": found.filled_shares,
            "unfilled_shares": found.unfilled_shares,
            "price_e4": found.price_e4,
            "fees_e4": found.fees_e4,
            "missed_e4": None if last_e4 is None else found.missed_e4,
            "benchmark_e4": aimed_e4,
            "against_e4": None if aimed_e4 is None else found.against_e4(parent, aimed_e4),
        }
    return {"benchmark": benchmark, "parents": parents}


def _find_aim(parent: ParentOrder, venue: Venue, benchmark: Benchmark, until_us: int) -> int | None:
    """Return the price that a parent's schedule aims at in 1e-4; None where the venue does not show it."""
    if benchmark == "arrival":
        return parent.arrival_e4
    if not isinstance(venue, SimulatedPaper):
        return None
    return venue.find_benchmark(parent.asset, benchmark, until_us)
