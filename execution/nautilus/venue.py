"""`NautilusVenue`: orders to NautilusTrader and reports back; positions are counted here, from fills and events."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal, get_args

from ...risk import BP
from ..decision_inputs import DecisionInputs
from ..errors import ExecutionError
from ..orders import ChildOrder, ExecutionReport, ParentOrder, refuse_unless
from ..positions import PositionCount, PositionEvent
from .gatekeeper import PROTOCOL
from .installation import check_nautilus
from .pipe import PipedProcess
from .session import SessionPrices

NautilusMode = Literal["backtest", "sandbox", "live"]
NAUTILUS_MODES: Final[tuple[str, ...]] = get_args(NautilusMode)
WORKER: Final = Path(__file__).with_name("worker.py")


class NautilusVenue:
    """A venue that NautilusTrader simulates; implements `Venue`.

    Orders wait for the opening price of their symbol in the session in which they are due. `run_session` brings the
    prices of a session. What is open at its close expires. Positions are those of whoever trades: fills and corporate
    actions, which the engine does not know. After each session its own count must differ by these actions alone.

    Parameters
    ----------
    python
        The Python that has NautilusTrader: the setting `execution.nautilus.python`.
    assets
        Symbols.
    cash_e4
        Cash at the start, in 1e-4 of the currency.
    mode
        "backtest": the engine's simulated clock. "sandbox" and "live": its live node of that kind, on the real clock,
        with its simulated execution client. The strategy is the same class. No order reaches a market.
    cost_bp
        Cost of trading, in basis points of the value.
    depth
        Whether sessions bring books of several levels, through which an order walks; without, it fills at the open.

    Raises
    ------
    ExecutionError
        The Python cannot be used (`check_nautilus`), or the engine does not start.
    """

    name = "nautilus"

    def __init__(
        self,
        python: Path | None,
        assets: Sequence[str],
        cash_e4: int,
        mode: NautilusMode,
        *,
        cost_bp: float = 0.0,
        depth: bool = False,
    ) -> None:
        refuse_unless(mode in NAUTILUS_MODES, "mode", mode, ", ".join(NAUTILUS_MODES))
        refuse_unless(type(cash_e4) is int and cash_e4 > 0, "cash_e4", cash_e4, "above 0")
        self.version = check_nautilus(python)
        self._count = PositionCount(cash_e4)
        self._moved: Counter[str] = Counter()
        self._reports: list[ExecutionReport] = []
        self._orders: dict[str, ChildOrder] = {}
        self._next: tuple[SessionPrices, Sequence[PositionEvent]] | None = None
        program = [sys.executable, "-P", "-m", f"{__package__}.gatekeeper", str(python), str(WORKER)]
        self._process = PipedProcess("The gatekeeper", program, os.environ)
        try:
            if self._process.hello.get("protocol") != PROTOCOL:
                raise ExecutionError("The two sides speak different versions.", allowed=PROTOCOL, code="protocol")
            cost = str(Decimal(str(cost_bp)) / BP)
            self._ask("start", assets=sorted(assets), cash_e4=cash_e4, mode=mode, cost=cost, depth=depth)
        except ExecutionError:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Return the id of the process that decides again; the engine is its child."""
        return self._process.pid

    @property
    def positions(self) -> Counter[str]:
        """Return the shares by symbol, after fills and corporate actions."""
        return self._count.shares

    @property
    def cash_e4(self) -> int:
        """Return the cash after fills, their costs and corporate actions, in 1e-4 of the currency."""
        return self._count.cash_e4

    def admit(self, inputs: DecisionInputs, decision: str, parents: Sequence[ParentOrder]) -> None:
        """Have the other process decide again; only children of these parents may be sent afterwards.

        Raises
        ------
        ExecutionError
            Its decision has another id (`decision_differs`), or does not approve a parent (`not_approved`).
        """
        if not parents:
            return
        rows = [[parent.asset, parent.shares, parent.arrival_e4] for parent in parents]
        sessions = {parent.session.isoformat() for parent in parents}
        refuse_unless(len(sessions) == 1, "parents", sorted(sessions), "parents of one session")
        self._ask("admit", inputs=inputs.record(), decision=decision, parents=rows, session=sessions.pop())

    def send(self, orders: Sequence[ChildOrder]) -> None:
        """Send orders of admitted parents; `ExecutionError` refuses the whole batch."""
        self._ask("send", orders=[order.record() for order in orders])
        self._orders.update((order.id, order) for order in orders)

    def cancel(self, ids: Sequence[str]) -> None:
        """Take orders back; what was filled before stays filled."""
        self._ask("cancel", ids=list(ids))

    def run_session(self, prices: SessionPrices, events: Sequence[PositionEvent] = ()) -> None:
        """Apply the corporate actions before the open, then run the session.

        Raises
        ------
        ExecutionError
            The engine's positions are not those of the reports (`positions_differ`).
        """
        before = self._count.shares.copy()
        for event in events:
            self._count.apply(event)
        for asset in {*before, *self._count.shares} if events else ():
            self._moved[asset] += self._count.shares[asset] - before[asset]
        answer = self._ask("session", **prices.record())
        counted = {asset: self.positions[asset] - self._moved[asset] for asset in {*self.positions, *self._moved}}
        counted = {asset: shares for asset, shares in counted.items() if shares}
        if counted != answer["positions"]:
            differing = sorted(asset for asset, _ in counted.items() ^ answer["positions"].items())
            raise ExecutionError(
                "The engine's positions are not the sum of its fills.",
                field="positions",
                got={asset: answer["positions"].get(asset, 0) for asset in differing},
                allowed={asset: counted.get(asset, 0) for asset in differing},
                code="positions_differ",
                exit_code=1,
            )

    def open_session(self, prices: SessionPrices, events: Sequence[PositionEvent] = ()) -> None:
        """Have the next call of `read_reports` that may wait run this session: all orders were sent by then."""
        self._next = prices, events

    def recall(self, orders: Sequence[ChildOrder], traded: Mapping[str, int]) -> None:
        """Answer orders of an earlier process, whose engine is gone: as they were sent to it, so they are to this one.

        What an order gets depends on the session's prices alone, not on what else was `traded`.
        """
        self.send(orders)

    def read_reports(self, timeout_s: float = 0.0) -> Sequence[ExecutionReport]:
        """Return what the venue said since the last call; where it may wait, after the session that was opened."""
        if timeout_s > 0 and self._next is not None:
            (prices, events), self._next = self._next, None
            self.run_session(prices, events)
        reports, self._reports = self._reports, []
        return reports

    def measure_usage(self) -> dict[str, float]:
        """Return the engine's CPU time in seconds (`cpu_s`) and its largest memory in KiB (`peak_kib`)."""
        answer = self._ask("usage")
        return {name: answer[name] for name in ("cpu_s", "peak_kib")}

    def close(self) -> None:
        """End the engine."""
        self._process.close()

    def _ask(self, kind: str, **parts: Any) -> dict[str, Any]:
        """Return the answer, after its reports are counted."""
        answer = self._process.ask({"type": kind, **parts})
        for row in answer["reports"]:
            report = ExecutionReport(**row)
            self._reports.append(report)
            if report.kind == "filled":
                self._count.take(self._orders[report.order], report)
        return answer
