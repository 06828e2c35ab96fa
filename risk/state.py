"""The state of the book for the risk gate; the clock is an argument of the gate and not a part of it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from ..ledger import JSON, compute_digest
from .signal import RiskError

Mode = Literal["active", "reducing", "halted"]
MODES: Final[tuple[str, ...]] = get_args(Mode)
"""States of trading, each stricter than the one before: everything may pass, only what reduces, nothing."""
MAX_SESSIONS: Final = 30
"""Sessions that a state keeps: more than the oldest price that may be traded."""
WEEKDAYS: Final = 5
UNKNOWN_STYLE: Final = 300
"""Style of a name without one, in hundredths of a standard deviation: three, on the worse side."""


def _refuse_unless(fine: bool, field: str, got: object, allowed: str) -> None:
    if not fine:
        raise RiskError("The state of the book is malformed.", field=field, got=got, allowed=allowed, code="book_state")


@dataclass(frozen=True, slots=True)
class AssetFacts:
    """What is known of one asset, held or not.

    Attributes
    ----------
    last_price
        Day of its last price; None without one.
    sector
        Empty where it is not known.
    jump_bp
        Absolute change of its last price from the one before, in basis points, rounded up; None without two prices.
    volume_e8
        Value traded on a usual day, in 1e-8 of the book's equity; None where it is not known.
    fall_bp
        Loss of the position from its best price since it was opened, in basis points of that price, rounded up.
    styles
        Exposure to each style in hundredths of a standard deviation, by name; a style that is not known has no key.
    """

    last_price: date | None = None
    sector: str = ""
    jump_bp: int | None = None
    volume_e8: int | None = None
    fall_bp: int = 0
    styles: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse malformed facts: a NaN would pass every comparison."""
        day = self.last_price
        _refuse_unless(day is None or type(day) is date, "last_price", day, "a date")
        _refuse_unless(type(self.sector) is str, "sector", self.sector, "a text")
        for name, value in (("jump_bp", self.jump_bp), ("volume_e8", self.volume_e8), ("fall_bp", self.fall_bp)):
            _refuse_unless(value is None or (type(value) is int and value >= 0), name, value, "a whole number, or None")
        whole = all(type(value) is int for value in self.styles.values())
        _refuse_unless(whole, "styles", self.styles, "whole hundredths of a standard deviation")

    @classmethod
    def restore(cls, record: Sequence[Any]) -> AssetFacts:
        """Return facts from their record."""
        day, *others = record
        return cls(date.fromisoformat(day) if day else None, *others)

    def record(self) -> list[JSON]:
        """Return the facts as a JSON-able list, in the order of the attributes."""
        day = self.last_price.isoformat() if self.last_price else None
        return [day, self.sector, self.jump_bp, self.volume_e8, self.fall_bp, dict(self.styles)]


UNKNOWN: Final = AssetFacts()


