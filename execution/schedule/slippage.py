"""What a parent cost in fact: fills against the arrival price, and against the market's own average price."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol

from ...risk import BP
from ..orders import ExecutionReport

if TYPE_CHECKING:
    from .plan import Algorithm

Benchmark = Literal["arrival", "twap", "vwap"]
BENCHMARKS: Final[dict[Algorithm, Benchmark]] = {
    "market": "arrival",
    "twap": "twap",
    "vwap": "vwap",
    "pov": "vwap",
    "is": "arrival",
}


class TradedParent(Protocol):
    """What slippage is measured of: a `ParentOrder`, or what is on record of one."""

    @property
    def id(self) -> str:
        """Return its id."""
        ...

    @property
    def shares(self) -> int:
        """Return the shares, negative of a sale."""
        ...

    @property
    def arrival_e4(self) -> int:
        """Return the price that was known when the order was made, in 1e-4."""
        ...


def find_benchmark(algorithm: Algorithm) -> Benchmark:
    """Return the price that an algorithm aims at: arrival, or the market's mean over time or over its volume."""
    return BENCHMARKS[algorithm]


@dataclass(frozen=True, slots=True)
class Slippage:
    """Cost of a parent after it was traded; above 0 is a loss on either side.

    Attributes
    ----------
    filled_shares, unfilled_shares
        Whole shares, whichever the side.
    mean_e4
        Mean price of the fills, in 1e-4; 0 without a fill.
    price_e4
        Fills against the arrival price, in 1e-4 of the currency.
    fees_e4
        Commissions and fees, in 1e-4 of the currency.
    missed_e4
        Unfilled shares at the last price against the arrival price, in 1e-4 of the currency: what the shares that were
        not traded would have earned. 0 where no last price was passed in.
    arrival_value_e4
        All shares of the parent, or of its fills where those are more, at the arrival price, in 1e-4 of the currency.
    """

    filled_shares: int
    unfilled_shares: int
    mean_e4: float
    price_e4: int
    fees_e4: int
    missed_e4: int
    arrival_value_e4: int

    @property
    def total_e4(self) -> int:
        """Return the implementation shortfall in 1e-4 of the currency: prices, fees, and what was missed."""
        return self.price_e4 + self.fees_e4 + self.missed_e4

    @property
    def filled_bp(self) -> float:
        """Return cost of prices and fees in bp of the filled shares' value at arrival; 0 without a fill."""
        share = self.filled_shares / (self.filled_shares + self.unfilled_shares)
        return (self.price_e4 + self.fees_e4) / (self.arrival_value_e4 * share) * BP if share else 0.0

    @property
    def total_bp(self) -> float:
        """Return the implementation shortfall in bp of the whole parent's value at arrival."""
        return self.total_e4 / self.arrival_value_e4 * BP

    def against_e4(self, parent: TradedParent, benchmark_e4: int) -> int:
        """Return the fills' prices against another price than arrival, in 1e-4 of the currency; fees are not in it."""
        side = 1 if parent.shares > 0 else -1
        return self.price_e4 + side * (parent.arrival_e4 - benchmark_e4) * self.filled_shares


def measure_slippage(parent: TradedParent, reports: Iterable[ExecutionReport], last_e4: int | None = None) -> Slippage:
    """Return what a parent cost.

    Parameters
    ----------
    parent
        The order.
    reports
        Reports of any orders; fills of this parent's children count. An `exec_id` of an order that comes twice counts
        once.
    last_e4
        Price at which shares without a fill are valued, in 1e-4; None leaves them out.

    The engine halts on a venue that fills more than was ordered; what that cost is measured all the same: all its fills
    count, and nothing is unfilled.
    """
    sign = 1 if parent.shares > 0 else -1
    fills = {
        (report.order, report.exec_id): report
        for report in reports
        if report.kind == "filled" and report.order.rpartition("-")[0] == parent.id
    }
    filled = sum(fill.shares for fill in fills.values())
    wanted = max(abs(parent.shares), filled)
    paid_e4 = sum(fill.shares * fill.price_e4 for fill in fills.values())
    missed_e4 = 0 if last_e4 is None else sign * (wanted - filled) * (last_e4 - parent.arrival_e4)
    return Slippage(
        filled_shares=filled,
        unfilled_shares=wanted - filled,
        mean_e4=paid_e4 / filled if filled else 0.0,
        price_e4=sign * (paid_e4 - filled * parent.arrival_e4),
        fees_e4=sum(fill.cost_e4 for fill in fills.values()),
        missed_e4=missed_e4,
        arrival_value_e4=wanted * parent.arrival_e4,
    )
