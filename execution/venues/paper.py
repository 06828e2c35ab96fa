"""The paper venue: no extra, no network; orders are filled at the session's opening price, from a panel.

The fill model is that of a paper book's own step (`portfolio.trade_day`): one price, costs on what is traded, and at
most a share of the day's volume; the rest expires.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...risk import BP
from ..orders import ChildOrder, ExecutionReport, ReportKind

NO_OPEN = "no opening price"
NO_VOLUME = "the volume of the day leaves no room"
WORSE = "the opening price is worse than the limit"


@dataclass(frozen=True)
class PaperSession:
    """The prices of one session.

    Attributes
    ----------
    opens_e4
        Opening price of each symbol that has one, in 1e-4.
    room_shares
        Whole shares of each symbol that may be traded; None: no limit.
    cost_bp
        Cost of trading, in basis points of the value.
    at_us
        When the session opens, microseconds since 1970 in UTC.
    """

    opens_e4: Mapping[str, int]
    room_shares: Mapping[str, int] | None
    cost_bp: float
    at_us: int


class PaperVenue:
    """A venue that answers each order at once and for good.

    What it answers depends on the session and on the orders before alone, so an order of a process that died is
    answered in the same way by the next one.
    """

    name = "paper"

    def __init__(self, session: PaperSession) -> None:
        self._session = session
        self._traded: dict[str, int] = {}
        self._reports: list[ExecutionReport] = []

    def send(self, orders: Sequence[ChildOrder]) -> None:
        """Fill orders at the open."""
        for order in orders:
            self._fill(order)

    def recall(self, orders: Sequence[ChildOrder], traded: Mapping[str, int]) -> None:
        """Answer orders of an earlier process that have no end on record.

        Parameters
        ----------
        orders
            These, in the order in which they were sent.
        traded
            Shares of each symbol that were filled of all other orders: they have used a part of the volume.
        """
        self._traded = dict(traded)
        self.send(orders)

    def cancel(self, ids: Sequence[str]) -> None:
        """Do nothing: an order has ended when it was sent."""

    def read_reports(self, timeout_s: float) -> Sequence[ExecutionReport]:
        """Return what was answered since the last call."""
        reports, self._reports = self._reports, []
        return reports

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def _fill(self, order: ChildOrder) -> None:
        price = self._session.opens_e4.get(order.asset)
        if price is None:
            self._answer(order, "expired", reason=NO_OPEN)
            return
        if order.limit_e4 is not None and (price - order.limit_e4) * (1 if order.side == "buy" else -1) > 0:
            self._answer(order, "expired", reason=WORSE)
            return
        shares = min(order.shares, self._find_room(order))
        if shares:
            self._traded[order.asset] = self._traded.get(order.asset, 0) + shares
            cost_e4 = round(shares * price * self._session.cost_bp / BP)
            self._answer(order, "filled", (shares, price, cost_e4))
        if shares < order.shares:
            self._answer(order, "expired", reason=NO_VOLUME)

    def _find_room(self, order: ChildOrder) -> int:
        room = self._session.room_shares
        return order.shares if room is None else max(room.get(order.asset, 0) - self._traded.get(order.asset, 0), 0)

    def _answer(
        self, order: ChildOrder, kind: ReportKind, filled: tuple[int, int, int] = (0, 0, 0), reason: str = ""
    ) -> None:
        at_us = max(order.at_us, self._session.at_us)
        self._reports.append(ExecutionReport(order.id, kind, f"{order.id}-{kind}", at_us, *filled, reason))
