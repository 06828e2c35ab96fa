"""Splits and dividends, and the factors by which they adjust quoted prices and volumes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .errors import Audit, Finding, MarketError
from .forms.days import read_days
from .forms.numbers import read_numbers
from .table import Table, find_missing_columns, read_symbols, read_table

Frame = NDArray[np.float64]


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


def read_actions(path: Path) -> Actions:
    """Read a Parquet or CSV file with date, symbol, dividend and split; an empty cell means no action.

    Raises
    ------
    PanelError
        With every finding in the file.
    """
    table = read_table(path)
    audit = Audit(table.row_numbers)
    audit.add(*table.clashes, *find_missing_columns(table, ("date", "symbol")))
    audit.add_broken(table.broken)
    if not {"dividend", "split"} & {*table.columns}:
        audit.add(Finding(0, "split", "the file has neither dividends nor splits"))
    audit.refuse(str(path))
    days, (codes, words) = read_days(table, "date", audit), read_symbols(table, "symbol", audit)
    dividends, splits = _read_amounts(table, "dividend", 0.0, audit), _read_amounts(table, "split", 1.0, audit)
    audit.add_rows("dividend", np.flatnonzero(~(dividends >= 0)), lambda row: f"{dividends[row]:g}: 0 or more is paid")
    audit.add_rows("split", np.flatnonzero(~(splits > 0)), lambda row: f"{splits[row]:g}: new shares are above 0")
    audit.refuse(str(path))
    return Actions(days.astype("datetime64[D]"), tuple(words[code] for code in codes), dividends, splits)


def _read_amounts(table: Table, name: str, default: float, audit: Audit) -> Frame:
    if name not in table.columns:
        return np.full(table.rows, default)
    values = read_numbers(table, name, audit)
    return np.where(np.isnan(values), default, values)


def _find_last_close(closes: Frame) -> float:
    """Return the last known close; infinite where there is none."""
    known = closes[~np.isnan(closes)]
    return float(known[-1]) if known.size else float("inf")
