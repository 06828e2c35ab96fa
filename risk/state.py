"""The state of the book for the risk gate; the clock is an argument of the gate and not a part of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..ledger import JSON
from .signal import RiskError

if TYPE_CHECKING:
    from .decision import Approved


@dataclass(frozen=True)
class BookState:
    """Positions, money and days of last prices.

    Attributes
    ----------
    positions
        Exposure of each held asset in 1e-8 of equity, negative for short.
    last_price
        Day of each asset's last price; an asset without a price has no key.
    equity, high_water, pnl_today
        Money in the smallest unit (cents): the present value, the highest, and the gain since the day began.
    traded_e8
        Bought plus sold earlier on this day, in 1e-8 of equity.

    Raises
    ------
    RiskError
        A field has another type, the highest equity is below the present one, or it is not positive.
    """

    positions: Mapping[str, int]
    last_price: Mapping[str, date]
    equity: int
    high_water: int
    pnl_today: int = 0
    traded_e8: int = 0

    def __post_init__(self) -> None:
        """Refuse a malformed state; sort assets."""
        for name in ("equity", "high_water", "pnl_today", "traded_e8"):
            _refuse_unless(type(getattr(self, name)) is int, name, getattr(self, name), "a whole number")
        for asset, value in self.positions.items():
            _refuse_unless(
                type(asset) is str and type(value) is int, "positions", {asset: value}, "whole units of 1e-8 of equity"
            )
        for asset, day in self.last_price.items():
            _refuse_unless(type(asset) is str and type(day) is date, "last_price", {asset: day}, "a date")
        _refuse_unless(self.high_water >= max(self.equity, 1), "high_water", self.high_water, "at least equity and 1")
        _refuse_unless(self.traded_e8 >= 0, "traded_e8", self.traded_e8, "at least 0")
        object.__setattr__(self, "positions", MappingProxyType(dict(sorted(self.positions.items()))))
        object.__setattr__(self, "last_price", MappingProxyType(dict(sorted(self.last_price.items()))))

    def after(self, approved: Iterable[Approved]) -> BookState:
        """Return the state after all approved signals are traded."""
        positions, traded = dict(self.positions), self.traded_e8
        for item in approved:
            asset, target = item.signal.asset, item.signal.target_e8
            traded += abs(target - positions.get(asset, 0))
            positions[asset] = target
        return replace(self, positions=positions, traded_e8=traded)

    def record(self) -> dict[str, JSON]:
        """Return the state as a JSON-able object."""
        return {
            "positions": dict(self.positions),
            "last_price": {asset: day.isoformat() for asset, day in self.last_price.items()},
            "equity": self.equity,
            "high_water": self.high_water,
            "pnl_today": self.pnl_today,
            "traded_e8": self.traded_e8,
        }


def _refuse_unless(fine: bool, field: str, got: object, allowed: str) -> None:
    if not fine:
        raise RiskError("The state of the book is malformed.", field=field, got=got, allowed=allowed, code="book_state")
