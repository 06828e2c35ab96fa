"""What a panel says of each symbol at a close, and a paper book with it as the risk gate reads it.

A panel has its symbols by their newest names. What a book holds and a policy lists is traced to them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..evidence.scoring import measure_exposures
from ..market import Panel, find_traded_rule, measure_traded_money
from ..portfolio import PaperAccount
from ..risk import BP, MAX_SESSIONS, UNITS_PER_EQUITY, AssetFacts, BookState, Policy

USUAL_DAYS: Final = 20
"""A usual day's traded value is the median of so many."""
READ_DAYS: Final = 300
"""Rows that are read: a year and a month of momentum, and every price that is not stale by far."""
RISK_STYLES: Final = ("beta", "size", "volatility", "momentum")
MAX_EQUITIES: Final = 1e6
"""Multiple of a book's equity at which a usual day's value is cut: more is more than enough."""
CENTS: Final = 100
SYMBOL_LISTS: Final = ("restricted", "not_shortable")
"""Limits of a policy that are lists of symbols."""
MAX_STYLE: Final = 10.0
"""Standard deviations at which a style is cut."""


@dataclass(frozen=True)
class SymbolFacts:
    """What a panel says of one symbol at a close.

    Attributes
    ----------
    last_price
        ISO date of its last close.
    sector
        Empty where the panel has none.
    jump_bp
        Absolute change of its last close from the one before, in basis points, rounded up; None without two.
    usual_value
        Median value traded on the last 20 days, in the currency of the prices; None where it is not known.
    styles
        Exposure to each style in hundredths of a standard deviation; empty where nobody asked.
    """

    last_price: str
    sector: str = ""
    jump_bp: int | None = None
    usual_value: float | None = None
    styles: Mapping[str, int] | None = None

    def record(self) -> list[Any]:
        """Return the facts as a JSON-able list, from which ``SymbolFacts(*row)`` makes them again."""
        return [self.last_price, self.sector, self.jump_bp, self.usual_value, dict(self.styles or {})]

    def at(self, equity: float, fall_bp: int = 0) -> AssetFacts:
        """Return the facts for a book of some equity, whose position has lost `fall_bp` from its best price."""
        share = None
        if self.usual_value is not None and equity > 0:
            share = math.floor(min(self.usual_value / equity, MAX_EQUITIES) * UNITS_PER_EQUITY)
        day = date.fromisoformat(self.last_price)
        return AssetFacts(day, self.sector, self.jump_bp, share, fall_bp, dict(self.styles or {}))


def read_facts(panel: Panel, names: Collection[str] = (), with_styles: bool = False) -> dict[str, SymbolFacts]:
    """Return what a panel says of symbols at its last close: of some, or of all; without those that have no close."""
    rows = panel.rows(max(panel.days - READ_DAYS, 0), panel.days)
    last, before = _find_last_rows(rows)
    jumps, values = _measure_jumps(rows, last, before), _measure_usual_values(rows)
    styles = _measure_styles(rows) if with_styles else {}
    wanted = [column for column, row in enumerate(last) if row >= 0 and (not names or panel.symbols[column] in names)]
    return {
        panel.symbols[column]: SymbolFacts(
            str(rows.dates[last[column]]),
            name_sector(panel, column),
            jumps[column],
            values[column],
            {style: int(sizes[column]) for style, sizes in styles.items() if math.isfinite(sizes[column])},
        )
        for column in wanted
    }


def make_state(account: PaperAccount, facts: Mapping[str, SymbolFacts], sessions: tuple[date, ...]) -> BookState:
    """Return a paper book as the gate reads it, in whole numbers: active, without turnover of days before."""
    worth = account.equity
    falls = {name: math.ceil(holding.fall * BP) for name, holding in account.holdings.items()}
    equity = round(worth * CENTS)
    return BookState(
        {name: round(weight * UNITS_PER_EQUITY) for name, weight in account.weights().items()},
        {name: one.at(worth, falls.get(name, 0)) for name, one in facts.items()},
        equity=equity,
        high_water=max(round(account.high_water * CENTS), equity, 1),
        pnl_today=round(account.pnl * CENTS),
        sessions=sessions,
    )


def list_sessions(panel: Panel) -> tuple[date, ...]:
    """Return the last sessions of a panel."""
    return tuple(day.astype("datetime64[D]").astype(object) for day in panel.dates[-MAX_SESSIONS:])


def _find_last_rows(panel: Panel) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the row of each symbol's last close and of the one before, `[N]`; -1 where there is none."""
    priced = ~np.isnan(panel.fields["close"])
    last = _find_last(priced)
    columns = np.flatnonzero(last >= 0)
    earlier = priced.copy()
    earlier[last[columns], columns] = False
    return last, _find_last(earlier)


def _find_last(there: NDArray[np.bool_]) -> NDArray[np.int64]:
    rows: NDArray[np.int64] = len(there) - 1 - there[::-1].argmax(axis=0)
    return np.where(there.any(axis=0), rows, -1)


def _measure_jumps(panel: Panel, last: NDArray[np.int64], before: NDArray[np.int64]) -> list[int | None]:
    close = panel.fields["close"]
    known = (last >= 0) & (before >= 0)
    columns = np.arange(panel.names)
    ratio = np.where(known, close[last, columns] / close[before, columns], np.nan)
    return [math.ceil(abs(move - 1) * BP) if math.isfinite(move) else None for move in ratio]


