"""A vendor of prices: what it sells after so many days, adjusted backwards for all that happened until then."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from alphaloom.market import Panel, SyntheticConfig, simulate
from alphaloom.market.actions import Actions
from alphaloom.market.derive import derive_fields
from alphaloom.market.quality.back_adjustment import may_be_adjusted

__all__ = ["SPLITS", "Draw", "Vendor"]

SPLITS = (0.5, 1.5, 2.0, 7.0)
Draw = tuple[int, int, float, float]
"""Row, column, cents paid, new shares for an old one."""


@dataclass(frozen=True)
class Vendor:
    """Sells a simulated market; its last name is listed on row `comes`."""

    raw: Panel
    comes: int

    @classmethod
    def of(cls, days: int, names: int, comes: int) -> Vendor:
        return cls(simulate(SyntheticConfig(seed=4, days=days, names=names)).panel, comes)

    def actions(self, draws: list[Draw]) -> Actions:
        days = self.raw.dates[[row for row, *_ in draws]]
        symbols = tuple(self.raw.symbols[name] for _, name, *_ in draws)
        dividends = np.array([0.01 * paid for *_, paid, _ in draws])
        return Actions(days, symbols, dividends, np.array([split for *_, split in draws]))

    def until(self, found: Actions, stop: int) -> Actions:
        kept = found.days <= self.raw.dates[stop - 1]
        symbols = tuple(symbol for symbol, keep in zip(found.symbols, kept, strict=True) if keep)
        return Actions(found.days[kept], symbols, found.dividends[kept], found.splits[kept])

    def sold(self, stop: int, found: Actions, volume: str = "adjusted", own: str = "") -> Panel:
        """Return the panel as sold: volume quoted or adjusted; vwap and amount derived, or the vendor's `own`."""
        rows = self.raw.rows(0, stop)
        quoted = {name: rows.fields[name].copy() for name in ("open", "high", "low", "close", "volume")}
        for values in quoted.values():
            values[: self.comes, -1] = np.nan
        names = self.raw.symbols if stop > self.comes else self.raw.symbols[:-1]
        quoted = {name: values[:, : len(names)] for name, values in quoted.items()}
        prices, volumes = found.compute_factors(rows.dates, names, quoted["close"])
        volumes = volumes if volume == "adjusted" else np.ones_like(volumes)
        fields = {name: values * (volumes if name == "volume" else prices) for name, values in quoted.items()}
        fields["close_raw"] = quoted["close"]
        if own:
            paid = (quoted["high"] + quoted["low"]) / 2
            prices, volumes = (prices, volumes) if own == "adjusted" else (np.ones_like(prices), np.ones_like(volumes))
            fields |= {"vwap": paid * prices, "amount": paid * prices * quoted["volume"] * volumes}
        fields, notes = derive_fields(fields, {} if own else {"vwap": "typical", "amount": "close*volume"})
        sectors = [f"s{at % 4}" if at < len(self.raw.symbols) - 1 else "new" for at in range(len(names))]
        notes = (*notes, f"sold on row {stop}")
        panel = Panel.build(rows.dates, names, fields, groups={"sector": sectors}, notes=notes)
        return replace(panel, back_adjusted=may_be_adjusted(panel))
