"""Splits and dividends, and the factors by which they adjust quoted prices and volumes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isclose, log
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .errors import MAX_EXAMPLE_ROWS, Audit, Finding, MarketError, format_count
from .forms.days import read_days
from .forms.numbers import read_numbers
from .reading import AS_IT_STANDS, Reading
from .table import Table, open_side_table, read_symbols

Frame = NDArray[np.float64]
Newest = Callable[[Sequence[str], Sequence[int]], list[str]]
"""Returns the newest symbol of each symbol on a day, as `SymbolChanges.trace`."""
MIN_SPLIT = 1.4
"""Splits from this size on, or its inverse, move a quote by more than a usual day does."""
MAX_SPLIT_MISFIT = 0.75
"""Log return left on the day of a split, over the log of the split, from which on the quotes contradict it.

1 means that the quotes did not move, 2 that they moved the other way. A company that lost 40 % on the day of a reverse
split of 1:2 has 0.74.
"""


ROUNDED_TO: Final = (0.01, 0.0001, 0.000001)
"""Steps to which vendors round prices; the largest of which a price is a multiple is taken for its own."""


def bound_ratio(price: float, other: float) -> tuple[float, float]:
    """Return the least and the largest ratio of two prices above 0 that could be rounded to the given ones.

    A price of a cent stands for anything from half a cent to one and a half: its ratio to another one says little.
    """
    low, high = 1.0 - _measure_rounding(price), 1.0 + _measure_rounding(price)
    least, most = 1.0 - _measure_rounding(other), 1.0 + _measure_rounding(other)
    return price * low / (other * most), price * high / (other * least)


def _measure_rounding(price: float) -> float:
    """Return the largest relative error that a price has if it was rounded to the step of which it is a multiple."""
    for step in ROUNDED_TO:
        if isclose(round(price / step) * step, price, rel_tol=1e-7):
            return step / 2 / price
    return 0.0


@dataclass(frozen=True)
class SplitMove:
    """A split, and the last close before it and the first one from its day on."""

    day: str
    symbol: str
    split: float
    before: float
    after: float

    @property
    def misfit(self) -> float:
        """Return the absolute log return that is left with the split, over the absolute log of the split."""
        size = log(self.split)
        return abs(log(self.after / self.before) + size) / abs(size)

    @property
    def is_contradicted(self) -> bool:
        """Return whether the quotes did not follow the split, however they were rounded."""
        size = log(self.split)
        least, most = map(log, bound_ratio(self.after, self.before))
        left = max(least + size, -(most + size), 0.0)  # 0: a quote that rounds to the given one followed the split
        return left / abs(size) > MAX_SPLIT_MISFIT

    def __str__(self) -> str:
        """Return the split as a message shows it."""
        moved = f"the close went from {self.before:g} to {self.after:g}"
        return f"{self.symbol} on {self.day}: a split of {self.split:g}, and {moved}"


@dataclass(frozen=True, eq=False)
class Actions:
    """Splits and dividends, one row a symbol and day.

    Attributes
    ----------
    days : NDArray[np.datetime64]
        ``[A]``: ex-days, the first day on which a share trades without the dividend or after the split.
    symbols : tuple of str
        ``A`` symbols.
    dividends : NDArray[np.float64]
        ``[A]``: paid per share of the day before, in the currency of the quotes; 0 for none.
    splits : NDArray[np.float64]
        ``[A]``: new shares for an old one; 1 for none.
    """

    days: NDArray[np.datetime64]
    symbols: tuple[str, ...]
    dividends: Frame
    splits: Frame

    def compute_factors(
        self, dates: NDArray[np.datetime64], symbols: Sequence[str], quoted: Frame
    ) -> tuple[Frame, Frame]:
        """Return the factors that adjust quoted prices and volumes to shares of the last date, both ``[T, N]``.

        A price is divided by every later split and reduced by every later dividend, as a share of the close before it.
        Actions after the last date are not included.

        Parameters
        ----------
        dates
            ``[T]``, rising.
        symbols
            ``N``; actions of other symbols are skipped.
        quoted : NDArray[np.float64]
            ``[T, N]``: quoted closes, NaN where missing. A dividend without a close before it changes nothing.

        Raises
        ------
        MarketError
            A dividend is not below the close before it, which leaves no positive price.
        """
        prices, volumes = np.ones((2, len(dates), len(symbols)))
        column = {symbol: place for place, symbol in enumerate(symbols)}
        rows = np.searchsorted(dates, self.days)  # the first day that trades after the action
        for at in np.argsort(self.days, kind="stable"):
            place, row = column.get(self.symbols[at]), int(rows[at])
            if place is None or row >= len(dates):
                continue
            paid = self._dividend_share(int(at), quoted[:row, place])
            prices[:row, place] *= (1.0 - paid) / self.splits[at]
            volumes[:row, place] *= self.splits[at]
        return prices, volumes

    def list_splits(self, until: np.datetime64) -> tuple[tuple[str, str, float], ...]:
        """Return the splits until a day as `Panel.splits`: ISO day, symbol, new shares for an old one; by day."""
        rows = [place for place in np.flatnonzero(self.splits != 1.0) if self.days[place] <= until]
        return tuple(sorted((str(self.days[row]), self.symbols[row], float(self.splits[row])) for row in rows))

    def measure_splits(self, dates: NDArray[np.datetime64], symbols: Sequence[str], closes: Frame) -> list[SplitMove]:
        """Return the splits from `MIN_SPLIT` on, with the closes ``[T, N]`` before and after them."""
        column = {symbol: place for place, symbol in enumerate(symbols)}
        found = []
        for at in np.flatnonzero(np.abs(np.log(self.splits)) >= log(MIN_SPLIT)):
            row, place = int(np.searchsorted(dates, self.days[at])), column.get(self.symbols[at])
            if place is None:
                continue
            before, after = (part[part > 0] for part in (closes[:row, place], closes[row:, place]))
            if before.size and after.size:
                ends = float(before[-1]), float(after[0])
                found.append(SplitMove(str(self.days[at]), self.symbols[at], float(self.splits[at]), *ends))
        return found

    def check_splits(self, dates: NDArray[np.datetime64], symbols: Sequence[str], quoted: Frame) -> None:
        """Refuse splits that the quoted closes ``[T, N]`` contradict.

        Raises
        ------
        MarketError
            With the first splits that the quotes did not follow.
        """
        moves = self.measure_splits(dates, symbols, quoted)
        wrong = [move for move in moves if move.is_contradicted]
        if not wrong:
            return
        more = f"; and {len(wrong) - MAX_EXAMPLE_ROWS:,} more" if len(wrong) > MAX_EXAMPLE_ROWS else ""
        raise MarketError(
            f"{format_count(len(wrong), 'split')} of {len(moves):,} would make the day's return larger: "
            f"{'; '.join(map(str, wrong[:MAX_EXAMPLE_ROWS]))}{more}",
            field="market.actions",
            got=wrong[0].split,
            allowed="new shares for an old one: 4 for 4:1, 0.25 for 1:4",
            hint="Correct the size or the day. If close_raw is divided by splits already, it is not the quoted close.",
        )

    def _dividend_share(self, at: int, closes: Frame) -> float:
        """Return a dividend as a share of the last close before it."""
        paid = float(self.dividends[at])
        before = _find_last_close(closes) if paid else float("inf")
        if paid >= before:
            raise MarketError(
                f"{self.symbols[at]} on {self.days[at]}: "
                f"a dividend of {paid:g} after a close of {before:g} leaves no price",
                field="market.actions",
                got=paid,
                allowed=f"less than {before:g}",
                hint="Give dividends for a share as it was the day before, in the currency of the quotes.",
            )
        return paid / before


def read_actions(path: Path, reading: Reading = AS_IT_STANDS, newest: Newest | None = None) -> Actions:
    """Read a Parquet or CSV file with date, symbol, dividend and split; an empty cell means no action.

    Parameters
    ----------
    path
        The file.
    reading
        How it is written, where it does not say so itself.
    newest
        Returns the newest symbols; None: those of the file.

    Raises
    ------
    PanelError
        With every finding in the file.
    """
    table, audit = open_side_table(path, reading, ("date", "symbol"))
    if not {"dividend", "split"} & {*table.columns}:
        audit.add(Finding(0, "split", "the file has neither dividends nor splits"))
    audit.refuse(str(path))
    days, (codes, words) = read_days(table, "date", audit), read_symbols(table, "symbol", audit)
    dividends, splits = _read_amounts(table, "dividend", 0.0, audit), _read_amounts(table, "split", 1.0, audit)
    audit.add_rows("dividend", np.flatnonzero(~(dividends >= 0)), lambda row: f"{dividends[row]:g}: 0 or more is paid")
    audit.add_rows("split", np.flatnonzero(~(splits > 0)), lambda row: f"{splits[row]:g}: new shares are above 0")
    audit.refuse(str(path))
    symbols = [words[code] for code in codes]
    symbols = symbols if newest is None else newest(symbols, days.tolist())
    actions = Actions(days.astype("datetime64[D]"), tuple(symbols), dividends, splits)
    _find_repeated(actions, audit)
    audit.refuse(str(path))
    return actions


def _find_repeated(actions: Actions, audit: Audit) -> None:
    """Add each row of a symbol and day that has one before: it would be applied twice."""
    cells = list(zip(actions.days.tolist(), actions.symbols, strict=True))
    first: dict[tuple[object, str], int] = {}
    for row, cell in enumerate(cells):
        first.setdefault(cell, row)
    repeated = np.array([row for row, cell in enumerate(cells) if first[cell] != row], np.intp)
    advice = "give its dividends, added up, and its split in one row"

    def describe(row: int) -> str:
        day, symbol = cells[row]
        return f"{symbol} on {day} is in row {audit.numbers[first[cells[row]]]} too: {advice}"

    audit.add_rows("symbol", repeated, describe)


def _read_amounts(table: Table, name: str, default: float, audit: Audit) -> Frame:
    if name not in table.columns:
        return np.full(table.rows, default)
    values = read_numbers(table, name, audit)
    return np.where(np.isnan(values), default, values)


def _find_last_close(closes: Frame) -> float:
    """Return the last known close; infinite where there is none."""
    known = closes[~np.isnan(closes)]
    return float(known[-1]) if known.size else float("inf")