def _measure_usual_values(panel: Panel) -> list[float | None]:
    """Return the median money traded on the last days."""
    traded = measure_traded_money(panel.rows(max(panel.days - USUAL_DAYS, 0), panel.days))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a symbol without a price on any of the days: NaN is meant
        medians = np.nanmedian(traded, axis=0)
    return [float(value) if math.isfinite(value) else None for value in medians]


def _measure_styles(rows: Panel) -> dict[str, NDArray[np.float64]]:
    """Return each style in hundredths of a standard deviation of the day's universe, `[N]`, NaN where unknown."""
    exposures = measure_exposures(rows)
    universe = rows.universe[-1]
    sized = {}
    for style in RISK_STYLES:
        day = getattr(exposures, style)[-1]
        among = day[universe & np.isfinite(day)]
        spread = among.std() if len(among) > 1 else 0.0
        known = np.isfinite(day) & (spread > 0)
        scaled = np.where(known, (day - among.mean()) / spread if spread > 0 else 0.0, np.nan)
        sized[style] = np.rint(np.clip(scaled, -MAX_STYLE, MAX_STYLE) * 100)
    return sized


def name_sector(panel: Panel, column: int) -> str:
    """Return the sector of a column; empty where the panel has none."""
    codes = panel.groups.get("sector")
    if codes is None or codes[column] < 0:
        return ""
    return str(panel.group_labels["sector"][codes[column]])


def trace_holdings(panel: Panel, days: Mapping[str, str]) -> dict[str, str]:
    """Return the panel's symbol of each one that it calls otherwise; `days` has the ISO day of each symbol."""
    return {name: found for name, day in sorted(days.items()) if (found := panel.trace(name, day)) != name}


def bind_policy(policy: Policy, panel: Panel) -> tuple[Policy, tuple[str, ...]]:
    """Return a policy whose lists of symbols hold for a panel, and a note on each symbol that it does not have.

    A listed symbol that changed binds its new one, too. The old one stays: it may be another company's by now.
    """
    changes, notes = {}, []
    for name in SYMBOL_LISTS:
        listed: tuple[str, ...] = getattr(policy, name)
        added = {new for symbol in listed for new in panel.trace_all(symbol)} - {*listed}
        if added:
            changes[name] = tuple(sorted({*listed, *added}))
        lost = [symbol for symbol in listed if not {symbol, *panel.trace_all(symbol)} & {*panel.symbols}]
        notes += [_note_unmatched(name, symbol, panel) for symbol in lost]
    return (policy.model_copy(update=changes) if changes else policy), tuple(notes)


def _note_unmatched(name: str, symbol: str, panel: Panel) -> str:
    alike = [other for other in panel.symbols if other.casefold() == symbol.casefold()]
    meant = f"; it has {alike[0]}, and symbols are compared as they are spelled" if alike else ""
    return f"{name} of the policy names {symbol}, which the panel does not have, so it binds nothing{meant}."


def read_prices(
    panel: Panel, row: int, names: Sequence[str], kept_days: Mapping[str, Collection[str]], renamed: Mapping[str, str]
) -> dict[str, Any]:
    """Return the prices of a day as `DayPrices` takes them, JSON-able.

    Parameters
    ----------
    names
        Symbols of the panel.
    kept_days
        The days whose closes the book keeps of each holding, as it was called.
    renamed
        The panel's symbol of what was called otherwise.
    """
    column = {symbol: place for place, symbol in enumerate(panel.symbols)}
    known = [name for name in names if name in column]

    def read(field: str, place: int, symbols: Collection[str]) -> dict[str, float]:
        """Return the cells of a row that have a price, by symbol."""
        cells = {name: float(panel.fields[field][place, column[name]]) for name in symbols}
        return {name: cell for name, cell in cells.items() if np.isfinite(cell) and (cell > 0 or field == "volume")}

    earlier: dict[str, dict[str, float]] = {}
    for symbol, days in kept_days.items():
        name = renamed.get(symbol, symbol)
        places = {day: _find_row(panel, day) for day in sorted(days) if name in column}
        kept = {day: read("close", place, [name]).get(name) for day, place in places.items() if place is not None}
        earlier[symbol] = {day: close for day, close in kept.items() if close is not None}
    opens, closes, volumes = (read(field, row, known) for field in ("open", "close", "volume"))
    if find_traded_rule(panel) != "close*volume":  # in shares of the closes, as the book holds them
        money = measure_traded_money(panel.rows(row, row + 1))[0]
        worth = {name: float(money[column[name]]) for name in {*volumes} & {*closes}}
        volumes |= {name: value / closes[name] for name, value in worth.items() if np.isfinite(value)}
    return {
        "day": str(panel.dates[row]),
        "opens": opens,
        "closes": closes,
        "volumes": volumes,
        "earlier": earlier,
        "previous": _read_previous(panel, row, {name: column[name] for name in known}),
        "renamed": dict(renamed),
    }


def _find_row(panel: Panel, day: str) -> int | None:
    """Return the row of an ISO day; None where the panel lacks it."""
    place = int(np.searchsorted(panel.dates, np.datetime64(day, "D")))
    return place if place < panel.days and str(panel.dates[place]) == day else None


def _read_previous(panel: Panel, row: int, columns: Mapping[str, int]) -> dict[str, list[Any]]:
    """Return the last close of each symbol before a row, and its day; without those that have none."""
    first = max(row - READ_DAYS, 0)
    found = {}
    for name, column in columns.items():
        closes = panel.fields["close"][first:row, column]
        priced = np.flatnonzero(np.isfinite(closes) & (closes > 0))
        if len(priced):
            found[name] = [float(closes[priced[-1]]), str(panel.dates[first + priced[-1]])]
    return found