@dataclass(slots=True)
class NetSum:
    """A sum of which some parts may come or not: it lies between `net - down` and `net + up`."""

    net: int = 0
    up: int = 0
    down: int = 0

    @property
    def worst(self) -> int:
        """Return the largest size that the sum may have."""
        return max(abs(self.net + self.up), abs(self.net - self.down))

    def add(self, change: int, stands: bool) -> None:
        """Add a change, or where it may not come the doubt whether it does."""
        if stands:
            self.net += change
        elif change > 0:
            self.up += change
        else:
            self.down -= change

    def add_unknown(self, held: int, target: int, stands: bool) -> None:
        """Add a change of an exposure whose style is not known."""
        size = abs(target) if stands else max(abs(target), abs(held))
        self.up += (size - abs(held)) * UNKNOWN_STYLE
        self.down += (size - abs(held)) * UNKNOWN_STYLE


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over the positions of a book, in 1e-8 of equity; of styles in hundredths of that.

    `long` and `short` are sizes, `names` counts positions, `sectors` and `styles` are net sums by name.
    """

    long: int
    short: int
    names: int
    sectors: Mapping[str, NetSum]
    styles: Mapping[str, NetSum]


@dataclass(frozen=True)
class BookState:
    """Positions, money, and what is known of each asset.

    Attributes
    ----------
    positions
        Exposure of each held asset in 1e-8 of equity, negative for short.
    assets
        What is known of each asset.
    equity, high_water, pnl_today
        Money in the smallest unit (cents): the present value, the highest, and the gain since the day began.
    traded_e8
        Bought plus sold earlier on this day, in 1e-8 of equity.
    recent_e8
        Bought plus sold on each of the days before, the oldest first.
    rejects
        Orders of this day that a venue rejected.
    mode
        What may pass: everything, only what reduces, or nothing.
    sessions
        Trading days that are known, ascending; the age of a price counts them, and weekdays after the last one.

    Raises
    ------
    RiskError
        A field has another type, the highest equity is below the present one, or it is not positive.
    """

    positions: Mapping[str, int]
    assets: Mapping[str, AssetFacts]
    equity: int
    high_water: int
    pnl_today: int = 0
    traded_e8: int = 0
    recent_e8: tuple[int, ...] = ()
    rejects: int = 0
    mode: Mode = "active"
    sessions: tuple[date, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a malformed state; sort assets."""
        for name in ("equity", "high_water", "pnl_today", "traded_e8", "rejects"):
            _refuse_unless(type(getattr(self, name)) is int, name, getattr(self, name), "a whole number")
        for asset, value in self.positions.items():
            _refuse_unless(
                type(asset) is str and type(value) is int, "positions", {asset: value}, "whole units of 1e-8 of equity"
            )
        for asset, facts in self.assets.items():
            _refuse_unless(type(asset) is str and type(facts) is AssetFacts, "assets", {asset: facts}, "AssetFacts")
        _refuse_unless(self.high_water >= max(self.equity, 1), "high_water", self.high_water, "at least equity and 1")
        for name in ("traded_e8", "rejects"):
            _refuse_unless(getattr(self, name) >= 0, name, getattr(self, name), "at least 0")
        traded = all(type(value) is int and value >= 0 for value in self.recent_e8)
        _refuse_unless(traded, "recent_e8", self.recent_e8, "whole numbers, at least 0")
        _refuse_unless(self.mode in MODES, "mode", self.mode, ", ".join(MODES))
        object.__setattr__(self, "positions", MappingProxyType(dict(sorted(self.positions.items()))))
        object.__setattr__(self, "assets", MappingProxyType(dict(sorted(self.assets.items()))))
        object.__setattr__(self, "sessions", tuple(sorted(self.sessions)))

    def age_of(self, asset: str, now: date) -> int | None:
        """Return the trading days between the day of an asset's last price and `now`, both excluded; -1 if later.

        None without a price.
        """
        day = self.assets.get(asset, UNKNOWN).last_price
        if day is None:
            return None
        if (day, now) not in self._ages:
            self._ages[day, now] = self._count_sessions(day, now)
        return self._ages[day, now]

    @cached_property
    def _ages(self) -> dict[tuple[date, date], int]:
        return {}

    def _count_sessions(self, day: date, now: date) -> int:
        if day > now:
            return -1
        known = bisect_left(self.sessions, now) - bisect_right(self.sessions, day)
        last = max(day, self.sessions[-1]) if self.sessions else day
        return max(known, 0) + max(_count_weekdays(now.toordinal() - 1) - _count_weekdays(last.toordinal()), 0)

    @classmethod
    def restore(cls, record: Mapping[str, Any]) -> BookState:
        """Return a state from its record."""
        return cls(
            **{
                **record,
                "assets": {asset: AssetFacts.restore(row) for asset, row in record["assets"].items()},
                "recent_e8": tuple(record["recent_e8"]),
                "sessions": tuple(date.fromisoformat(day) for day in record["sessions"]),
            }
        )

    def record(self) -> dict[str, JSON]:
        """Return the state as a JSON-able object."""
        return {
            "positions": dict(self.positions),
            "assets": {asset: facts.record() for asset, facts in self.assets.items()},
            "equity": self.equity,
            "high_water": self.high_water,
            "pnl_today": self.pnl_today,
            "traded_e8": self.traded_e8,
            "recent_e8": list(self.recent_e8),
            "rejects": self.rejects,
            "mode": self.mode,
            "sessions": [day.isoformat() for day in self.sessions],
        }

    @cached_property
    def sums(self) -> Sums:
        """Return the sums over the positions; computed once, for a state is asked about many signals."""
        long = sum(value for value in self.positions.values() if value > 0)
        short = -sum(value for value in self.positions.values() if value < 0)
        sectors: dict[str, NetSum] = {}
        styles = {name: NetSum() for name in sorted({name for one in self.assets.values() for name in one.styles})}
        for asset, held in self.positions.items():
            facts = self.assets.get(asset, UNKNOWN)
            sectors.setdefault(facts.sector, NetSum()).add(held, stands=True)
            for name, total in styles.items():
                if name in facts.styles:
                    total.add(held * facts.styles[name], stands=True)
                else:
                    total.add_unknown(0, held, stands=True)
        return Sums(long, short, sum(value != 0 for value in self.positions.values()), sectors, styles)

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the record; computed once, for a state is asked about many signals."""
        return compute_digest(self.record())


def _count_weekdays(ordinal: int) -> int:
    """Return the weekdays of days 1 to `ordinal` of the calendar; day 1 is a Monday."""
    weeks, rest = divmod(ordinal, 7)
    return WEEKDAYS * weeks + min(rest, WEEKDAYS)
